"""Slurm's passes, drawn by hand: when jobs are looked at, who keeps whom back, and what the plan lets pass.

Times are seconds from the start of slurmctld. With Slurm's defaults its first pass is at 3 (batch_sched_delay), one
over the whole queue every 60 s, backfilling every 30 s, planned in steps of 60 s.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from naive.slurm import Job, State, Waiting, wanted_now
from naive.slurm import Running as Runs
from naive.slurm_cases import IMPLEMENTATIONS, TIMES, TIMES_OF_OTHER_KERNEL, batch, job, scheduling
from policyfactory.site.model import VERSIONS, NodeGroup, Outage, Partition, Priority, Site

# The fast one does not tell nodes, and has one turn-round for all.
PLAIN_ONLY = {"test_a_blocked_partition_takes_its_nodes_from_the_others", "test_a_turn_round_can_be_one_jobs_own"}
NODES_FAIL = {"test_a_task_whose_node_failed_makes_room_in_its_array"}
Simulate = Callable[..., dict[int, object]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    plain_only = metafunc.function.__name__ in PLAIN_ONLY
    times = TIMES_OF_OTHER_KERNEL if metafunc.function.__name__ in NODES_FAIL else TIMES
    metafunc.parametrize("simulate", IMPLEMENTATIONS if plain_only else times)


def starts(schedule: dict[int, object]) -> list[int]:
    return [placed.start for _, placed in sorted(schedule.items())]


def by(schedule: dict[int, object]) -> list[str]:
    return [placed.by for _, placed in sorted(schedule.items())]


def test_a_submission_is_looked_at_three_seconds_after_the_last_pass(simulate: Simulate) -> None:
    # passes:  3 (0 + 3)   10 (longer than 3 s since the last)   13 (10 + 3)
    jobs = [job(1, 0, 500, 10), job(2, 10, 500, 10), job(3, 11, 500, 10)]
    assert starts(simulate(batch(4), jobs, begin=0)) == [3, 10, 13]


def test_a_pass_that_finds_an_empty_queue_counts_too(simulate: Simulate) -> None:
    # passes: 60 (whole queue)   61 (backfilling starts 1)   63 (60 + 3, asked for by 1: nothing to do)   66 (63 + 3)
    jobs = [job(1, 61, 500, 10), job(2, 64, 500, 10)]
    assert starts(simulate(batch(4), jobs, begin=0)) == [61, 66]


def test_the_end_of_a_job_is_a_pass_at_once(simulate: Simulate) -> None:
    # 2 nodes   1 1 1|2 2 2      1 ends at 23
    jobs = [job(1, 0, 20, 10, 2), job(2, 0, 20, 10, 2)]
    assert starts(simulate(batch(2), jobs, begin=0)) == [3, 23]
    # With a turn-round its nodes are free 5 s later, and only then is there a pass.
    assert starts(simulate(batch(2), jobs, begin=0, turnround=5)) == [3, 28]


def test_a_turn_round_can_be_one_jobs_own(simulate: Simulate) -> None:
    # node 1   1 1 1|. . . 4 4     1 ends at 23 and is gone at 28
    # node 2   2 2 2 2 2|3 3 3     2 ends at 26 and is gone at once, so that 3 gets its node
    jobs = [job(1, 0, 20, 10), job(2, 0, 23, 10), job(3, 0, 20, 10), job(4, 0, 20, 10)]
    placed = simulate(batch(2), jobs, begin=0, turnround={1: 5, 2: 0, 3: 0, 4: 0})
    assert [placed[number].start for number in (1, 2, 3, 4)] == [3, 3, 26, 28]
    assert [placed[number].nodes for number in (3, 4)] == [(1,), (0,)]


def test_a_pass_looks_at_one_job_more_than_the_queue_depth(simulate: Simulate) -> None:
    # 1 and 2 in the pass at 3; 3 in that over the whole queue at 60
    site = batch(4, **scheduling(default_queue_depth=1, backfill=False))
    assert starts(simulate(site, [job(i, 0, 500, 10) for i in (1, 2, 3)], begin=0)) == [3, 3, 60]


def test_the_depth_of_a_partition_holds_in_every_pass(simulate: Simulate) -> None:
    # one of a (1) and one of b (3) at 3, then 2 in the next pass
    parts = (Partition("a", exclusive=True), Partition("b", exclusive=True))
    site = batch(4, partitions=parts, **scheduling(partition_job_depth=1, backfill=False))
    jobs = [job(1, 0, 500, 10, partition="a"), job(2, 0, 500, 10, partition="a"), job(3, 0, 500, 10, partition="b")]
    assert starts(simulate(site, jobs, begin=0)) == [3, 60, 3]


def test_so_many_starts_in_a_pass(simulate: Simulate) -> None:
    site = batch(4, **scheduling(sched_max_job_start=2, backfill=False))
    assert starts(simulate(site, [job(i, 0, 500, 10) for i in (1, 2, 3)], begin=0)) == [3, 3, 60]


# left n1 n2, right n3 n4, all: every node
#   n1   1 1 1 1 1 1|2 2          2 needs both of left's nodes: left is blocked, and its nodes for all
#   n2   . . . . . .|2 2
#   n3   3 3|4 4 4 4              right is not; 4 (two nodes of all) waits for the end of 3, although n2, n4 are free
#   n4   . .|4 4 4 4
THREE_PARTITIONS = (
    Partition("left", "n[1-2]", exclusive=True),
    Partition("right", "n[3-4]", exclusive=True),
    Partition("all", exclusive=True),
)


def test_a_blocked_partition_takes_its_nodes_from_the_others(simulate: Simulate) -> None:
    jobs = [
        job(1, 0, 100, 10, partition="left"),
        job(2, 0, 50, 10, 2, partition="left"),
        job(3, 0, 30, 10, partition="right"),
        job(4, 0, 70, 10, 2, partition="all"),
    ]
    schedule = simulate(batch(4, partitions=THREE_PARTITIONS, **scheduling(backfill=False)), jobs, begin=0)
    assert starts(schedule) == [3, 103, 3, 33]
    assert schedule[4].nodes == (2, 3)


def test_the_higher_tier_is_looked_at_first(simulate: Simulate) -> None:
    # Submitted later and of a lower priority, but of the higher tier: 2 before 1.
    parts = (Partition("low", exclusive=True), Partition("high", tier=2, exclusive=True))
    jobs = [job(1, 0, 20, 10, 2, partition="low", site_factor=900), job(2, 1, 20, 10, 2, partition="high")]
    assert starts(simulate(batch(2, partitions=parts), jobs, begin=0)) == [23, 3]


def test_the_order_is_priority_then_submission_then_number(simulate: Simulate) -> None:
    # all of 2 nodes: 3 (9), then 4 (submitted first), 1, 2
    jobs = [
        job(1, 1, 20, 10, 2, site_factor=5),
        job(2, 1, 20, 10, 2, site_factor=5),
        job(3, 2, 20, 10, 2, site_factor=9),
        job(4, 0, 20, 10, 2, site_factor=5),
    ]
    assert starts(simulate(batch(2), jobs, begin=0)) == [43, 63, 3, 23]


def test_a_dependency_and_a_begin_time(simulate: Simulate) -> None:
    # 2 starts with the end of 1; the coming of 100 is nobody's event: 3 waits for the pass at 120
    jobs = [job(1, 0, 20, 10), job(2, 0, 20, 10, after=1), job(3, 0, 20, 10, eligible=100)]
    assert starts(simulate(batch(4), jobs, begin=0)) == [3, 23, 120]


def test_a_job_waits_for_another_until_the_nodes_of_that_one_are_clean(simulate: Simulate) -> None:
    # 1 ends at 23, its node is clean at 33. Of 4 nodes two are free all the time, 3 starts with its submission.
    jobs = [job(1, 0, 20, 10), job(2, 0, 20, 10, after=1), job(3, 25, 20, 10), job(4, 26, 20, 10, after=1)]
    assert starts(simulate(batch(4), jobs, begin=0, turnround=10)) == [3, 33, 25, 33]


# 8 nodes, of which 1 has 3 for 10 minutes and 2 has 3 for 20; at 30:
#   3 (4 nodes, 30 min) can start at 603, on n1 n2 n3 n7;   4 (4 nodes, 10 min) at 1203, on n4 n5 n6 n8
#   5 (1 node, 30 min) would keep 4 back on n8 and 3 on n7: waits until 4 has ended;   6 (1 node, 5 min) is over by then
EIGHT = [
    job(1, 0, 600, 10, 3),
    job(2, 0, 1200, 20, 3),
    job(3, 1, 1800, 30, 4),
    job(4, 1, 600, 10, 4),
    job(5, 1, 1800, 30),
    job(6, 1, 300, 5),
]


def test_every_job_gets_a_reservation(simulate: Simulate) -> None:
    schedule = simulate(batch(8), EIGHT, begin=0)
    assert starts(schedule) == [3, 3, 603, 1203, 1803, 30]
    assert by(schedule) == ["main", "main", "main", "main", "main", "backfill"]


def test_only_the_first_of_a_partition_gets_one(simulate: Simulate) -> None:
    # EASY: 5 may keep 4 back. On n8 until 1830: 4 starts then, on n4 n5 n6 n8.
    schedule = simulate(batch(8, **scheduling(bf_job_part_count_reserve=1)), EIGHT, begin=0)
    assert starts(schedule) == [3, 3, 603, 1830, 30, 30]


@pytest.mark.parametrize(("minutes", "expected"), [(11, [687, 87]), (12, [660, 720])])
def test_ends_of_running_jobs_are_seen_in_batches(simulate: Simulate, minutes: int, expected: list[int]) -> None:
    # slurmctld starts at 57, so that 1, 2, 3 start at 60; 1 ends early. At 87, 4 needs 2 nodes:
    #   n1   1|5 5 5 5.|4 4      2 is over at 660, and so the first batch of ends is that up to 690 + 30 = 720
    #   n2   2 2 2 2 2|. 4 4     3 (11 min) belongs to it: 4 is planned for 720, and 5 (10 min, until 687) may pass
    #   n3   3 3 3 3 3 3|        3 (12 min, until 780) does not: 4 is planned for 660, and 5 may not
    # Since 26.05 only the jobs on its own nodes count, n1 and n2, from which none is taken until 660.
    if simulate.version == VERSIONS[-1]:
        expected = [660, 720]
    jobs = [job(1, 57, 10, 60), job(2, 57, 600, 10), job(3, 57, minutes * 60, minutes), job(4, 61, 60, 1, 2)]
    assert starts(simulate(batch(3), [*jobs, job(5, 62, 600, 10)], begin=57))[3:] == expected


def test_whether_a_job_that_ends_when_it_is_looked_from_is_gone(simulate: Simulate) -> None:
    # Nodes of two cores; 4 may use n1 to n4, all others n3 to n6. slurmctld starts at 57; backfilling at 87:
    #   n1, n2           4 is planned from 660 on, on n1 n2 n3
    #   n3, n4   1 1|    5 found n3 n4 at 660, of which 4 has n3, and is looked for again from 660 on, where 1 just
    #   n5       2|      ends: by 24.11 on the nodes where jobs ended before, n5 n6; else on the first, n4 n5
    #   n6       3|.     6 takes the other core of n6 where 5 is not planned there
    some, others = Partition("some", "n[1-4]"), Partition("others", "n[3-6]", default=True)
    site = Site("drawn", (NodeGroup("n[1-6]", 2),), (some, others), priority=Priority("basic"))
    jobs = [
        Job(1, 57, 600, 600, 2, 4), Job(2, 57, 540, 540, 1, 2), Job(3, 57, 540, 540, 1, 1),
        Job(4, 61, 60, 3600, 3, 6, partition="some"), Job(5, 61, 60, 540, 2, 4), Job(6, 62, 60, 3600, 1, 1),
    ]  # fmt: skip
    at_once = simulate(site, jobs, begin=57)[6].start == 87
    assert at_once == (simulate.version != "24.11")


@pytest.mark.parametrize(("resolution", "expected"), [(60, [603, 663]), (1, [603, 60])])
def test_the_plan_has_a_resolution(simulate: Simulate, resolution: int, expected: list[int]) -> None:
    # Backfilling at 60: 2 is planned for 603. 3 (9 min) would end at 600, when the rounded plan of 2 begins: too late.
    site = batch(2, **scheduling(bf_interval=60, bf_resolution=resolution))
    jobs = [job(1, 0, 600, 10), job(2, 1, 60, 1, 2), job(3, 2, 30, 9)]
    assert starts(simulate(site, jobs, begin=0))[1:] == expected


@pytest.mark.parametrize(("window", "expected"), [(1200, 30), (86400, 1863)])
def test_the_plan_ends_with_its_window(simulate: Simulate, window: int, expected: int) -> None:
    # 2 can start at 1803; seen 1200 s ahead nothing is kept for it, and 3 (an hour) passes.
    jobs = [job(1, 0, 1800, 30), job(2, 1, 60, 1, 2), job(3, 2, 30, 60)]
    assert starts(simulate(batch(2, **scheduling(bf_window=window)), jobs, begin=0))[2] == expected


def test_so_many_jobs_are_tried(simulate: Simulate) -> None:
    # 2 is the one job that is tried at 30; 3 would fit in front of it, and is not looked at until 2 has run.
    jobs = [job(1, 0, 600, 10), job(2, 1, 60, 1, 2), job(3, 2, 30, 1)]
    assert starts(simulate(batch(2, **scheduling(bf_max_job_test=1)), jobs, begin=0)) == [3, 603, 663]


def test_so_many_jobs_of_a_user_or_a_partition(simulate: Simulate) -> None:
    # 2 (a's) waits; of a one job is looked at: 4 (b's) passes at 30, 3 (a's) does not
    jobs = [job(1, 0, 600, 10), job(2, 1, 60, 1, 2, user="a"), job(3, 2, 30, 1, user="a"), job(4, 3, 30, 1, user="b")]
    assert starts(simulate(batch(2, **scheduling(bf_max_job_user=1)), jobs, begin=0)) == [3, 603, 663, 30]
    assert starts(simulate(batch(2, **scheduling(bf_max_job_part=2)), jobs, begin=0)) == [3, 603, 30, 60]


def test_so_many_starts_of_a_backfilling_pass(simulate: Simulate) -> None:
    # 3 nodes: 2 waits for all of them, 3 and 4 fit before; one a pass
    jobs = [job(1, 0, 600, 10), job(2, 1, 60, 1, 3), job(3, 2, 300, 5), job(4, 3, 300, 5)]
    assert starts(simulate(batch(3, **scheduling(bf_max_job_start=1)), jobs, begin=0)) == [3, 603, 30, 60]


def test_no_reservation_below_a_priority_or_an_age(simulate: Simulate) -> None:
    # 2 keeps nobody back, neither in the main pass nor in the plan: 3 (an hour) starts at 3 and 2 waits for it
    jobs = [job(1, 0, 600, 10, site_factor=60), job(2, 1, 60, 1, 2, site_factor=50), job(3, 2, 3600, 60)]
    site = batch(2, **scheduling(bf_min_prio_reserve=100))
    assert starts(simulate(site, jobs, begin=0)) == [3, 3603, 3]
    # Until it has waited for so long; at 3 it has not.
    assert starts(simulate(batch(2, **scheduling(bf_min_age_reserve=600)), jobs, begin=0)) == [3, 3603, 3]


def test_backfilling_comes_with_the_first_change_after_its_interval(simulate: Simulate) -> None:
    # Passes at 30 (there was a start at 3) and 60; then nothing happens until 100: at once. At 40: at 60.
    def jobs(at: int) -> list[object]:
        return [job(1, 0, 600, 10, 2), job(2, at, 60, 1, 3), job(3, at, 30, 1)]

    assert starts(simulate(batch(3), jobs(100), begin=0)) == [3, 603, 100]
    assert starts(simulate(batch(3), jobs(40), begin=0)) == [3, 603, 60]


def test_what_is_wanted_in_a_given_state(simulate: Simulate) -> None:
    # The state of EIGHT at 40 s, had nothing been backfilled; whole nodes of one core.
    first, second = EIGHT[:2]
    running = [Runs(first, 3, dict.fromkeys((0, 1, 2), 1)), Runs(second, 3, dict.fromkeys((3, 4, 5), 1))]
    waiting = [Waiting(one, priority=1) for one in EIGHT[2:]]

    def wanted(site: Site, away: frozenset[int] = frozenset()) -> dict[int, str]:
        return {job: by for job, (by, _) in wanted_now(site, State(40, running, waiting, away)).items()}

    assert wanted(batch(8)) == {6: "backfill"}
    easy = batch(8, **scheduling(bf_job_part_count_reserve=1))
    assert wanted(easy) == {5: "backfill", 6: "backfill"}
    # n8 is down: one of the two
    assert wanted(easy, frozenset({7})) == {6: "backfill"}


def test_so_many_tasks_of_an_array_run_at_once_and_the_others_keep_nobody_back(simulate: Simulate) -> None:
    #   n1  1 1 1|3        array 7: two tasks at once
    #   n2  2 2 2|4
    #   n3  5 5 5 5        5 comes behind 3 and 4, and starts with 1 and 2
    tasks = [job(i, 0, 20, 10, array=7, array_limit=2) for i in (1, 2, 3, 4)]
    schedule = simulate(batch(4), [*tasks, job(5, 0, 500, 10)], begin=0)
    assert starts(schedule) == [3, 3, 23, 23, 3]
    # Each array has its own limit.
    others = [job(i, 0, 20, 10, array=i % 2, array_limit=1 + i % 2) for i in range(1, 6)]
    assert starts(simulate(batch(4), others, begin=0)) == [3, 3, 3, 23, 23]


def test_a_task_that_waits_for_its_array_counts_in_no_depth(simulate: Simulate) -> None:
    # Two jobs are looked at: 1 and 4. 2 and 3 follow one another.
    tasks = [job(i, 0, 20, 10, array=1, array_limit=1) for i in (1, 2, 3)]
    for setting in ("default_queue_depth", "partition_job_depth"):
        site = batch(4, **scheduling(backfill=False, **{setting: 1 + (setting == "partition_job_depth")}))
        assert starts(simulate(site, [*tasks, job(4, 0, 500, 10)], begin=0)) == [3, 23, 43, 3]


def test_nothing_is_planned_for_a_task_that_waits_for_its_array(simulate: Simulate) -> None:
    #   n1  1 1 1 1|. . .|2      3 is longer than 1 and would not be let past 2, which needs both nodes,
    #   n2  3 3 3 3 3 3 3|2      if 2 had a plan
    jobs = [job(1, 0, 100, 10, array=1, array_limit=1), job(2, 0, 100, 10, 2, array=1, array_limit=1)]
    long = job(3, 0, 1800, 30)
    assert starts(simulate(batch(2), [*jobs, long], begin=0)) == [3, 1803, 3]
    free = [job(1, 0, 100, 10), job(2, 0, 100, 10, 2)]
    assert starts(simulate(batch(2), [*free, long], begin=0)) == [3, 103, 203]


def test_a_task_whose_node_failed_makes_room_in_its_array(simulate: Simulate) -> None:
    # 1 ends with its node at 50 and is put back until 171; then 2 runs, and 1 waits for its end.
    site = batch(3, outages=(Outage("n1", 50, 5000),))
    tasks = [job(i, 0, 300, 10, array=1, array_limit=1) for i in (1, 2)]
    schedule = simulate(site, tasks, begin=0)
    assert schedule[2].start < 171
    assert schedule[1].start == schedule[2].end
