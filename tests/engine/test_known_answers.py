"""Small workloads whose schedules were drawn by hand. The drawing is the expected answer: the test reads it.

A column is a second, a row a processor, a letter the job that runs there; what a job of no run time does cannot be
drawn and is written beside it. Both the kernels and the plain simulator are held to the drawings.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from naive.online_cases import plain_schedule, policy
from policyfactory.engine.trials import order_values, pose
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload


@dataclasses.dataclass(frozen=True)
class Case:
    """Jobs as ``letter: submit run request processors``, and the schedule."""

    says: str
    jobs: str
    drawing: str
    order: str = "r"
    rules: Rules = dataclasses.field(default_factory=Rules)
    at_once: dict[str, int] = dataclasses.field(default_factory=dict)


def read(case: Case) -> tuple[list[str], Workload, list[int]]:
    """Return the jobs' letters, the workload, and the starts that are drawn; check the drawing against the jobs."""
    rows = {line.split(":")[0].strip(): [int(x) for x in line.split(":")[1].split()] for line in case.jobs.split(",")}
    lines = case.drawing.split()
    columns = [[line[second] for line in lines if second < len(line)] for second in range(max(map(len, lines)))]
    starts = []
    for letter, (submit, run, request, processors) in rows.items():
        held = [column.count(letter) for column in columns]
        seconds = min(run, request) if case.rules.overrun == "kill" else run
        start = case.at_once[letter] if seconds == 0 else next(at for at, count in enumerate(held) if count)
        assert held == [processors * (start <= at < start + seconds) for at in range(len(columns))], letter
        assert start >= submit
        starts.append(start)
    assert set("".join(lines)) <= {*rows, "."}
    submit, run, request, processors = np.array(list(rows.values())).T
    unknown = np.full(len(rows), -1)
    ids = np.arange(1, len(rows) + 1)
    return list(rows), Workload("drawn", len(lines), ids, submit, run, request, processors, unknown, unknown), starts


EARLY = "A: 0 3 8 3, B: 1 2 2 4, C: 1 6 6 1, D: 2 2 4 1"
OUTLIVED = "A: 0 6 2 3, B: 1 1 1 4, D: 1 1 1 1, C: 3 2 2 1"
WAITING = "A: 0 5 5 2, B: 1 4 4 2, C: 3 1 1 2, D: 4 1 1 2"
ALIKE = "A: 0 3 3 1, B: 1 2 2 1, C: 2 2 2 1"
TOGETHER = "A: 0 3 3 1, B: 1 2 2 1, C: 1 2 2 1"
CANDIDATES = "A: 0 6 6 2, Z: 0 2 2 1, B: 1 1 1 3, C: 1 4 4 1, D: 1 3 3 1"
PROMISED = "A: 0 4 4 2, B: 1 2 2 2, C: 1 2 2 3, D: 2 5 5 1"
GROWING = "A: 0 4 4 1, B: 1 8 8 1, C: 3 1 1 1"
CASES = (
    Case(
        "B is reserved 4. C ends exactly then, and goes ahead.",
        "A: 0 4 4 3, B: 1 2 2 4, C: 1 3 3 1, D: 2 3 3 1",
        """
        AAAABBDDD
        AAAABB...
        AAAABB...
        .CCCBB...
        """,
    ),
    Case(
        "B is reserved 4 of 5 at 4: one is extra. C takes it beyond 4; none is left for D.",
        "A: 0 4 4 3, B: 1 2 2 4, C: 1 6 6 1, D: 1 6 6 1",
        """
        AAAABBDDDDDD
        AAAABB......
        AAAABB......
        ....BB......
        .CCCCCC.....
        """,
    ),
    Case(
        "C goes ahead of B, reserved 8. A ends at 3, not at 8, so C delays B until 7, and D ends by then.",
        EARLY,
        """
        AAADD..BB
        AAA....BB
        AAA....BB
        .CCCCCCBB
        """,
    ),
    Case(
        "The same with known run times: B is reserved 3, nothing goes ahead.",
        EARLY,
        """
        AAABBCCCCCC
        AAABBDD....
        AAABB......
        ...BB......
        """,
        rules=Rules(decide_by="runtime"),
    ),
    Case(
        "A outlives its request, 2. At 3 it counts as ending then, so C, which would end later, does not go ahead.",
        OUTLIVED,
        """
        AAAAAAB..
        AAAAAAB..
        AAAAAAB..
        .D....BCC
        """,
    ),
    Case(
        "The same, killed at the request.",
        OUTLIVED,
        """
        AAB..
        AAB..
        AAB..
        .DBCC
        """,
        rules=Rules(overrun="kill"),
    ),
    Case("Shortest first, no threshold.", WAITING, "AAAAACDBBBB AAAAACDBBBB", "p"),
    Case(
        "Threshold 3: at 5 B has waited 4 and goes first; at 9 both others are overdue and go by submission.",
        WAITING,
        "AAAAABBBBCD AAAAABBBBCD",
        "p",
        Rules(threshold=3),
    ),
    Case(
        "Threshold 4: at 5 B has waited exactly 4, which is not longer; at 6 it has, D not.",
        WAITING,
        "AAAAACBBBBD AAAAACBBBBD",
        "p",
        Rules(threshold=4),
    ),
    Case(
        "At 7 Y has waited longer than 5 and is the head, reserved 10; X was, reserved 20. N, ending at 19, waits.",
        "A: 0 10 10 2, E: 0 20 20 1, Y: 1 9 9 3, X: 3 1 1 4, M: 4 5 30 1, N: 7 12 12 1",
        """
        AAAAAAAAAAYYYYYYYYY.XMMMMM.......
        AAAAAAAAAAYYYYYYYYY.XNNNNNNNNNNNN
        EEEEEEEEEEEEEEEEEEEEX............
        ..........YYYYYYYYY.X............
        """,
        "p",
        Rules(threshold=5),
    ),
    Case("Equal scores: the first submitted.", ALIKE, "AAABBCC", "p"),
    Case("Equal scores, lifo: the last submitted.", ALIKE, "AAACCBB", "p", Rules(ties="lifo")),
    Case("Submitted together: the smaller id.", TOGETHER, "AAABBCC", "p"),
    Case("Submitted together, lifo: the larger id.", TOGETHER, "AAACCBB", "p", Rules(ties="lifo")),
    Case(
        "At 2 one processor is free until B's reservation at 6. The first in the queue that can take it is C.",
        CANDIDATES,
        """
        AAAAAAB...
        AAAAAAB...
        ZZCCCCBDDD
        """,
    ),
    Case(
        "The same, candidates by shortest request: D. At 5 C would end after 6.",
        CANDIDATES,
        """
        AAAAAAB....
        AAAAAAB....
        ZZDDD.BCCCC
        """,
        rules=Rules(backfill_policy=policy("p")),
    ),
    Case(
        "EASY promises the head only: D takes the extra processor, and C, second in the queue, has to wait for it.",
        PROMISED,
        """
        AAAABB.CC
        AAAABB.CC
        ..DDDDDCC
        """,
    ),
    Case(
        "Conservative: C is promised 6, so D does not go ahead.",
        PROMISED,
        """
        AAAABBCC.....
        AAAABBCC.....
        ......CCDDDDD
        """,
        rules=Rules(backfill="conservative"),
    ),
    Case(
        "Strict order: C would fit at once, but waits behind B.",
        "A: 0 3 3 2, B: 0 2 2 2, C: 0 1 1 1",
        """
        AAABB
        AAABB
        ...C.
        """,
        rules=Rules(backfill="none"),
    ),
    Case("One processor: nothing can go ahead.", "A: 0 2 2 1, B: 0 4 4 1, C: 0 1 1 1", "CAABBBB", "p"),
    Case(
        "Z is as wide as the machine and takes no time: it starts and ends at 2, and B starts at 2 as well.",
        "A: 0 2 2 1, Z: 1 0 1 2, B: 1 3 3 2",
        """
        AABBB
        ..BBB
        """,
        at_once={"Z": 2},
    ),
    Case(
        "At 3 A ends and C is submitted, then comes the pass: C is shorter than B.",
        "A: 0 3 3 2, B: 1 2 2 2, C: 3 1 1 2",
        "AAACBB AAACBB",
        "p",
    ),
    Case(
        "At 4 B has waited 3 of 3 + 8, C 1 of 1 + 1: the larger ratio (w + p)/p first.", GROWING, "AAAACBBBBBBBB",
        "-(w + p)/p",
    ),
    Case("The smaller ratio first.", GROWING, "AAAABBBBBBBBC", "(w + p)/p"),
    Case(
        "At 6 H and C have waited longer than 3, D has not: C goes ahead of H, not D, which has the lower score.",
        "A: 0 20 20 2, Z: 0 6 6 1, H: 1 1 1 3, C: 2 10 10 1, D: 5 8 8 1",
        """
        AAAAAAAAAAAAAAAAAAAAH........
        AAAAAAAAAAAAAAAAAAAAH........
        ZZZZZZCCCCCCCCCC....HDDDDDDDD
        """,
        "(w + p)/p",
        Rules(threshold=3),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_schedule_is_the_drawing(case: Case) -> None:
    letters, workload, starts = read(case)
    schedule = simulate(workload, policy(case.order), case.rules)
    assert dict(zip(letters, schedule.start.tolist(), strict=True)) == dict(zip(letters, starts, strict=True))
    assert plain_schedule(workload, policy(case.order), case.rules)[0].tolist() == starts
    ahead = [
        any(
            math.isinf(case.rules.threshold)
            and case.order == "r"
            and (workload.submit[other], other) < (workload.submit[at], at)
            and start < starts[other]
            for other in range(len(starts))
        )
        for at, start in enumerate(starts)
    ]
    if case.order == "r":
        # First come, first served: what starts before one that was submitted earlier was backfilled.
        assert schedule.backfilled.tolist() == ahead


# Trials: strict order, a job at the earliest time that is not before the last start. A is S, the rest is Q.
TRIALS = {
    # C waits for the whole machine, and those behind it for C.
    "CBD": """
        AAAAAAAAAACCBBBBBBBBBBBBBBBBBBBB
        AAAAAAAAAACCDDDDD...............
        AAAAAAAAAACCDDDDD...............
        ..........CC....................
        """,
    # B fits beside A. D would fit at 10, but C is before it.
    "BCD": """
        AAAAAAAAAA............CC.....
        AAAAAAAAAA............CC.....
        AAAAAAAAAA............CCDDDDD
        ..BBBBBBBBBBBBBBBBBBBBCCDDDDD
        """,
    # D starts at 10, so B, behind it, starts at 10 at the earliest, though a processor was free at 2.
    "DBC": """
        AAAAAAAAAABBBBBBBBBBBBBBBBBBBBCC
        AAAAAAAAAADDDDD...............CC
        AAAAAAAAAADDDDD...............CC
        ..............................CC
        """,
}


@pytest.mark.parametrize("order", TRIALS)
def test_the_trial_is_the_drawing(order: str) -> None:
    case = Case("a trial", "A: 0 10 10 3, B: 2 20 20 1, C: 3 2 2 4, D: 4 5 5 2", TRIALS[order])
    letters, workload, starts = read(case)
    slowdowns = [
        max((start - submit + run) / max(run, 10), 1.0)
        for start, submit, run in zip(starts[1:], workload.submit[1:], workload.run_time[1:], strict=True)
    ]
    problem = pose(workload.run_time, workload.processors, workload.submit, workload.machine, 1, 10)
    values = np.empty(1)
    order_values(problem, np.array([[letters.index(letter) - 1 for letter in order]], dtype=np.uint8), values)
    assert values[0] == pytest.approx(sum(slowdowns) / 3, rel=1e-15)
