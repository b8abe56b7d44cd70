"""The analyses of paper CCGrid'19: weekly, delayed, slowdown-classes, backfilled, premature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hand_made
import numpy as np
import pytest

from evaluations import run_cases
from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.picture import svg_bytes
from policyfactory.core.text import WEEK
from policyfactory.evaluation.analyses import make_analysis, slowdowns
from policyfactory.evaluation.analyses.analysis import LogView
from policyfactory.evaluation.analyses.weekly import weekly_course
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section, Table
from policyfactory.simulation.cases import Case, case_of
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import Estimate, estimate_ratio
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import UserWeeks
from refusals import refused
from snapshots import snapshot
from support import NIGHTLY

MINE = ("weekly", "delayed", "slowdown-classes", "backfilled", "premature")


def jobs(submit: Sequence[int], run_time: Sequence[int], processors: Sequence[int], machine: int = 4) -> Workload:
    n = len(submit)
    requested = np.maximum(run_time, 1)
    columns = [np.array(column) for column in (submit, run_time, requested, processors)]
    unknown = np.full(n, -1)
    return Workload("toy", machine, np.arange(1, n + 1), *columns, unknown, unknown)


def scheduled(start: Sequence[int], workload: Workload, backfilled: Sequence[int] = ()) -> Schedule:
    """Return a schedule that nobody made."""
    flags = np.zeros(len(workload), dtype=np.bool_)
    flags[list(backfilled)] = True
    begin = np.array(start)
    return Schedule(begin, begin + workload.run_time, flags, workload, "by hand", Rules())


def observed(name: str, schedule: Schedule, **options: Any) -> Any:
    return make_analysis(name, **options).observe(case_of(schedule.workload), schedule)


def run(
    cases: Sequence[Case | Workload], policies: Sequence[str | Policy], *names: Any, rules: Rules | None = None
) -> tuple[Evaluation, list[Section]]:
    analyses = tuple(make_analysis(name) if isinstance(name, str) else name for name in names)
    contenders = [resolve(policy) if isinstance(policy, str) else policy for policy in policies]
    metrics = ("mean_wait", "mean_bsld", "mean_pp_bsld", "backfilled")
    evaluation = run_cases(cases, contenders, metrics=metrics, rules=rules, analyses=analyses)
    return evaluation, [one.conclude(evaluation, seen) for one, seen in zip(analyses, evaluation.observed, strict=True)]


def column(table: Table, title: str) -> list[Any]:
    at = [column.title for column in table.columns].index(title)
    return [row[at].value for row in table.rows]


@pytest.fixture(scope="module")
def kth(shared: Callable[[str], Path]) -> Workload:
    return read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))


@pytest.fixture(scope="module")
def resamples(kth: Workload) -> list[Case]:
    history = UserWeeks(kth)
    rules = Rules(threshold=3.0 * int(kth.requested_time.max()), overrun="kill")
    return [
        Case("kth", number, "resample", lambda n=number: history.sample(20, 1, n), rules=rules)
        for number in range(1, 9)
    ]


@pytest.fixture(scope="module")
def ours(resamples: list[Case]) -> tuple[Evaluation, list[Section]]:
    return run(resamples, ["FCFS", "SPF", "SQF", "SAF"], *MINE)


# Weekly. -------------------------------------------------------------------------------------------------------------


def test_weeks_by_hand() -> None:
    # Ends in weeks 0, 1 and 3; the last submission is in week 1, so that the third job counts there.
    workload = jobs([0, 10, WEEK], [100, WEEK, 2 * WEEK], [1, 1, 1])
    schedule = scheduled([0, 60, WEEK + 600], workload)
    np.testing.assert_array_equal(
        observed("weekly", schedule, metrics=["mean_wait"]), [[1.0, 2.0], [0.0, 50.0 + 600.0]]
    )
    by_submission = observed("weekly", schedule, metrics="mean_wait", cumulative=False)
    np.testing.assert_array_equal(by_submission, [[2.0, 1.0], [50.0, 600.0]])


def test_weeks_are_counted_from_that_of_the_first_submission() -> None:
    workload = jobs([5 * WEEK + 3, 6 * WEEK], [10, 10], [1, 1])
    assert observed("weekly", scheduled(workload.submit.tolist(), workload)).shape == (4, 2)


def test_a_span_without_end_has_a_bounded_number_of_weeks() -> None:
    workload = jobs([0, 10**15], [10, 10], [1, 1])
    kept = observed("weekly", scheduled(workload.submit.tolist(), workload))
    assert kept.shape[1] == 5_200
    assert kept[0].sum() == 2


def test_a_cumulative_curve_ends_at_the_mean_over_all_jobs(ours: tuple[Evaluation, list[Section]]) -> None:
    evaluation, (section, *_) = ours
    for at, metric in enumerate(("mean_wait", "mean_bsld", "mean_pp_bsld")):
        table, every = section.tables[at], section.tables[3 + at]
        # 20 weeks of 4 policies; the last ones are the ends.
        assert len(every.rows) == 80
        assert column(every, "median")[-4:] == column(table, "at the end")
        medians = np.median(evaluation.matrix("kth", metric), axis=0)
        np.testing.assert_allclose(column(table, "at the end"), medians, rtol=1e-12)
        low, high = np.quantile(evaluation.matrix("kth", metric), [0.1, 0.9], axis=0)
        np.testing.assert_allclose(column(table, "10 %"), low, rtol=1e-12)
        np.testing.assert_allclose(column(table, "90 %"), high, rtol=1e-12)
    marks = [row[1].mark for row in section.tables[1].rows]
    # What SQF gains varies more from draw to draw than the other two.
    assert marks == ["", "better", "no difference", "better"]
    snapshot(section.paragraphs[0])


def test_the_week_from_which_the_order_holds() -> None:
    weekly = make_analysis("weekly", metrics=["mean_wait"])
    workload = jobs([0, WEEK, 2 * WEEK], [1, 1, 1], [1, 1, 1])
    # Cumulative means of 3 weeks: the second policy is better from the second week on.
    first = scheduled([0, WEEK + 30, 2 * WEEK + 30], workload)
    second = scheduled([10, WEEK + 10, 2 * WEEK + 10], workload)
    seen = [[weekly.observe(case_of(workload), one) for one in (first, second)]]
    evaluation, _ = run([workload], ["FCFS", "SPF"])
    section = weekly.conclude(evaluation, seen)
    snapshot(section.paragraphs)
    assert section.tables[0].rows[0][1].interval is None


def test_plain_weeks_say_how_often_the_best_policy_is_the_best() -> None:
    weekly = make_analysis("weekly", metrics=["mean_wait"], cumulative=False)
    workload = jobs([0, WEEK, 2 * WEEK, 3 * WEEK], [1, 1, 1, 1], [1, 1, 1, 1])
    first = scheduled([0, WEEK + 90, 2 * WEEK, 3 * WEEK], workload)
    second = scheduled([10, WEEK + 10, 2 * WEEK + 10, 3 * WEEK], workload)
    seen = [[weekly.observe(case_of(workload), one) for one in (first, second)]]
    evaluation, _ = run([workload], ["FCFS", "SPF"])
    section = weekly.conclude(evaluation, seen)
    # The fourth week does not count: nobody waits. SPF: 10, 10, 10, 0; FCFS: 0, 90, 0, 0.
    snapshot(section.paragraphs[0])
    assert column(section.tables[0], "best week") == pytest.approx([200 / 3, 100 / 3])


def test_cases_of_unequal_length_and_weeks_without_jobs() -> None:
    short, long = jobs([0, 5], [1, 1], [1, 1]), jobs([0, 3 * WEEK], [1, 1], [1, 1])
    cases = [case_of(short, 1, log="toy", kind="window"), case_of(long, 2, log="toy", kind="window")]
    for cumulative in (True, False):
        evaluation, (section,) = run(cases, ["FCFS"], make_analysis("weekly", cumulative=cumulative))
        assert "4 weeks" in section.paragraphs[0]
        assert svg_bytes(section.pictures[0].draw())
    # Jobs and sums of each week: three weeks, of which the second has no job, and a case that has one.
    kept = [[np.array([[2.0, 0.0, 1.0], [2.0, 0.0, 3.0]])], [np.array([[3.0], [6.0]])]]
    course = weekly_course(LogView(evaluation, "toy", kept), "mean_wait", 1, cumulative=False)
    np.testing.assert_array_equal(course.middle, [[1.5, np.nan, 3.0]])


# Delayed. ------------------------------------------------------------------------------------------------------------


def test_the_most_delayed_jobs_by_hand() -> None:
    # Bounded slowdowns 1, 2, 3, 3, 1 with run times of 10 s.
    workload = jobs([0] * 5, [10] * 5, [4, 2, 3, 1, 4])
    schedule = scheduled([0, 10, 20, 20, 0], workload)
    assert observed("delayed", schedule, count=2).processors.tolist() == [3, 1]
    # Of equal slowdowns the first.
    assert observed("delayed", schedule, count=1).processors.tolist() == [3]
    seen = observed("delayed", schedule, count=100)
    assert seen.processors.tolist() == [3, 1, 2]
    assert (seen.least, seen.typical) == (2.0, 3.0)
    assert observed("delayed", schedule, count=4).processors.tolist() == [3, 1, 2]


def test_sqf_delays_large_jobs_on_kth(ours: tuple[Evaluation, list[Section]]) -> None:
    _, (_, section, *_) = ours
    middle = column(section.tables[0], "middle")
    assert middle[2] > 2 * middle[0]
    # Eight logs of twenty weeks do not show it: from draw to draw the sizes vary as much.
    snapshot(section.paragraphs[0])


# Slowdown classes. ---------------------------------------------------------------------------------------------------


def test_classes_by_hand() -> None:
    # Run times of 10 s; slowdowns 1, just above 1, 10, 99.9, 100.
    workload = jobs([0] * 5, [10] * 5, [1] * 5)
    schedule = scheduled([0, 1, 90, 989, 990], workload)
    assert observed("slowdown-classes", schedule).tolist() == [1, 1, 2, 1]
    assert observed("slowdown-classes", schedule, edges=[1.05, 9]).tolist() == [1, 0, 1, 3]


def test_shares_add_up_and_say_what_saf_does_on_kth(ours: tuple[Evaluation, list[Section]]) -> None:
    _, (_, _, section, *_) = ours
    table = section.tables[0]
    for row in table.rows:
        assert sum(cell.value for cell in row[1:]) == pytest.approx(100)
    worst = column(table, "100 and more")
    # The paper: up to 2.8 times fewer such jobs under SAF than under FCFS.
    assert 1.3 < worst[0] / worst[3] < 2.8
    assert table.rows[3][-1].mark == "better"
    snapshot(section.paragraphs[0])


# Backfilled. ---------------------------------------------------------------------------------------------------------


def test_backfilled_jobs_are_those_of_the_metric(ours: tuple[Evaluation, list[Section]]) -> None:
    evaluation, (_, _, _, section, _) = ours
    means = evaluation.matrix("kth", "backfilled").mean(axis=0)
    np.testing.assert_allclose(column(section.tables[0], "backfilled jobs"), means)
    against = column(section.tables[0], "against FCFS")
    assert against[0] is None
    np.testing.assert_allclose(against[1:], 100 * (means[1:] / means[0] - 1))
    snapshot(section.paragraphs[0])


def test_no_job_is_backfilled_under_sqf_without_a_threshold(kth: Workload) -> None:
    workload = kth.select(slice(0, 4000))
    _, (section,) = run([workload], ["FCFS", "SQF"], "backfilled")
    snapshot(section.paragraphs[0], part="1")
    assert column(section.tables[0], "backfilled jobs")[1] == 0
    _, (other,) = run([workload], ["SQF", "FCFS"], "backfilled")
    snapshot(other.paragraphs[0], part="2")
    assert column(other.tables[0], "against SQF") == [None, None]


def test_each_change_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    estimated: list[Estimate] = []

    def counting(*values: FloatArray) -> Estimate:
        estimated.append(estimate_ratio(*values))
        return estimated[-1]

    monkeypatch.setattr(slowdowns, "estimate_ratio", counting)
    short = hand_made.workload([(0, 1, 1, 1, 1)] * 4)
    rows = {"A": [0, 1], "B": [0], "C": [0, 1, 2]}
    case = [hand_made.schedule(short, [0] * 4, name, backfilled=flags) for name, flags in rows.items()]
    section = hand_made.conclude(make_analysis("backfilled"), [case] * 7)
    assert column(section.tables[0], "against A") == [None, -50, 50]
    assert len(estimated) == len(rows)


def test_without_backfilling_the_section_says_so() -> None:
    _, (section,) = run([jobs([0], [1], [1])], ["FCFS"], "backfilled", rules=Rules(backfill="none"))
    snapshot(section.paragraphs)


# Premature. ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    # notes/SWF.md section 7, row 2; the paper's own percentages cannot be had from these logs.
    ("file", "percent"),
    [
        ("KTH-SP2-1996-2.1-cln", 8.27),
        ("HPC2N-2002-2.1-cln", 18.41),
        ("SDSC-BLUE-2000-4.2-cln", 15.38),
        ("CEA-Curie-2011-2.1-cln", 43.18),
    ],
)
def test_shares_of_premature_jobs_are_those_measured_on_the_logs(
    shared: Callable[[str], Path], file: str, percent: float
) -> None:
    workload = read(shared(f"traces/{file}.swf.gz"))
    kept = observed("premature", scheduled(workload.submit, workload))
    assert kept[0] + kept[1] == len(workload)
    assert 100 * kept[0] / len(workload) == pytest.approx(percent, abs=0.0051)


def test_premature_jobs_by_hand() -> None:
    workload = jobs([0, 0, 0, 0], [10, 10, 100, 0], [1, 1, 1, 1])
    requested = np.array([1000, 999, 1000, 1000])
    workload = Workload(
        "toy", 4, workload.job_id, workload.submit, workload.run_time, requested, *[workload.processors] * 3
    )
    # Slowdowns 4, 2, 1; the job of no run time is neither.
    kept = observed("premature", scheduled([30, 10, 0, 500], workload))
    assert kept.tolist() == [1.0, 2.0, 4.0, 1.5]
    assert observed("premature", scheduled([30, 10, 0, 500], workload), ratio=10).tolist()[:2] == [3.0, 0.0]


def test_the_ratio_of_premature_to_other_jobs_beside_the_published_one(resamples: list[Case]) -> None:
    published = {"kth": {"share": 12.4, "FCFS": 8.69, "SPF": 12.09}}
    analysis = make_analysis("premature", published=published, source="table IV")
    _, (section,) = run(resamples, ["FCFS", "SPF"], analysis)
    shares, ratios = section.tables
    assert column(shares, "published") == [12.4]
    assert column(ratios, "published") == [8.69, 12.09]
    assert [one.help for one in ratios.columns][-1] == "table IV"
    snapshot(section.paragraphs[1])
    assert ratios.rows[1][1].mark == "higher"


# All of them. --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("weekly", {"metrics": ["max_wait"]}),
        ("weekly", {"metrics": []}),
        ("weekly", {"metrics": 5}),
        ("weekly", {"cumulative": "no"}),
        ("delayed", {"count": 0}),
        ("delayed", {"count": 2.5}),
        ("slowdown-classes", {"edges": []}),
        ("slowdown-classes", {"edges": [100, 10]}),
        ("slowdown-classes", {"edges": [1, 10]}),
        ("slowdown-classes", {"edges": ["x"]}),
        ("slowdown-classes", {"edges": 7}),
        ("slowdown-classes", {"edges": [2, 3, 4, 5, 6, 7, 8]}),
        ("premature", {"ratio": 1}),
        ("premature", {"ratio": "100"}),
        ("premature", {"published": {"kth": 3}}),
        ("premature", {"published": {"kth": {"FCFS": "x"}}}),
        ("backfilled", {"count": 3}),
    ],
)
def test_an_invalid_option_is_refused(name: str, options: dict[str, Any]) -> None:
    refused(UsageError, f"{name} {next(iter(options))}", make_analysis, name, **options)


def test_published_values_of_a_policy_that_is_not_there_are_refused() -> None:
    analysis = make_analysis("premature", published={"kth": {"share": 12.4, "FCFS": 8.69, "SAF": 11.41}})
    analysis.check([], ["FCFS", "SAF"])
    refused(UsageError, "published.kth SAF FCFS SPF premature", analysis.check, [], ["FCFS", "SPF"])


@pytest.mark.parametrize("name", MINE)
def test_what_is_kept_is_small_and_refers_to_no_schedule(name: str, kth: Workload) -> None:
    import pickle

    kept = observed(name, scheduled(kth.submit + 100, kth))
    assert len(pickle.dumps(kept)) < 4_000
    arrays = [value for value in (kept if isinstance(kept, tuple) else [kept]) if isinstance(value, np.ndarray)]
    assert all(array.base is None for array in arrays)


def test_every_section_has_words_tables_and_pictures_that_draw(ours: tuple[Evaluation, list[Section]]) -> None:
    _, sections = ours
    for section, name in zip(sections, MINE, strict=True):
        assert section.name == name
        assert section.paragraphs
        assert all(len(row) == len(table.columns) for table in section.tables for row in table.rows)
        drawn = [svg_bytes(picture.draw()) for picture in section.pictures]
        # Drawn again, by day the first of each: the same bytes.
        again = section.pictures if NIGHTLY else section.pictures[:1]
        assert [svg_bytes(picture.draw()) for picture in again] == drawn[: len(again)]


def test_no_effect_and_awkward_names() -> None:
    # Nobody waits; 7 windows, so that there are intervals; two logs with names that are not words.
    cases = [
        case_of(jobs([0, 1, WEEK], [5, 5, 5], [1, 1, 2], 10**6), number, log=log, kind="window")
        for log in ("<b>&amp;$x$", "n" * 300)
        for number in range(1, 8)
    ]
    policies = [Policy("FCFS", "r"), Policy("<script>", "p"), Policy("$\\frac{1}$ " + "long " * 17 + "name", "q")]
    _, sections = run(cases, policies, *MINE, make_analysis("weekly", cumulative=False))
    weekly, delayed, classes, backfilled, premature, plain = (section.paragraphs for section in sections)
    assert weekly[0].count("it is the same under all policies") == 3
    snapshot(delayed[0], classes[0], backfilled[1], premature[1], plain[0])
    for section in sections:
        for picture in section.pictures:
            assert svg_bytes(picture.draw())


def test_one_case_has_no_intervals_and_the_words_say_so(kth: Workload) -> None:
    _, sections = run([kth.select(slice(0, 2000))], ["FCFS", "SPF"], *MINE)
    for section in sections:
        assert all(
            cell.interval is None and not cell.mark for table in section.tables for row in table.rows for cell in row
        )
    for section in sections[1:]:
        assert "No interval of a single case (draw logs with --resamples)." in " ".join(section.paragraphs)


def test_a_policy_alone_is_described(kth: Workload) -> None:
    schedule = simulate(kth.select(slice(0, 500)), resolve("SAF"))
    assert len(schedule) == 500
    _, sections = run([kth.select(slice(0, 500))], ["SAF"], *MINE)
    for section in sections:
        assert "against" not in " ".join(section.paragraphs).lower()
        assert all(svg_bytes(picture.draw()) for picture in section.pictures)
