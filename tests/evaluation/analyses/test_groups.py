"""Who wins and who loses, on schedules written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import UsageError
from policyfactory.core.picture import save_picture
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.groups import GROUPINGS, Groups
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from policyfactory.statistics.intervals import Interval
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from refusals import refused
from snapshots import snapshot
from support import shared_path

# Two users of a machine of 4: user 7 runs 30 s on 1 processor (twice), user 9 two hours on 4.
JOBS = workload([(0, 30, 60, 1, 7), (10, 7200, 7200, 4, 9), (20, 30, 60, 1, 7)])


def pair(less: int, more: int) -> list[Schedule]:
    """Under BASE the short jobs wait 500 and 1500 s, the long one 600 s; under NEW so much less, and more."""
    return [
        schedule(JOBS, [500, 600, 1500], "BASE"),
        schedule(JOBS, [500 - less, 600 + more, 1500 - less], "NEW"),
    ]


def six() -> list[list[Schedule]]:
    return [
        pair(less, more) for less, more in ((100, 3600), (200, 3600), (300, 7200), (400, 7200), (400, 7200), (500, 0))
    ]


def test_by_hand() -> None:
    section = conclude(Groups(min_jobs=6), six())
    user = cells(table(section, "by-user"), group="user 7", policy="NEW")
    assert user["jobs"].value == 12
    assert user["share of jobs"].value == pytest.approx(100 * 2 / 3)
    assert user["share of work"].value == pytest.approx(100 * 60 / 28860)
    assert user["mean wait"].value == 650  # the median of 900, 800, 700, 600, 600, 500
    assert user["wait difference"].value == -350
    assert user["wait difference"].mark == "better"
    assert user["cases"].value == 6
    # (500 + 30)/30 and (1500 + 30)/30 under BASE: the mean is 1030/30.
    base = cells(table(section, "by-user"), group="user 7", policy="BASE")
    assert base["mean bsld"].value == pytest.approx(1030 / 30)
    assert base["wait difference"].value is None
    long = cells(table(section, "by-size"), group="2 to 4 processors", policy="NEW")
    assert long["wait difference"].value == 5400  # the middle of 3600 and 7200
    # Of 6 values the expanded interval is their range; it includes the case without a difference.
    assert long["wait difference"].interval == Interval(0, 7200)
    assert long["wait difference"].mark == "no difference"
    assert cells(table(section, "by-runtime"), group="under 1 min", policy="NEW")["mean wait"].value == 650


def test_the_summary_and_the_words_name_who_wins_and_who_loses() -> None:
    worse = [
        pair(less, more)
        for less, more in ((100, 3600), (200, 3600), (300, 7200), (400, 7200), (400, 7200), (500, 9000))
    ]
    section = conclude(Groups(by=("user",), min_jobs=6), worse)
    row = cells(table(section, "summary-wait"), policy="NEW")
    assert [row[name].value for name in ("lower", "higher", "same", "not known")] == [1, 1, 0, 0]
    assert (row["worst hit"].value, row["its loss"].value) == ("user 9", 7200)
    assert (row["best off"].value, row["its gain"].value) == ("user 7", -350)
    snapshot(section.paragraphs[-1])


def test_a_group_with_few_jobs_is_listed_but_not_named() -> None:
    section = conclude(Groups(by=("user",), min_jobs=7), six())
    row = cells(table(section, "by-user"), group="user 9", policy="NEW")
    assert row["wait difference"].value == 5400
    assert row["wait difference"].interval is None
    assert row["wait difference"].mark == ""
    assert "user 9" not in " ".join(section.paragraphs)
    assert cells(table(section, "summary-wait"), policy="NEW")["not known"].value == 1


def test_one_case_has_no_interval_and_says_so() -> None:
    section = conclude(Groups(min_jobs=1), [pair(100, 3600)])
    snapshot(section.paragraphs)
    row = cells(table(section, "summary-wait"), policy="NEW", by="user")
    assert (row["lower"].value, row["not known"].value, row["its loss"].value) == (0, 2, 3600)
    assert row["its loss"].interval is None


def test_no_effect() -> None:
    section = conclude(Groups(min_jobs=1), [pair(0, 0)] * 6)
    snapshot(section.paragraphs[1])
    row = cells(table(section, "summary-wait"), policy="NEW", by="user")
    assert [row[name].value for name in ("lower", "higher", "same")] == [0, 0, 2]
    assert row["worst hit"].value == "none"


def test_one_policy_is_compared_with_nothing() -> None:
    section = conclude(Groups(min_jobs=1), [pair(0, 0)[:1]] * 6)
    assert [each.name for each in section.tables] == ["by-size", "by-runtime", "by-user"]
    assert not section.pictures
    snapshot(section.paragraphs)


def test_a_user_who_is_absent_from_some_cases() -> None:
    alone = workload([(0, 30, 60, 1, 9)])
    absent = [schedule(alone, [100], "BASE"), schedule(alone, [50], "NEW")]
    section = conclude(Groups(by=("user",), min_jobs=1), [*six(), absent])
    assert cells(table(section, "by-user"), group="user 7", policy="NEW")["cases"].value == 6
    assert cells(table(section, "by-user"), group="user 9", policy="NEW")["cases"].value == 7
    assert cells(table(section, "by-user"), group="user 7", policy="NEW")["wait difference"].value == -350


def test_a_log_without_users_has_no_groups_by_user() -> None:
    nobody = workload([(0, 30, 60, 1, -1), (10, 7200, 7200, 4, -1), (20, 30, 60, 1, -1)])
    pairs = [[schedule(nobody, [500, 600, 1500], "BASE"), schedule(nobody, [400, 600, 1400], "NEW")]] * 6
    sentence = "log: no job has a known user, so there are no groups by user."
    section = conclude(Groups(min_jobs=1), pairs)
    assert [each.name for each in section.tables] == [
        "who", "summary-wait", "summary-bsld", "by-size", "by-runtime",
    ]  # fmt: skip
    assert sentence in section.paragraphs
    assert len(section.pictures[0].draw().axes) == 2
    assert "user" not in " ".join(text for text in section.paragraphs if text != sentence)
    only = conclude(Groups(by=("user",), min_jobs=1), pairs)
    assert (only.paragraphs, only.tables, only.pictures) == ((sentence,), (), ())
    alone = conclude(Groups(by=("user",), min_jobs=1), [one[:1] for one in pairs])
    assert alone.paragraphs[-1] == sentence


def test_unknown_users_are_one_group_and_users_with_most_work_come_first() -> None:
    jobs = workload([(0, 10, 10, 1, -1), (0, 10, 10, 4, 2**40), (0, 10, 10, 1, -1), (0, 10, 10, 3, 5)])
    section = conclude(Groups(by=("user",)), [[schedule(jobs, [1, 2, 3, 4])]])
    labels = [row[0].value for row in table(section, "by-user").rows]
    assert labels == [f"user {2**40}", "user 5", "unknown users"]
    assert cells(table(section, "by-user"), group="unknown users")["mean wait"].value == 2


def test_logs_are_distinguished() -> None:
    section = conclude(Groups(by=("size",), min_jobs=1), [pair(100, 10), pair(200, 20)], logs=["a <b>", "A-B"])
    assert (
        cells(table(section, "by-size"), log="A-B", group="1 processor", policy="NEW")["wait difference"].value == -200
    )
    assert [each.name for each in section.pictures] == ["differences-a-b", "differences-a-b-2"]
    snapshot(section.paragraphs[1])
    only = conclude(Groups(by=("size",), min_jobs=1, log="A-B"), [pair(100, 10), pair(200, 20)], logs=["a", "A-B"])
    assert only.tables[-1].columns[0].title == "group"


def test_of_many_policies_the_best_are_named() -> None:
    waits = [("BASE", 0), *((f"P{k}", k) for k in range(11))]
    row = [schedule(JOBS, [500 + 10 * by, 600, 1500], name) for name, by in waits]
    section = conclude(Groups(by=("size",), min_jobs=1), [row] * 6)
    assert [text.split(" against")[0] for text in section.paragraphs[1:-1]] == [f"P{k}" for k in range(6)]
    snapshot(section.paragraphs[-1])
    figure = section.pictures[0].draw()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"P{k}" for k in range(11)]
    assert [text.get_text() for text in axes.texts if text.get_position()[0] == 0][-1] == "+50.0"


def test_the_picture_shows_each_grouping(tmp_path: Path) -> None:
    section = conclude(Groups(min_jobs=1), six())
    figure = section.pictures[0].draw()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["by processors", "by actual run time", "by user"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["-5.83", "+90.0"]
    assert [text.get_fontweight() for text in figure.axes[0].texts] == ["bold", "normal"]
    assert save_picture(figure, tmp_path / "groups.svg").stat().st_size < 300_000


def jobs_of(rows: list[tuple[int, int, int, int]]) -> Schedule:
    own = workload([(submit, run, run + 1, width, user) for submit, run, width, user in sorted(rows)], machine=93_312)
    return schedule(own, [(13 * k) % 40 for k in range(len(rows))])


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 10**6), st.integers(1, 93_312), st.integers(-1, 9)), min_size=1
    )
)
def test_the_groups_add_up_to_the_whole(rows: list[tuple[int, int, int, int]]) -> None:
    one = jobs_of(rows)
    values = measure(one, ["mean_wait", "mean_bsld"])
    work = float(((one.end - one.start) * one.workload.processors).sum())
    for grouping in GROUPINGS.values():
        sums = grouping.sums(one)
        assert sums.jobs.sum() == len(one)
        assert (sums.jobs > 0).all()
        assert sums.work.sum() == pytest.approx(work)
        assert sums.wait.sum() == pytest.approx(len(one) * values["mean_wait"])
        assert sums.bsld.sum() == pytest.approx(len(one) * values["mean_bsld"])


@pytest.mark.parametrize(
    ("processors", "machine", "label", "short"),
    [
        (1, 100, "1 processor", "1"),
        (2, 100, "2 to 4 processors", "2-4"),
        (4, 4, "2 to 4 processors", "2-4"),
        (64, 100, "17 to 64 processors", "17-64"),
        (65, 100, "65 to 100 processors", "65-100"),
        (65, 65, "65 processors", "65"),
        (93_312, 93_312, "65,537 to 93,312 processors", "65k-93k"),
    ],
)
def test_size_classes(processors: int, machine: int, label: str, short: str) -> None:
    (key,) = GROUPINGS["size"].sums(schedule(workload([(0, 5, 5, processors, 1)], machine), [0])).key
    assert GROUPINGS["size"].names(int(key), machine) == (label, short)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [
        (0, "under 1 min"),
        (59, "under 1 min"),
        (60, "1 to 10 min"),
        (3600, "1 to 6 h"),
        (86_399, "6 to 24 h"),
        (86_400, "24 h or more"),
    ],
)
@pytest.mark.parametrize("ticks", [1, 10**6])
def test_time_classes(seconds: int, label: str, ticks: int) -> None:
    for name, job in (("runtime", (0, seconds, 1, 1, 1)), ("request", (0, 7, max(seconds, 1), 1, 1))):
        grouping = GROUPINGS[name]  # type: ignore[index]
        (key,) = grouping.sums(schedule(workload([job], ticks=ticks), [3])).key
        assert grouping.names(int(key), 4)[0] == label


def test_the_unit_of_the_clock_does_not_matter() -> None:
    coarse, fine = (
        schedule(workload([(0, 30, 60, 1, 7), (10, 7200, 7200, 4, 9)], ticks=ticks), [500, 600]) for ticks in (1, 10**6)
    )
    for grouping in GROUPINGS.values():
        one, other = grouping.sums(coarse), grouping.sums(fine)
        for field in ("key", "jobs", "work", "wait", "bsld"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["colour"]}, "colour grouping groups"),
        ({"by": []}, "empty"),
        ({"by": 5}, "5 texts groups"),
        ({"by": [["user"]]}, "text list user groups"),
        ({"min_jobs": 0}, "min_jobs 0 1 groups"),
        ({"min_jobs": True}, "min_jobs True groups"),
        ({"limit": 3}, "limit min_jobs"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    refused(UsageError, message, make_analysis, "groups", **options)


def test_a_log_that_there_is_not_is_refused_before_the_run() -> None:
    refused(UsageError, "groups kth", conclude, Groups(log="kth"), [pair(0, 0)])


@pytest.fixture(scope="module")
def kth() -> Workload:
    log = read(shared_path("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    return log.select(slice(0, 1500), rebase=True)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_real_jobs_under_every_kind_of_backfilling(kth: Workload, backfill: str) -> None:
    runs = [simulate(kth, resolve(name), Rules(backfill=backfill)) for name in ("FCFS", "SAF")]  # type: ignore[arg-type]
    section: Section = conclude(Groups(), [runs])
    for name in ("by-size", "by-runtime", "by-user"):
        for run in runs:
            rows = [
                cells(table(section, name), group=str(row[0].value), policy=run.policy_name)
                for row in table(section, name).rows
            ]
            own = {row["group"].value: (row["jobs"].value, row["mean wait"].value) for row in rows}
            together = sum(float(jobs) * float(wait) for jobs, wait in own.values()) / len(kth)  # type: ignore[arg-type]
            assert together == pytest.approx(measure(run, ["mean_wait"])["mean_wait"])


def test_at_the_front_are_the_groups_that_differ_and_all_others_are_one_sentence() -> None:
    jobs = workload([(0, 30, 60, 1, 1), (10, 7200, 7200, 4, 2), (20, 30, 60, 1, 1)])
    pairs = [[schedule(jobs, [500, 600, 1500], "BASE"), schedule(jobs, [400, 600, 1400], "NEW")]] * 6
    front = table(conclude(Groups(min_jobs=1), pairs), "who")
    assert front.front
    assert [column.title for column in front.columns] == ["group", "share of jobs", "NEW"]
    assert [(row[0].value, row[2].value, row[2].mark) for row in front.rows] == [
        ("jobs of 1 processor", -100, "better"), ("jobs that run under 1 min", -100, "better"),
        ("user 1", -100, "better"),
    ]  # fmt: skip
    snapshot(front.note)
    # One case has no interval: then nothing is called better.
    alone = table(conclude(Groups(min_jobs=1), pairs[:1]), "who")
    assert {row[2].mark for row in alone.rows} == {""}
    assert alone.note.startswith("No intervals: ")


def test_the_class_that_loses_most_is_shown_also_with_few_jobs() -> None:
    # Short jobs gain; of the long one there are too few for an interval. One case, then six.
    for pairs in ([pair(100, 3600)], six()):
        section = conclude(Groups(by=("size",), min_jobs=2 * len(pairs)), pairs)
        shown = cells(table(section, "who"), group="jobs of 2 to 4 processors")
        assert shown["NEW"].value >= 3600
        assert (shown["NEW"].interval, shown["NEW"].mark) == (None, "")
        named = f"jobs of 2 to 4 processors ({len(pairs)} job{'s' if len(pairs) > 1 else ''}"
        assert f"Too few jobs for an interval, but those that lose most: {named})." in table(section, "who").note
        assert "nothing is known" not in table(section, "who").note
        assert f"Worst hit, but without an interval: {named}, " in section.paragraphs[-1]
        row = cells(table(section, "summary-wait"), policy="NEW")
        assert (row["worst hit"].value, row["its loss"].interval) == ("2 to 4 processors", None)
