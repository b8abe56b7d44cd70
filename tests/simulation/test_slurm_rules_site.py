"""Slurm's rules of a site, drawn by hand: placing, priorities, limits, reservations, nodes that go, jobs that overrun.

Times are seconds from the start of slurmctld; see test_slurm_rules for its passes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from naive.slurm_cases import IMPLEMENTATIONS, TIMES, TIMES_OF_OTHER_KERNEL, batch, job, scheduling
from naive.slurm_jobs import Job
from policyfactory.site.model import (
    VERSIONS,
    Association,
    Limits,
    NodeGroup,
    Outage,
    Partition,
    Priority,
    Qos,
    Reservation,
    Site,
)

# What the fast one does not tell, nodes, or does not know: how many jobs may be submitted.
PLAIN_ONLY = {
    "test_the_tightest_row_of_idle_nodes",
    "test_the_biggest_row_first_where_none_is_enough",
    "test_nodes_of_a_lower_weight_first",
    "test_names_are_in_natural_order_whatever_the_file_says",
    "test_one_core_is_kept_for_every_further_node",
    "test_one_node_as_full_as_can_be",
    "test_a_job_for_one_node_takes_the_first_on_which_it_can_run",
    "test_memory_and_gpus_of_the_nodes",
    "test_too_many_submitted",
    "test_a_job_that_would_reach_into_a_reservation_goes_elsewhere",
    "test_jobs_in_a_reservation",
}
SHARES_COUNT = {"test_fair_share", "test_what_a_job_used_since_the_last_calculation_counts_only_under_limits"}
NODES_FAIL = {
    "test_jobs_of_a_node_that_fails_are_put_back",
    "test_who_is_put_back_keeps_his_place_or_goes_behind",
    "test_jobs_of_a_drained_node_run_on",
}
# Where jobs for one node go differs: one test is of the newest version, two of those before.
NEWEST = "test_a_job_for_one_node_takes_the_first_on_which_it_can_run"
OLDER = {"test_one_core_is_kept_for_every_further_node", "test_one_node_as_full_as_can_be"}
Simulate = Callable[..., dict[int, object]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    name = metafunc.function.__name__
    times = TIMES_OF_OTHER_KERNEL if name in SHARES_COUNT or name in NODES_FAIL else TIMES
    of_each = IMPLEMENTATIONS if name in PLAIN_ONLY else times
    newest = [simulate for simulate in of_each if str(simulate.id).endswith(VERSIONS[-1])]
    older = [simulate for simulate in of_each if simulate not in newest]
    metafunc.parametrize("simulate", newest if name == NEWEST else older if name in OLDER else of_each)


def starts(schedule: dict[int, object]) -> list[int]:
    return [placed.start for _, placed in sorted(schedule.items())]


def shared(*groups: NodeGroup, **settings: object) -> Site:
    """Return a site whose nodes are shared by jobs."""
    return Site("drawn", groups, (Partition("batch"),), **scheduling(**settings))


def nodes(simulate: Simulate, site: Site, *jobs: Job) -> list[tuple[int, ...]]:
    schedule = simulate(site, jobs, begin=0)
    return [placed.nodes for _, placed in sorted(schedule.items())]


# Where jobs go.


def test_the_tightest_row_of_idle_nodes(simulate: Simulate) -> None:
    #   n1 n2 n3 | n4 | n5 n6 | n7     4 and 7 are taken: rows of 3 and 2; a pair goes into the row of 2,
    #    3  .  .   1     2  2    1     a single node then into that of 3, at its beginning
    taken = [job(1, 0, 500, 10, 7), job(2, 0, 500, 10, 7)]
    site = batch(7, partitions=(Partition("batch", exclusive=True), Partition("two", "n[4,7]", exclusive=True)))
    first = dataclasses.replace(taken[0], nodes=2, cores=2, partition="two")
    assert nodes(simulate, site, first, job(2, 1, 500, 10, 2), job(3, 2, 500, 10)) == [(3, 6), (4, 5), (0,)]


def test_the_biggest_row_first_where_none_is_enough(simulate: Simulate) -> None:
    # rows n1 n2 n3 and n5 n6: four nodes are all of the first, and the first of the second
    site = batch(6, partitions=(Partition("batch", exclusive=True), Partition("one", "n4", exclusive=True)))
    assert nodes(simulate, site, job(1, 0, 500, 10, partition="one"), job(2, 1, 500, 10, 4)) == [(3,), (0, 1, 2, 4)]


def test_nodes_of_a_lower_weight_first(simulate: Simulate) -> None:
    site = shared(NodeGroup("n[1-2]", weight=9), NodeGroup("n[3-4]", weight=2))
    assert nodes(simulate, site, job(1, 0, 500, 10), job(2, 1, 500, 10, 2)) == [(2,), (0, 3)]


def test_names_are_in_natural_order_whatever_the_file_says(simulate: Simulate) -> None:
    # slurmctld sorts its nodes: n2, n9, n10. They keep their numbers of the file: n10 is 0, n2 is 1, n9 is 2.
    site = Site("drawn", (NodeGroup("n10"), NodeGroup("n2"), NodeGroup("n9")), (Partition("batch", exclusive=True),))
    assert nodes(simulate, site, job(1, 0, 500, 10), job(2, 1, 500, 10), job(3, 2, 500, 10)) == [(1,), (2,), (0,)]


def test_one_core_is_kept_for_every_further_node(simulate: Simulate) -> None:
    # 2 nodes of 6 cores. Job 1 asks for 2 nodes and 5 cores, which are not even: 4 + 1. What is left is 2 and 5:
    # 2 (4 cores) fits on n2, and 3 (1 core) fills it up; from 24.05 on both nodes offer it one core
    site = shared(NodeGroup("n[1-2]", cores=6))
    jobs = (Job(1, 0, 500, 600, 2, 5), Job(2, 1, 500, 600, 1, 4), Job(3, 2, 500, 600, 1, 1))
    last = (1,) if simulate.version == VERSIONS[0] else (0,)
    assert nodes(simulate, site, *jobs) == [(0, 1), (1,), last]


def test_what_is_even_is_asked_of_every_node(simulate: Simulate) -> None:
    # 2 nodes of 4 cores: 1 has 2 of each, so 2 (3 cores) waits
    site = shared(NodeGroup("n[1-2]", cores=4))
    assert starts(simulate(site, [Job(1, 0, 500, 600, 2, 4), Job(2, 1, 500, 600, 1, 3)], begin=0)) == [3, 503]


def test_one_node_as_full_as_can_be(simulate: Simulate) -> None:
    # n1 has 8 cores, n2 2, n3 4: 1 (3 cores) goes to n3, 2 (1 core) beside it, 3 (2 cores) to n2; so 4 (8) has n1
    site = shared(NodeGroup("n1", cores=8), NodeGroup("n2", cores=2), NodeGroup("n3", cores=4))
    jobs = (Job(1, 0, 500, 600, -1, 3), Job(2, 0, 500, 600, -1, 1), Job(3, 0, 500, 600, -1, 2))
    assert nodes(simulate, site, *jobs, Job(4, 0, 500, 600, -1, 8)) == [(2,), (2,), (1,), (0,)]


def test_a_job_for_one_node_takes_the_first_on_which_it_can_run(simulate: Simulate) -> None:
    # As the last test but one; 3 (1 core) goes to n1, though it would fill n2 up. Job 2 of the last goes to n1, and the
    # others, which may spread over nodes, as before.
    site = shared(NodeGroup("n[1-2]", cores=6))
    jobs = (Job(1, 0, 500, 600, 2, 5), Job(2, 1, 500, 600, 1, 4), Job(3, 2, 500, 600, 1, 1))
    assert nodes(simulate, site, *jobs) == [(0, 1), (1,), (0,)]
    site = shared(NodeGroup("n1", cores=8), NodeGroup("n2", cores=2), NodeGroup("n3", cores=4))
    jobs = (Job(1, 0, 500, 600, -1, 3), Job(2, 0, 500, 600, -1, 1), Job(3, 0, 500, 600, -1, 2))
    assert nodes(simulate, site, *jobs) == [(2,), (0,), (1,)]


def test_memory_and_gpus_of_the_nodes(simulate: Simulate) -> None:
    # n1: 4 cores, 1000 MB; n2 the same with 2 GPUs. 1 takes 600 MB of n1, 2 (500 MB) does not fit beside it;
    # 3 has n2's GPUs, 4 waits for them, and 5 gets what memory is left of n1.
    site = shared(NodeGroup("n1", 4, 1000), NodeGroup("n2", 4, 1000, 2), select="cores+memory", backfill=False)
    jobs = (
        Job(1, 0, 500, 600, 1, 1, 600),
        Job(2, 0, 500, 600, 1, 1, 500),
        Job(3, 0, 500, 600, 1, 1, 100, 2),
        Job(4, 0, 500, 600, 1, 1, 100, 1, site_factor=-1),
        Job(5, 0, 500, 600, 1, 1, 400),
    )
    schedule = simulate(site, [dataclasses.replace(one, site_factor=9 - one.id) for one in jobs], begin=0)
    assert [schedule[i].nodes for i in (1, 2, 3)] == [(0,), (1,), (1,)]
    # 4 can not start, and so 5 behind it does not, until the end of the others.
    assert starts(schedule) == [3, 3, 3, 503, 503]


def test_whoever_asks_for_no_memory_gets_all_of_it(simulate: Simulate) -> None:
    site = shared(NodeGroup("n1", 4, 1000), select="cores+memory")
    jobs = [Job(1, 0, 500, 600, 1, 1), Job(2, 0, 500, 600, 1, 1)]
    # A third names its memory, so that the log says what jobs ask for.
    asks = [*jobs, Job(3, 0, 10, 600, 1, 1, memory=10)]
    assert starts(simulate(site, asks, begin=0)) == [3, 503, 1003]
    with_default = shared(NodeGroup("n1", 4, 1000), select="cores+memory", default_memory_per_core=100)
    assert starts(simulate(with_default, asks, begin=0)) == [3, 3, 3]


def test_a_log_that_says_no_job_s_memory_holds_none_by_it(simulate: Simulate) -> None:
    site = shared(NodeGroup("n1", 4, 1000), select="cores+memory")
    jobs = [Job(1, 0, 500, 600, 1, 1), Job(2, 0, 500, 600, 1, 1)]
    assert starts(simulate(site, jobs, begin=0)) == [3, 3]


def test_exclusive_in_a_shared_partition(simulate: Simulate) -> None:
    site = shared(NodeGroup("n[1-2]", cores=4))
    jobs = [Job(1, 0, 500, 600, 1, 1), Job(2, 0, 100, 600, 1, 1, exclusive=True), Job(3, 0, 500, 600, 1, 4)]
    # 2 has n2 for itself; 3 needs a whole node: n2, at 103
    assert starts(simulate(site, jobs, begin=0)) == [3, 3, 103]


# Priorities.


def users(*names: str, **of_account: object) -> tuple[Association, ...]:
    """Return an account of these users, each with one share."""
    account = Association("lab", parent="root", **of_account)
    return Association("root"), account, *(Association("lab", name) for name in names)


@pytest.mark.parametrize(("run_time", "expected"), [(287, [303, 290]), (307, [310, 323])])
def test_age_counts_only_from_the_next_calculation(simulate: Simulate, run_time: int, expected: list[int]) -> None:
    # 2 is at 100 from its submission at 10 on, 3 at 150; at 300 they become 390 and 250. 1 ends at 290, or at 310.
    priority = Priority(age=1000, max_age=1000)
    jobs = [job(1, 0, run_time, 10), job(2, 10, 13, 1, site_factor=100), job(3, 200, 13, 1, site_factor=150)]
    assert starts(simulate(batch(1, priority=priority), jobs, begin=0))[1:] == expected


@pytest.mark.parametrize("limits", [(), ("limits",)])
def test_fair_share(simulate: Simulate, limits: tuple[str, ...]) -> None:
    # a has run since 3 when shares are calculated at 300 and 600; b has used nothing, and goes first.
    site = batch(1, priority=Priority(fair_share=1000), associations=users("a", "b"), enforced=limits)
    lab = {"account": "lab"}
    jobs = [job(1, 0, 700, 20, user="a", **lab), job(2, 400, 13, 1, user="a", **lab)]
    assert starts(simulate(site, [*jobs, job(3, 401, 13, 1, user="b", **lab)], begin=0)) == [3, 716, 703]


def test_what_a_job_used_since_the_last_calculation_counts_only_under_limits(simulate: Simulate) -> None:
    # a's job runs from 3 to 203, between two calculations. At 300 a has used 200 core seconds where limits are
    # enforced, otherwise none: then all are alike, and 3 (submitted first) goes before 4.
    jobs = [
        job(1, 0, 200, 20, user="a", account="lab"),
        job(2, 250, 600, 20, user="c", account="lab", site_factor=9999),
        job(3, 260, 13, 1, user="a", account="lab"),
        job(4, 261, 13, 1, user="b", account="lab"),
    ]
    site = batch(1, priority=Priority(fair_share=1000), associations=users("a", "b", "c"))
    assert starts(simulate(site, jobs, begin=0))[2:] == [850, 863]
    limited = dataclasses.replace(site, enforced=("associations", "limits"))
    assert starts(simulate(limited, jobs, begin=0))[2:] == [863, 850]


def test_qos_partition_and_size(simulate: Simulate) -> None:
    # partition: 10/20 of 100; qos: 3/6 of 40; size (large first): (1/4 + 1/4) / 2 of 60
    parts = (Partition("a", job_factor=10, exclusive=True), Partition("b", job_factor=20, exclusive=True))
    qos = (Qos("normal"), Qos("half", 3), Qos("best", 6))
    priority = Priority(partition=100, qos=40, job_size=60)
    site = batch(4, partitions=parts, qos=qos, priority=priority, **scheduling(backfill=False, sched_max_job_start=1))
    jobs = [
        job(1, 0, 900, 60, partition="a", qos="half"),  # 50 + 20 + 15 = 85
        job(2, 0, 900, 60, partition="a", qos="best"),  # 50 + 40 + 15 = 105
        job(3, 0, 900, 60, partition="b"),  # 100 + 0 + 15 = 115
        job(4, 0, 900, 60, 1, partition="a", site_factor=26),  # 50 + 15 + 26 = 91
    ]
    # one a pass
    assert starts(simulate(site, jobs, begin=0)) == [180, 60, 3, 120]


# Limits.


def limited(nodes: int, *qos: Qos, **more: object) -> Site:
    more.setdefault("associations", users("a", "b"))
    return batch(nodes, qos=qos, enforced=("associations", "limits", "qos"), **more)


def of(user: str, id_: int, run_time: int, nodes: int = 1, **more: object) -> Job:
    return job(id_, 0, run_time, 20, nodes, user=user, account="lab", **more)


def test_jobs_of_a_user(simulate: Simulate) -> None:
    # a may run one job: 2 waits for 1, and keeps nobody back
    site = limited(4, Qos("normal", per_user=Limits(jobs=1)))
    assert starts(simulate(site, [of("a", 1, 100), of("a", 2, 100), of("b", 3, 100)], begin=0)) == [3, 103, 3]


def test_a_limit_outweighs_that_nodes_are_busy(simulate: Simulate) -> None:
    # 2 nodes. 2 needs both, but a may not have 3: it does not block the partition, and 3 starts beside 1.
    # Without the limit it does, and 3 waits behind it.
    jobs = [of("a", 1, 100), of("a", 2, 100, 2), of("b", 3, 50)]
    site = limited(2, Qos("normal", per_user=Limits(nodes=2)), **scheduling(backfill=False))
    assert starts(simulate(site, jobs, begin=0)) == [3, 103, 3]
    assert starts(simulate(dataclasses.replace(site, enforced=()), jobs, begin=0)) == [3, 103, 203]


@pytest.mark.parametrize(("flags", "expected"), [((), [3, 103, 203]), (("OverPartQOS",), [3, 3, 103])])
def test_whose_qos_counts(simulate: Simulate, flags: tuple[str, ...], expected: list[int]) -> None:
    # the partition's lets one job run, the job's own two: the partition's counts, unless the other is over it
    qos = (Qos("of_part", total=Limits(jobs=1)), Qos("normal", total=Limits(jobs=2), flags=flags))
    parts = (Partition("batch", exclusive=True, qos="of_part"),)
    assert (
        starts(simulate(limited(4, *qos, partitions=parts), [of("a", i, 100) for i in (1, 2, 3)], begin=0)) == expected
    )


def test_limits_of_an_account_hold_for_all_below(simulate: Simulate) -> None:
    site = limited(4, Qos("normal"), associations=users("a", "b", total=Limits(cores=2)))
    jobs = [of("a", 1, 100), of("b", 2, 50), of("b", 3, 50), of("a", 4, 50, 3)]
    # 4 asks for more than the account may ever have
    assert starts(simulate(site, jobs, begin=0)) == [3, 3, 53, -1]


def test_a_limited_job_gets_no_reservation(simulate: Simulate) -> None:
    # 3 nodes, at 30. 2 (a's, 3 nodes) may not run beside 1, a's limit of cores says: nothing is kept for it, and
    # 3 (an hour) starts at once in the main pass.
    site = limited(3, Qos("normal", per_user=Limits(cores=3)))
    jobs = [of("a", 1, 600), of("a", 2, 60, 3), dataclasses.replace(of("b", 3, 700), limit=3600)]
    assert starts(simulate(site, jobs, begin=0)) == [3, 703, 3]


def test_too_many_submitted(simulate: Simulate) -> None:
    site = limited(1, Qos("normal", per_user=Limits(submitted=1)))
    assert starts(simulate(site, [of("a", 1, 100), of("a", 2, 100), of("b", 3, 100)], begin=0)) == [3, -1, 103]


# Reservations.


def test_a_job_that_would_reach_into_a_reservation_goes_elsewhere(simulate: Simulate) -> None:
    # n1 n2 are kept from 600 to 1200. From 3 on, 10 minutes reach into it, 9 do not.
    site = batch(4, reservations=(Reservation("r", "n[1-2]", 600, 1200, users=("a",)),))
    schedule = simulate(site, [job(1, 0, 500, 10, 2), job(2, 0, 500, 9)], begin=0)
    assert [(one.start, one.nodes) for one in schedule.values()] == [(3, (2, 3)), (3, (0,))]


def test_maintenance_of_everything(simulate: Simulate) -> None:
    # 1 has to wait for its end, and keeps nobody back: 2 is over before
    site = batch(2, reservations=(Reservation("m", "ALL", 600, 1200),))
    assert starts(simulate(site, [job(1, 0, 500, 10, 2), job(2, 0, 500, 9, 2)], begin=0)) == [1200, 3]


def test_jobs_in_a_reservation(simulate: Simulate) -> None:
    # 1 asks for it and may use it, from its begin on; it runs on 30 s checks: killed after its end, at 1230
    site = batch(2, reservations=(Reservation("r", "n1", 600, 1200, users=("a",)),))
    schedule = simulate(site, [job(1, 0, 9000, 60, user="a", reservation="r")], begin=0)
    assert (schedule[1].start, schedule[1].end, schedule[1].nodes) == (600, 1230, (0,))


@pytest.mark.parametrize(("busy", "expected"), [(False, 10), (True, 53)])
def test_too_few_nodes_without_those_reserved(simulate: Simulate, busy: bool, expected: int) -> None:
    # n1 n2 are reserved until 1200, and 1 needs three nodes. While n3 and n4 are idle, what lacks is nodes, and 2 may
    # go ahead. While n3 is busy (3, until 53) the partition counts as full: 1 blocks it, and n4 stays idle.
    site = batch(4, reservations=(Reservation("r", "n[1-2]", 0, 1200, users=("z",)),), **scheduling(backfill=False))
    jobs = [job(1, 10, 53, 10, 3), job(2, 10, 50, 10), *([job(3, 0, 50, 10)] if busy else [])]
    schedule = simulate(site, jobs, begin=0)
    assert (schedule[1].start, schedule[2].start) == (1200, expected)


# Nodes that go, and jobs that overrun.


def test_jobs_of_a_node_that_fails_are_put_back(simulate: Simulate) -> None:
    # n1 is down from 100 to 200. 1 is eligible again at 221; backfilling at 230 is the next that looks.
    site = batch(2, outages=(Outage("n1", 100, 200),))
    one = simulate(site, [job(1, 0, 500, 10)], begin=0)[1]
    assert (one.start, one.end, one.requeues, one.by) == (230, 730, 1, "backfill")


def test_nodes_look_alike_to_a_job_that_says_its_cores_of_each(simulate: Simulate) -> None:
    # n1   1 1 1 . 4 4 4      At 150 n1 has four free cores and n2 one. By the best fit 3 goes to n2 and 4 has n1; where
    # n2   2 2 2 2 2 2 2      both nodes offer the one core that 3 asks for, 3 goes to n1.
    nodes = (NodeGroup("n[1-2]", cores=4),)
    asked = [(0, 100, 4), (0, 1000, 3), (150, 500, 1), (200, 100, 4)]
    jobs = [Job(number, submit, run, 1200, 1, cores) for number, (submit, run, cores) in enumerate(asked, 1)]
    schedule = simulate(dataclasses.replace(batch(2, partitions=(Partition("batch"),)), nodes=nodes), jobs, begin=0)
    assert starts(schedule) == [3, 3, 150, 200 if simulate.version == VERSIONS[0] else 650]


def test_who_is_put_back_keeps_his_place_or_goes_behind(simulate: Simulate) -> None:
    # The only node is down from 100 to 300: then 1, which ran there, may start again; 2 has waited all the time.
    site = batch(1, outages=(Outage("n1", 100, 300),), priority=Priority("basic"))
    schedule = simulate(site, [job(1, 0, 500, 10), job(2, 50, 60, 10)], begin=0)
    kept = simulate.version == VERSIONS[0]
    assert starts(schedule) == ([300, 800] if kept else [360, 300])


def test_jobs_of_a_drained_node_run_on(simulate: Simulate) -> None:
    site = batch(2, outages=(Outage("n1", 100, 900, drained=True),))
    schedule = simulate(site, [job(1, 0, 500, 10), job(2, 110, 500, 10, 2)], begin=0)
    # the node is back at 900: a pass is asked for, and there at once
    assert starts(schedule) == [3, 900]


@pytest.mark.parametrize(("over", "end"), [(0, 90), (60, 150), (90, 150), (float("inf"), 503)])
def test_a_job_over_its_limit(simulate: Simulate, over: float, end: int) -> None:
    # over its minute at 63; looked at every 30 s; OverTimeLimit is in whole minutes
    assert simulate(batch(1, **scheduling(kill_overrun=over)), [job(1, 0, 500, 1)], begin=0)[1].end == end
