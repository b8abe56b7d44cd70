"""The longest waits and the threshold, by hand and against the metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import UsageError
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.starvation import Starvation, waits_of
from policyfactory.policy.policy import Policy
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from snapshots import snapshot

HOUR = 3600
JOBS = workload([(0, 600, 900, 1, 7), (60, 600, 900, 2, 8), (120, 30, 60, 4, -1), (180, 600, 900, 1, 7)])


def run(policy: str, *hours: float, threshold: float = math.inf, backfilled: tuple[int, ...] = ()) -> Schedule:
    waits = [round(hour * HOUR) for hour in hours]
    return schedule(JOBS, waits, policy, backfilled=backfilled, rules=Rules(threshold=threshold))


def test_waits_by_hand() -> None:
    one = run("A", 0, 20, 41, 41, threshold=20 * HOUR, backfilled=(1, 3))
    result = waits_of(one, (19 * HOUR, 20 * HOUR, 40 * HOUR, 50 * HOUR))
    assert (result.longest, result.job_id, result.user, result.processors) == (41 * HOUR, 3, -1, 4)
    assert (result.requested, result.run_time) == (60, 30)
    # Longer is strict: the job that waits 20 h is not overdue. One of the two that are was backfilled.
    assert (result.threshold, result.overdue, result.from_head) == (20 * HOUR, 2, 1)
    assert result.beyond.tolist() == [3, 2, 2, 0]


@pytest.mark.parametrize("ticks", [1, 10**6])
def test_a_threshold_between_two_ticks(ticks: int) -> None:
    jobs = workload([(0, 5, 5, 1, 1)] * 3, ticks=ticks)
    one = schedule(jobs, [9, 10, 11], rules=Rules(threshold=9.5))
    assert waits_of(one, ()).overdue == 2


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_p99_and_the_longest_are_the_metrics_own(waits: list[int]) -> None:
    one = schedule(workload([(0, 5, 5, 1, 1)] * len(waits)), [wait * 1000 for wait in waits])
    result, values = waits_of(one, (2500,)), measure(one, ["p99_wait", "max_wait"])
    assert result.p99 == pytest.approx(values["p99_wait"])
    assert result.longest == values["max_wait"]
    assert result.beyond.tolist() == [sum(wait > 2 for wait in waits)]


def test_no_threshold() -> None:
    cases = [[run("A", 0, 1, 21, 200), run("B", 0, 0, 0, 1)]] * 6
    section = conclude(Starvation(), cases)
    snapshot(section.paragraphs)
    row = cells(table(section, "overdue"), policy="A")
    assert "threshold" not in row
    assert (row["over 20h"].value, row["over 20h, share"].value) == (12, 50)
    waits = cells(table(section, "waits"), policy="B")
    assert (waits["longest wait"].value, waits["longest wait, difference"].value) == (HOUR, -199 * HOUR)
    assert waits["longest wait, difference"].mark == "better"
    longest = cells(table(section, "longest"), policy="A")
    assert [longest[name].value for name in ("longest wait", "case", "job", "user")] == [200 * HOUR, "1", "4", "7"]


def test_a_threshold_that_acts_on_some() -> None:
    limit = {"threshold": 20 * HOUR}
    cases = [
        [
            run("FCFS", 0, 1, 21, 0, **limit),
            run("A", 0, 21, 30, 1, backfilled=(1,), **limit),
            run("B", 0, 0, 0, 1, **limit),
        ]
    ] * 2
    section = conclude(Starvation(), cases, formulas={"FCFS": "r"})
    snapshot(section.paragraphs[1])
    row = cells(table(section, "overdue"), policy="A")
    assert (row["threshold"].value, row["overdue"].value, row["from the head"].value) == ("20h", 4, 2)


def test_a_threshold_that_never_acts() -> None:
    section = conclude(Starvation(), [[run("A", 0, 1, 2, 3, threshold=20 * HOUR)]])
    snapshot(section.paragraphs[1])


def test_nobody_waits() -> None:
    section = conclude(Starvation(), [[run("A", 0, 0, 0, 0)]])
    snapshot(section.paragraphs[0])
    assert cells(table(section, "longest"), policy="A")["job"].value is None
    assert not section.pictures


def test_a_policys_own_threshold_is_the_one_that_held() -> None:
    jobs = workload([(0, 100, 100, 4, 1), (1, 50, 50, 4, 1), (2, 10, 10, 4, 1)])
    own, none = (simulate(jobs, Policy("SPF", "p", threshold=seconds)) for seconds in (98.0, math.inf))
    # At 100 the second job has waited 99 s, the third 98: only the second is overdue, and goes first.
    assert own.start.tolist() == [0, 100, 150]
    assert none.start.tolist() == [0, 110, 100]
    assert (waits_of(own, ()).threshold, waits_of(own, ()).overdue) == (98, 2)
    assert waits_of(none, ()).threshold == math.inf
    section = conclude(Starvation(), [[run("A", 0, 1, 2, 3), run("B", 0, 1, 2, 30, threshold=20 * HOUR)]])
    snapshot(section.paragraphs[1])
    assert cells(table(section, "overdue"), policy="A")["overdue"].value is None
    assert cells(table(section, "overdue"), policy="B")["overdue"].value == 1


def test_the_picture_counts_jobs_and_shows_the_threshold() -> None:
    cases = [[run("A", 0, 1, 21, 200, threshold=20 * HOUR), run("B", 0, 0, 0, 1, threshold=20 * HOUR)]]
    (axes,) = conclude(Starvation(), cases).pictures[0].draw().axes
    upper = max(axes.get_lines()[:2], key=lambda line: line.get_xdata()[-1])
    x, y = upper.get_xdata(), upper.get_ydata()
    assert x[-1] == 200 * HOUR
    assert y[np.searchsorted(x, 30 * 60)] == 75  # three of four jobs wait longer than half an hour
    assert y[np.searchsorted(x, 30 * HOUR)] == 25
    assert [text.get_text() for text in axes.texts] == ["threshold 20h"]


@pytest.mark.parametrize("beyond", [["never"], ["inf"], [20], 20])
def test_options_are_checked(beyond: object) -> None:
    with pytest.raises(UsageError):
        make_analysis("starvation", beyond=beyond)


def test_lengths_of_ones_own() -> None:
    section = conclude(Starvation(beyond=("2h", "30m")), [[run("A", 0, 1, 21, 200)]])
    snapshot(section.paragraphs[1], conclude(Starvation(beyond=()), [[run("A", 0, 1, 2, 3)]]).paragraphs[1])
