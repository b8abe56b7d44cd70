"""Load over time, by hand; its integrals are the work and the waits."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import UsageError
from policyfactory.evaluation.analyses import analysis, make_analysis
from policyfactory.evaluation.analyses.analysis import difference_cell
from policyfactory.evaluation.analyses.load import Load, LoadOfLog, bin_width, course_of, load_sums
from policyfactory.report.sections import Cell
from policyfactory.simulation.simulate import Schedule
from refusals import refused
from snapshots import snapshot

HOUR, DAY, WEEK = 3600, 86_400, 604_800

UTILISATION = "utilisation until the last submission"


def two_jobs(wait: int, policy: str = "A", ticks: int = 1) -> Schedule:
    """A machine of 4 for 4 hours: 2 processors for 3 h at once, 4 for 1 h which wait; the last comes after 4 h."""
    jobs = [(0, 3 * HOUR, 3 * HOUR, 2, 1), (HOUR, HOUR, HOUR, 4, 1), (4 * HOUR, HOUR, HOUR, 1, 1)]
    return schedule(workload(jobs, ticks=ticks), [0, wait, 0], policy)


@pytest.mark.parametrize("ticks", [1, 10**6])
def test_by_hand(ticks: int) -> None:
    sums = load_sums(two_jobs(2 * HOUR, ticks=ticks))
    assert sums.offered == pytest.approx(100 * (6 + 4 + 1) / 16)
    assert sums.utilisation == pytest.approx(100 * 10 / 16)  # the last job runs after the last submission
    assert sums.waiting == pytest.approx(2 / 4)
    assert sums.backlog == pytest.approx(4 * 2 / 16)
    assert sums.drain == HOUR
    assert len(sums.weeks) == 0
    course = course_of(two_jobs(2 * HOUR, ticks=ticks), bins=5)
    assert course.width == HOUR
    assert course.utilisation.tolist() == [50, 50, 50, 100, 25, 0]
    assert course.waiting.tolist() == [0, 1, 1, 0, 0, 0]
    assert course.backlog.tolist() == [0, 1, 1, 0, 0, 0]
    assert course.offered.tolist() == [150, 100, 0, 0, 25, 0]


def test_the_course_ends_with_the_last_job_whatever_the_policy() -> None:
    assert len(course_of(two_jobs(2 * HOUR), 5).utilisation) == 6
    assert len(course_of(two_jobs(20 * HOUR), 5).utilisation) == 23


@pytest.mark.parametrize(
    ("span", "bins", "width"),
    [
        (1, 200, 1),
        (200, 200, 1),
        (201, 200, 10),
        (15 * DAY, 200, 2 * HOUR),
        (1.5 * HOUR, 10, 600),
        (20_000 * WEEK, 100, 208 * WEEK),
    ],
)
def test_bins_are_what_people_count_in(span: float, bins: int, width: int) -> None:
    assert bin_width(span, bins) == width
    assert width * bins >= span


jobs = st.tuples(st.integers(0, 9000), st.integers(0, 5000), st.integers(1, 4), st.integers(0, 9000))


@given(st.lists(jobs, min_size=1, max_size=20), st.integers(1, 50))
def test_the_integrals_are_the_work_and_the_waits(rows: list[tuple[int, int, int, int]], bins: int) -> None:
    rows = sorted(rows)
    one = schedule(workload([(s, p, max(p, 1), q, 1) for s, p, q, _ in rows]), [w for *_, w in rows])
    course = course_of(one, bins)
    work = sum(p * q for _, p, q, _ in rows)
    assert course.utilisation.sum() / 100 * course.width * 4 == pytest.approx(work)
    assert course.offered.sum() / 100 * course.width * 4 == pytest.approx(work)
    assert course.waiting.sum() * course.width == pytest.approx(sum(w for *_, w in rows))
    assert course.backlog.sum() * course.width * 4 == pytest.approx(sum(q * w for _, _, q, w in rows))


def three_weeks(share: int, policy: str) -> Schedule:
    """Whole weeks in which 2, ``share`` and 0 of 4 processors are in use, and a job a second after the third."""
    jobs = workload([(0, WEEK, WEEK, 2, 1), (WEEK, WEEK, WEEK, share, 1), (3 * WEEK + 1, 1, 1, 1, 1)])
    return schedule(jobs, [0, 0, 0], policy)


def test_weeks() -> None:
    section = conclude(Load(), [[three_weeks(4, "A")], [three_weeks(2, "A")]])
    rows = [[cell.value for cell in row[:4]] for row in table(section, "weeks").rows]
    assert rows == [["1", 2, "A", 50], ["2", 2, "A", 75], ["3", 2, "A", 0]]


def test_a_week_is_collected_once_for_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    collect = LoadOfLog.week
    monkeypatch.setattr(LoadOfLog, "week", lambda own, week: [asked.append(week), collect(own, week)][1])
    section = conclude(Load(), [[three_weeks(4, "A"), three_weeks(3, "B")], [three_weeks(2, "A"), three_weeks(1, "B")]])
    assert len(table(section, "weeks").rows) == 6
    assert asked == [0, 1, 2]


def test_the_baseline_has_an_empty_cell_without_a_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(analysis, "differences_of")
    assert difference_cell(np.ones((7, 2)), 0, drawn=None) == Cell(None)


def test_the_table_and_the_words() -> None:
    quiet = [two_jobs(HOUR), two_jobs(3 * HOUR, "B")]
    section = conclude(Load(), [quiet, *[[two_jobs(2 * HOUR), two_jobs(3 * HOUR, "B")]] * 5])
    row = cells(table(section, "load"), policy="B")
    # The long one runs after the last submission: 6 of 16 processor-hours are done, 12 requested while it waits.
    assert (row[UTILISATION].value, row[f"{UTILISATION}, difference"].value) == (37.5, -25)
    assert (row["backlog"].value, row["backlog, difference"].value) == (0.75, 0.25)
    assert (row["drain, difference"].value, row["drain, difference"].mark) == (0, "no difference")
    assert (row[f"{UTILISATION}, difference"].mark, row["backlog, difference"].mark) == ("worse", "worse")
    snapshot(section.paragraphs)


def test_one_case_and_no_difference() -> None:
    (text,) = conclude(Load(), [[two_jobs(2 * HOUR), two_jobs(2 * HOUR, "B")]]).paragraphs
    snapshot(text)
    (text,) = conclude(Load(), [[two_jobs(2 * HOUR)]]).paragraphs
    assert "against" not in text


def test_all_jobs_at_one_instant() -> None:
    one = schedule(workload([(5, 10, 10, 4, 1), (5, 10, 10, 4, 1)]), [0, 10])
    section = conclude(Load(), [[one]])
    snapshot(section.paragraphs)
    assert cells(table(section, "load"), policy="P")[UTILISATION].value is None
    course = table(section, "course")
    assert [row[2].value for row in course.rows] == [100] * 20 + [0]


def test_the_course_is_that_of_the_chosen_case() -> None:
    cases = [[two_jobs(2 * HOUR), two_jobs(3 * HOUR, "B")], [two_jobs(5 * HOUR), two_jobs(0, "B")]]
    section = conclude(Load(case=2, bins=5), cases)
    row = cells(table(section, "course"), policy="A")
    assert (row["time"].value, row["utilisation"].value, row["offered"].value) == (0, 50, 150)
    last = [[cell.value for cell in row] for row in table(section, "course").rows][-1]
    assert last[:2] == [7 * HOUR, "A"]  # the schedule of A ends after 7 h, that of B sooner
    assert table(section, "course").shown == 0  # on the page there is the picture
    assert len(table(section, "course").rows) == 8 + 6
    upper, lower = section.pictures[0].draw().axes
    assert lower.get_lines()[-1].get_ydata()[:7].tolist() == [0, 1, 1, 1, 1, 1, 0]
    snapshot(upper.get_title(loc="left"))


def test_cases_and_logs_that_there_are_not() -> None:
    refused(UsageError, "3 1 2 load", conclude, Load(case=3), [[two_jobs(0)]] * 2)
    refused(UsageError, "x analysis", conclude, Load(log="x"), [[two_jobs(0)]] * 2, logs=["a", "b"])
    section = conclude(Load(case=2), [[two_jobs(0)]] * 3, logs=["a", "b", "b"])
    assert [each.title for each in section.pictures] == ["b, window 2: utilisation and backlog over time"]
    for options in ({"case": 0}, {"bins": 1.5}, {"bins": 0}):
        refused(UsageError, "1 number load", make_analysis, "load", **options)


def test_a_schedule_that_never_seems_to_end_has_a_bounded_course() -> None:
    course = course_of(two_jobs(10**9), 5)
    assert len(course.utilisation) == 20_000
    assert np.isfinite(course.utilisation).all()


def test_schedules_that_end_long_after_the_last_submission_fill_no_file() -> None:
    """Thirteen policies had 260,000 rows, which took a minute and 500 MB to write."""
    runs = [two_jobs(400 * HOUR, "A"), two_jobs(20 * HOUR, "B"), two_jobs(10**9, "C")]
    section = conclude(Load(bins=5), [[runs[0], runs[1]]])
    course = table(section, "course")
    snapshot(course.note, part="1")
    assert len(course.rows) == 17 + 1
    long = table(conclude(Load(bins=5), [[runs[0], runs[2]]]), "course")
    assert len(long.rows) <= 2 * 25
    snapshot(long.note, part="2")
    means = sum(float(row[2].value) for row in course.rows if row[1].value == "A")
    assert means / 100 * DAY * 4 == pytest.approx((6 + 4 + 1) * HOUR)
    snapshot(table(conclude(Load(bins=5), [[runs[1]]]), "course").note, part="3")
