"""The Gantt chart: the right jobs, at the right place, in the right words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload

from policyfactory.core.errors import UsageError
from policyfactory.core.picture import save_picture
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.analyses.gantt import Excerpt, Gantt, busiest, draw_gantt, excerpt_of, keep, worst
from policyfactory.policy.store import resolve
from policyfactory.simulation.cases import case_of
from policyfactory.simulation.simulate import Rules, Schedule, simulate
from policyfactory.workload.clean import read
from refusals import refused
from snapshots import snapshot
from support import shared_path

HOUR = 3600
# A machine of 4. Job 1: 3 processors, 2 h. Job 2: 4, 1 h. Job 3: 1, 2 h. Job 4, a day later: 1, 1 h.
JOBS = workload(
    [
        (0, 2 * HOUR, 3 * HOUR, 3, 1),
        (600, HOUR, HOUR, 4, 2),
        (1200, 2 * HOUR, 2 * HOUR, 1, 3),
        (30 * HOUR, HOUR, HOUR, 1, -1),
    ]
)


def strict() -> Schedule:
    return schedule(JOBS, [0, 2 * HOUR - 600, 3 * HOUR - 1200, 0], "STRICT")


def filled() -> Schedule:
    """Job 3 is backfilled beside job 1, and job 2 waits for it."""
    return schedule(JOBS, [0, 2 * HOUR + 600, 0, 0], "FILLED", backfilled=[2])


def excerpt(first: int, last: int, *schedules: Schedule) -> Excerpt:
    names = tuple(one.policy_name for one in schedules)
    return excerpt_of(names, [keep(one) for one in schedules], (first, last), "first")


def drawn(own: Excerpt, k: int) -> list[tuple[int, ...]]:
    result = own.drawn[k]
    return sorted(
        zip(*(getattr(result, name).tolist() for name in ("row", "begin", "end", "low", "high")), strict=True)
    )


def test_rectangles_by_hand() -> None:
    own = excerpt(HOUR, 4 * HOUR, strict(), filled())
    assert drawn(own, 0) == [(0, HOUR, 2 * HOUR, 0, 2), (1, 2 * HOUR, 3 * HOUR, 0, 3), (2, 3 * HOUR, 4 * HOUR, 0, 0)]
    second = 2 * HOUR + 1200
    assert drawn(own, 1) == [(0, HOUR, 2 * HOUR, 0, 2), (1, second, second + HOUR, 0, 3), (2, HOUR, second, 3, 3)]
    assert own.utilisation(0) == pytest.approx(100 * (3 + 4 + 1) / 12)
    assert own.change.tolist() == [0, 1200, 1200 - 3 * HOUR, 0]
    assert own.loser == 1
    assert own.moved(5) == [1, 2]
    assert excerpt(29 * HOUR, 32 * HOUR, strict(), filled()).shown.tolist() == [3]


def test_a_job_on_scattered_processors_has_several_rectangles() -> None:
    jobs = workload([(0, 5, 5, 1, 1), (0, 9, 9, 2, 1), (0, 5, 5, 1, 1), (5, 4, 4, 2, 1)])
    own = excerpt(0, 9, schedule(jobs, [0, 0, 0, 0]))
    assert drawn(own, 0)[-2:] == [(3, 5, 9, 0, 0), (3, 5, 9, 3, 3)]
    assert own.drawn[0].area.tolist() == [5, 18, 5, 4, 4]
    assert own.drawn[0].largest(2).row.tolist() == [0, 1]


def test_the_busiest_stretch_is_where_most_waits() -> None:
    first, last = busiest(keep(strict()), 2 * HOUR)
    assert last - first == 2 * HOUR
    # From 1200 s to 2 h jobs 2 and 3 wait, 5 processors together; after that only job 3.
    assert first <= 1200
    assert last >= 2 * HOUR
    idle = schedule(JOBS, [0, 0, 0, 0])
    assert busiest(keep(idle), HOUR)[0] <= 600  # nothing waits: where most work is done
    assert busiest(keep(idle), 99 * HOUR) == (0, 99 * HOUR)


def test_the_worst_stretch_is_the_wait_of_the_one_that_loses_most() -> None:
    kept = [keep(filled()), keep(strict())]
    first, last = worst(kept, HOUR)
    # Job 3 runs from 1200 s under the first, from 3 h to 5 h under the second.
    assert first == 1200 - (5 * HOUR - 1200) // 20
    assert last == 5 * HOUR + (5 * HOUR - 1200) // 20
    assert worst(kept, 20 * HOUR)[1] - worst(kept, 20 * HOUR)[0] >= 20 * HOUR


def test_the_words_and_the_table() -> None:
    section = conclude(Gantt(first="1h", length="3h"), [[strict(), filled()]])
    snapshot(section.paragraphs)
    rows = [[cell.value for cell in row] for row in table(section, "moved").rows]
    assert rows == [
        ["2", "2", 4, HOUR, "STRICT", 6600, "FILLED", 7800, 1200],
        ["3", "3", 1, 2 * HOUR, "STRICT", 9600, "FILLED", 0, -9600],
    ]
    assert cells(table(section, "moved"), job="2")["change"].mark == "longer"


def test_the_default_is_the_baseline_and_the_one_that_gains_most() -> None:
    best = dataclasses.replace(filled(), policy_name="BEST")
    later = schedule(JOBS, [9000, 15_600, 7800, 0], "LATER")
    section = conclude(Gantt(), [[strict(), later, best]])
    snapshot(section.pictures[0].title, section.paragraphs[0], part="1")
    section = conclude(Gantt(policies="LATER", around="worst"), [[strict(), later, best]])
    assert section.pictures[0].title.endswith("STRICT and LATER")
    snapshot(section.paragraphs[0], part="2")
    section = conclude(Gantt(policies=["BEST", "STRICT"]), [[strict(), later, best]])
    assert section.pictures[0].title.endswith("BEST and STRICT")


def test_only_the_chosen_case_is_kept() -> None:
    case, other = (case_of(JOBS, number, log="log") for number in (2, 1))
    analysis = Gantt(case=2, policies=["STRICT", "FILLED"])
    assert analysis.observe(other, strict()) is None
    assert analysis.observe(case, dataclasses.replace(strict(), policy_name="ELSE")) is None
    kept = analysis.observe(case, strict())
    assert kept is not None
    assert kept.end is None
    killed = strict()
    short = dataclasses.replace(killed, end=killed.end - 1)
    again = analysis.observe(case, short)
    assert again is not None
    assert again.end is not None
    assert again.end.tolist() == short.end.tolist()


def test_one_policy_and_no_difference() -> None:
    section = conclude(Gantt(), [[strict()]])
    snapshot(section.paragraphs[1], part="1")
    assert not section.tables
    assert len(section.pictures[0].draw().axes) == 1
    same = dataclasses.replace(strict(), policy_name="SAME")
    section = conclude(Gantt(), [[strict(), same]])
    snapshot(section.paragraphs[0], part="2")
    assert not section.tables


def test_a_stretch_in_which_nothing_runs() -> None:
    section = conclude(Gantt(first="10h", length="1h"), [[strict(), filled()]])
    snapshot(section.paragraphs[0])
    assert len(section.pictures[0].draw().axes) == 2


def test_the_picture() -> None:
    own = excerpt(0, 6 * HOUR, strict(), filled())
    upper, lower = draw_gantt(own, "wait", 3000).axes
    assert [axes.get_title(loc="left") for axes in (upper, lower)] == ["STRICT: 50 % in use", "FILLED: 50 % in use"]
    assert upper.get_xlim() == lower.get_xlim() == (0, 6)
    assert upper.get_ylim() == (0, 4)
    # Above: job 1 as long, job 2 waits less there, job 3 more; below: the other way round. And job 2's outlines.
    assert [len(axes.patches) for axes in (upper, lower)] == [4, 4]
    assert [patch.get_hatch() for patch in upper.patches] == [None] * 4
    assert [patch.get_hatch() for patch in lower.patches].count("/////") == 1
    assert [text.get_text() for text in upper.texts] == ["job 2"]


def test_users_have_colours() -> None:
    own = excerpt(0, 31 * HOUR, strict(), filled())
    figure = draw_gantt(own, "user", 3000)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["user 1", "user 2", "user 3", "others", "backfilled"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"around": "best"}, "around best gantt"),
        ({"colour": "size"}, "colour size gantt"),
        ({"policies": ["A", "B", "C"]}, "policies different gantt"),
        ({"policies": 5}, "policies 5 gantt"),
        ({"policies": ["A", "A"]}, "two different gantt"),
        ({"first": "1d", "around": "worst"}, "1d worst gantt"),
        ({"length": "0s"}, "length 0s gantt"),
        ({"length": "inf"}, "length inf gantt"),
        ({"first": "inf"}, "first inf gantt"),
        ({"length": 5}, "length 5 1d gantt"),
        ({"length": "long"}, "long duration"),
        ({"rectangles": 1}, "rectangles 1 2 gantt"),
        ({"case": 0}, "case 0 gantt"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    refused(UsageError, message, make_analysis, "gantt", **options)


def test_what_there_is_not_is_refused_before_the_run() -> None:
    refused(UsageError, "SAF STRICT FILLED gantt", conclude, Gantt(policies=["SAF"]), [[strict(), filled()]])
    refused(UsageError, "gantt 9", conclude, Gantt(case=9), [[strict(), filled()]])
    refused(UsageError, "analysis gantt", conclude, Gantt(log=[]), [[strict(), filled()]])  # type: ignore[arg-type]


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_real_schedules_fill_the_picture_and_not_the_disk(backfill: str, tmp_path: Path) -> None:
    log = read(shared_path("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    jobs = log.select(slice(0, 1200), rebase=True)
    runs = [simulate(jobs, resolve(name), Rules(backfill=backfill)) for name in ("FCFS", "SAF")]  # type: ignore[arg-type]
    span = int(max(run.end.max() for run in runs))
    own = excerpt(0, span, *runs)
    for k, run in enumerate(runs):
        # All the work is there, and no two rectangles share a processor at one time.
        assert own.drawn[k].area.sum() == ((run.end - run.start) * jobs.processors).sum()
        order = np.lexsort((own.drawn[k].begin, own.drawn[k].low))
        for processor in range(0, jobs.machine, 9):
            there = [at for at in order if own.drawn[k].low[at] <= processor <= own.drawn[k].high[at]]
            there.sort(key=lambda at: int(own.drawn[k].begin[at]))
            assert (own.drawn[k].end[there][:-1] <= own.drawn[k].begin[there][1:]).all()
    section = conclude(Gantt(length="30d", rectangles=1500), [runs])
    assert "Not drawn: " in section.paragraphs[0]
    assert save_picture(section.pictures[0].draw(), tmp_path / "gantt.svg").stat().st_size < 1_000_000
