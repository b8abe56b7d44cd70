"""The analyses improvement and choices: their numbers by hand, their words, and that they can be drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from evaluations import run_cases
from policyfactory.core.errors import UsageError
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.tuning import ArmShares
from policyfactory.evaluation.picture import area_look, line_look
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.cases import CaseFacts, case_of
from policyfactory.simulation.simulate import Rules, Schedule
from policyfactory.simulation.tuning.tuner import FEEDBACKS, TunedSchedule, Tuner
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.jobs import Workload
from refusals import refused
from snapshots import snapshot

ARMS = tuple(map(resolve, ("FCFS", "SPF", "LPF")))


def busy(seed: int, days: int = 12, n: int = 200, name: str = "log") -> Workload:
    random = np.random.default_rng(seed)
    run_time = random.integers(1, 6 * HOUR, n)
    unknown = np.full(n, -1)
    submit = np.sort(random.integers(0, days * DAY, n))
    return Workload(name, 2, np.arange(n), submit, run_time, run_time, random.integers(1, 3, n), unknown, unknown)


def schedule(submit: Sequence[int], start: Sequence[int], end: Sequence[int]) -> Schedule:
    begin, until, n = np.array(start), np.array(end), len(start)
    unknown, ones = np.full(n, -1), np.ones(n)
    workload = Workload(
        "log", 4, np.arange(n), np.array(submit), until - begin, until - begin + 1, ones, unknown, unknown
    )
    return Schedule(begin, until, np.zeros(n, dtype=np.bool_), workload, "any", Rules())


def evaluation(contenders: Sequence[Any], logs: Sequence[str] = ("log",) * 2) -> Evaluation:
    numbers = [list(logs[:at]).count(log) + 1 for at, log in enumerate(logs)]
    facts = tuple(CaseFacts(log, k, "log", 3, 4, 1.0, None, "0" * 64) for log, k in zip(logs, numbers, strict=True))
    shape = (len(logs), len(contenders))
    none, count = np.zeros(shape), np.zeros(shape, int)
    return Evaluation(facts, tuple(contenders), ("total_wait",), Rules(), none[..., None], none, count, count)


def looked(name: str, contenders: Sequence[Any], workloads: Sequence[Workload], **options: Any) -> Section:
    analysis = make_analysis(name, **options)
    cases = [case_of(one, number, log=one.name) for number, one in enumerate(workloads, 1)]
    result = run_cases(cases, contenders, metrics=["total_wait"], analyses=[analysis])
    return analysis.conclude(result, result.observed[0])


# Improvement. -------------------------------------------------------------------------------------------------------


def test_a_wait_counts_when_its_job_ends() -> None:
    look = make_analysis("improvement", every="hour")
    one = schedule([100, 100, 200], [100, 1100, 2200], [1100, 3700, 9000])
    course = look.observe(case_of(one.workload), one)
    assert course.bin_s == HOUR
    # Waits 0, 1000 and 2000; the first job ends in the first hour after the first submission, 3700 is its last second.
    assert course.wait_s.tolist() == [0.0, 1000.0, 3000.0]


@pytest.mark.parametrize(("span", "bin_s"), [(9 * DAY, HOUR), (10 * DAY, DAY), (26 * WEEK, WEEK)])
def test_time_is_counted_by_the_length_of_the_case(span: int, bin_s: int) -> None:
    one = schedule([0, span], [0, span], [1, span + 1])
    assert make_analysis("improvement").observe(case_of(one.workload), one).bin_s == bin_s


def test_the_curve_ends_at_the_ratio_of_the_sums() -> None:
    look = make_analysis("improvement", every="hour")
    base = [schedule([0, 0], [0, 3600], [3600, 7300]), schedule([0, 0], [0, 1800], [1800, 3000])]
    other = [schedule([0, 0], [1000, 0], [4600, 1000]), schedule([0, 0], [0, 3600], [3600, 9000])]
    seen = [[look.observe(case_of(one.workload), one) for one in pair] for pair in zip(base, other, strict=True)]
    section = look.conclude(evaluation(ARMS[:2]), seen)
    # Totals 3600 and 1800 against 1000 and 3600: 4600 / 5400 - 1.
    row = section.tables[0].rows[0]
    assert row[0].value == "SPF"
    assert row[4].value == pytest.approx(100 * (4600 / 5400 - 1))
    assert row[5].value == pytest.approx(np.quantile([-260_000 / 2700, 180_000 / 2700], 0.1))
    snapshot(section.paragraphs[0])


def test_cases_whose_time_is_counted_differently_are_compared_on_the_coarser() -> None:
    look = make_analysis("improvement")
    long, short = schedule([0, 11 * DAY], [0, 11 * DAY], [1, 11 * DAY + 1]), schedule([0, 0], [0, 7], [7, 9])
    seen = [[look.observe(case_of(one.workload), one)] * 2 for one in (long, short)]
    section = look.conclude(evaluation(ARMS[:2]), seen)
    assert section.tables[0].rows[0][4].value == 0


def test_improvement_of_tuners_against_the_best_in_hindsight() -> None:
    tuners = [Tuner(f"{feedback}, day", ARMS, feedback, DAY) for feedback in ("simulate", "random")]
    section = looked("improvement", [*ARMS, *tuners], [busy(seed) for seed in range(7)])
    assert [picture.name for picture in section.pictures] == ["policies", "tuners"]
    output = section.paragraphs[0]
    snapshot(output)
    assert [row[0].value for row in section.tables[0].rows] == ["SPF", "LPF", "simulate, day", "random, day"]
    assert all(row[4].interval is not None for row in section.tables[0].rows)
    for picture in section.pictures:
        picture.draw().canvas.draw()


def test_improvement_where_nothing_waits_or_nothing_competes() -> None:
    idle = dataclasses.replace(busy(1, n=3), machine=1000)
    snapshot(looked("improvement", ARMS, [idle]).paragraphs, part="1")
    alone = looked("improvement", ARMS[:1], [busy(1)])
    snapshot(alone.paragraphs, part="2")
    assert (alone.pictures, alone.tables[0].rows) == ((), ())
    worse = looked("improvement", [ARMS[0], ARMS[2]], [busy(1)])
    snapshot(worse.paragraphs, part="3")


def test_where_nobody_waits_under_the_baseline_there_is_no_ratio_and_not_a_change_of_nothing() -> None:
    # The other policy waits an hour in each case: no percentage of the baseline's 0 says that.
    contenders = [ARMS[0], ARMS[1]]
    seen = [[schedule([0], [start], [start + HOUR]) for start in (0, HOUR)] for _ in range(7)]
    look = make_analysis("improvement", every="hour")
    kept = [[look.observe(case_of(one.workload), one) for one in row] for row in seen]
    result = look.conclude(evaluation(contenders, ["log"] * 7), kept)
    ((policy, *numbers),) = result.tables[0].rows
    assert policy.value == "SPF"
    assert [(cell.value, cell.interval) for cell in numbers] == [(None, None)] * 6
    snapshot(result.tables[0].note, result.paragraphs)
    # A flat line at 0 % would say the same wrong thing.
    assert result.pictures == ()


def test_options_of_improvement() -> None:
    refused(UsageError, "every year improvement", make_analysis, "improvement", every="year")
    refused(UsageError, "x log improvement", make_analysis("improvement", log="x").check, [case_of(busy(1))], ["FCFS"])


# Choices. -----------------------------------------------------------------------------------------------------------


def shares(choices: Sequence[Sequence[int]]) -> ArmShares:
    return ArmShares("log", "tuner", ("A", "B", "C"), DAY, np.array(choices))


def test_shares_by_hand() -> None:
    two = shares([[0, 0, 1, 1], [0, 1, 1, -1]])
    assert two.shares().tolist() == pytest.approx([100 * 3 / 7, 100 * 4 / 7, 0])
    assert two.shares(0.0, 0.25).tolist() == [100, 0, 0]
    assert two.shares(0.75, 1.0).tolist() == [0, 100, 0]
    assert two.changes == pytest.approx(100 * 2 / 5)
    days, rows = two.over_time(2)
    assert days.tolist() == [0, 2, 4]
    assert rows.tolist() == [[75, 25, 0], [0, 100, 0]]
    assert shares([[2]]).shares(0.5, 0.75).tolist() == [0, 0, 100]
    assert shares([[2]]).changes == 0


def test_choices_in_words_and_tables() -> None:
    look = make_analysis("choices")
    tuner = Tuner("mine", ARMS, "simulate", DAY)
    done = schedule([0], [0], [1])
    fields = {field.name: getattr(done, field.name) for field in dataclasses.fields(Schedule)}
    made = TunedSchedule(
        **fields, choices=np.array([0, 1, 1, 1]), edges=np.arange(5) * DAY, arms=("FCFS", "SPF", "LPF")
    )
    seen = [[look.observe(case_of(done.workload), one) for one in (done, made)]] * 2
    section = look.conclude(evaluation([ARMS[0], tuner]), seen)
    (output,) = section.paragraphs
    snapshot(output)
    course, every = section.tables
    assert [cell.value for cell in course.rows[0]] == [
        "mine",
        "day",
        100 / 3,
        "FCFS 100",
        "SPF 100",
        "SPF 100",
        "SPF 100",
    ]
    assert [column.title for column in every.columns] == ["tuner", "FCFS", "SPF"]
    assert [cell.value for cell in every.rows[0]] == ["mine", 25, 75]


def test_choices_without_a_tuner_say_so() -> None:
    section = looked("choices", ARMS, [busy(1)])
    snapshot(section.paragraphs)


@pytest.mark.slow
def test_choices_of_many_policies_and_logs_can_be_drawn() -> None:
    many = [Policy(f"a policy with the rather long name number {k} of 30", f"p + {k}*q") for k in range(30)]
    tuners = [
        Tuner(f"{feedback} {'with a long name ' * 3}".strip(), tuple(many), feedback, DAY) for feedback in FEEDBACKS
    ]
    section = looked("choices", [*many, *tuners], [busy(1), busy(2, name="other"), busy(3, n=1, name="one job")])
    assert [picture.name for picture in section.pictures] == ["choices-log", "choices-other", "choices-one-job"]
    assert section.tables[0].rows[0][0].value == "log"
    for picture in section.pictures:
        picture.draw().canvas.draw()


def test_what_is_kept_of_a_case_is_small() -> None:
    tuner, workload = Tuner("mine", ARMS, "random", HOUR), busy(1, n=5000)
    done = tuner.run(workload, Rules(), seed=0, number=1)
    kept = make_analysis("choices").observe(case_of(workload), done)
    assert kept.nbytes == len(done.choices)
    assert make_analysis("improvement").observe(case_of(workload), done).wait_s.size < 500


def test_two_dozen_lines_and_three_dozen_areas_are_distinguished() -> None:
    lines = [tuple(map(str, line_look(place).values())) for place in range(24)]
    areas = [tuple(map(str, area_look(place).values())) for place in range(36)]
    assert len(set(lines)) == 24
    assert len(set(areas)) == 36


def test_what_tuners_save_is_an_answer_of_the_report() -> None:
    from policyfactory.evaluation.analyses.tuning import Improvement
    from policyfactory.policy.store import resolve
    from policyfactory.simulation.cases import case_of
    from policyfactory.workload.models.lublin import default_workload

    arms = (resolve("FCFS"), resolve("SPF"))
    for contenders, answered in ((arms, False), ((*arms, Tuner("mine", arms, feedback="random")), True)):
        result = run_cases([case_of(default_workload(jobs=1500, seed=1))], contenders, analyses=[Improvement()])
        section = Improvement().conclude(result, result.observed[0])
        assert bool(section.answers) == answered
        assert section.answers == (section.paragraphs if answered else ())
