"""Jobs in more than one dimension: pools, nodes, licences; what is refused, and what each resource was used."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naive.online_cases import policy, score_of
from naive.resources import Job, Online
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.simulate.machine import Licence, Machine
from policyfactory.simulate.simulate import Rules, simulate
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload.assume import assume
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests


def workload(rows: list[tuple[int, ...]], machine: int = 64) -> Workload:
    """Return jobs of (submit, run time, request, processors, nodes, MB, GPUs, exclusive)."""
    submit, run, request, processors, nodes, memory, gpus, exclusive = np.array(rows).T
    unknown = np.full(len(rows), -1)
    asked = dataclasses.replace(Requests.unknown(len(rows)), nodes=nodes, memory=memory, gpus=gpus, exclusive=exclusive)
    ids = np.arange(1, len(rows) + 1)
    return Workload("drawn", machine, ids, submit, run, request, processors, unknown, unknown, requests=asked)


FOUR = (NodeGroup("n[1-4]", cores=4, memory=1000, gpus=1),)


@pytest.mark.parametrize("text", ["r", "p*q", "-p"])
@pytest.mark.parametrize("placement", ["pool", "first"])
def test_processors_alone_give_the_schedule_of_easy(shared: Callable[[str], Path], text: str, placement: str) -> None:
    log = read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    log = assume(log, "n=q")
    machine = Machine((NodeGroup("n[1-100]"),), placement)
    # Where every job is promised its very nodes, these can be apart in time.
    conservative = [Rules("conservative")] if placement == "pool" else []
    for rules in (Rules(), Rules(threshold=72000), Rules(backfill="none"), *conservative):
        one, several = simulate(log, policy(text), rules), simulate(log, policy(text), rules, machine=machine)
        np.testing.assert_array_equal(one.start, several.start)
        np.testing.assert_array_equal(one.backfilled, several.backfilled)


def test_memory_keeps_a_job_out_and_what_is_left_over_lets_one_in() -> None:
    # Job 1 has 3,000 of 4,000 MB until 10. Job 2 waits for 2,000 MB and is reserved 10; 2,000 MB are extra then, and
    # job 3 takes half of them. Job 4, with as many processors, would take more than is left.
    jobs = workload(
        [(0, 10, 10, 4, 1, 3000, 0, 0), (1, 5, 5, 4, 1, 2000, 0, 0), (2, 20, 20, 4, 1, 1000, 0, 0),
         (3, 20, 20, 4, 1, 1500, 0, 0)]
    )  # fmt: skip
    schedule = simulate(jobs, "FCFS", machine=Machine(FOUR, "pool"))
    assert schedule.start.tolist() == [0, 10, 2, 15]
    assert schedule.backfilled.tolist() == [False, False, True, False]
    assert simulate(jobs, "FCFS", machine=Machine((NodeGroup("n[1-4]", cores=4),), "pool")).start.tolist() == [
        0,
        1,
        2,
        3,
    ]
    shares = schedule.utilisation_of_each()
    assert list(shares) == ["processors", "memory", "gpus"]
    assert shares["memory"] == pytest.approx(100 * (3000 * 10 + 2000 * 5 + 1000 * 20 + 1500 * 20) / (4000 * 35))
    assert shares["gpus"] == 0.0


def test_jobs_share_nodes_or_take_them_whole() -> None:
    # Jobs 1 and 2 share node 1; job 3 wants whole nodes, and takes 2 and 3 though it needs little; job 4 packs.
    rows = [
        (0, 9, 9, 2, 1, 100, 0, 0),
        (0, 9, 9, 1, 1, 100, 0, 0),
        (0, 9, 9, 2, 2, 200, 0, 1),
        (0, 9, 9, 1, 1, 900, 0, 0),
    ]
    held = simulate(workload(rows), "FCFS", machine=Machine(FOUR)).held
    assert held is not None
    assert [held.nodes(row) for row in range(len(rows))] == [[0], [0], [1, 2], [3]]
    assert held.amount[:, 0].tolist() == [2, 1, 8, 1]
    assert held.amount[:, 2].tolist() == [0, 0, 2, 0]


def test_first_fit_takes_the_first_node_and_best_fit_the_fullest() -> None:
    groups = (NodeGroup("a", cores=8, weight=1), NodeGroup("b", cores=4, weight=1), NodeGroup("c", cores=4, weight=0))
    rows = [(0, 9, 9, 2, 1, -1, -1, 0), (0, 9, 9, 3, 1, -1, -1, 0), (1, 9, 9, 2, 1, -1, -1, 0)]
    for placement, expected in (("first", [[0], [1], [0]]), ("best", [[0], [2], [0]])):
        held = simulate(workload(rows), "FCFS", machine=Machine(groups, placement)).held
        # Node c is the first, since its weight is the least; then a, then b.
        assert held is not None
        assert [held.nodes(row) for row in range(len(rows))] == expected


def test_a_job_that_lasts_takes_nodes_that_the_head_can_spare() -> None:
    # Job 1 holds the nodes 1 and 2 until 10. Job 2 needs three of the four and is reserved 10: one can be spared then.
    # Job 3 runs to 32 and takes one node; job 4 would take a second one; job 5 ends by 10.
    rows = [(0, 10, 10, 8, 2, 0, 0, 1), (1, 5, 5, 12, 3, 0, 0, 1), (2, 30, 30, 4, 1, 0, 0, 1),
            (3, 30, 30, 4, 1, 0, 0, 1), (4, 6, 6, 4, 1, 0, 0, 1)]  # fmt: skip
    schedule = simulate(workload(rows), "FCFS", machine=Machine(FOUR))
    assert schedule.start.tolist() == [0, 10, 2, 15, 4]


def test_under_conservative_backfilling_every_job_has_its_nodes_and_its_memory_promised() -> None:
    def starts(rows: list[tuple[int, ...]], rule: Any, placement: Any = "first") -> list[int]:
        return simulate(workload(rows), "FCFS", Rules(rule), machine=Machine(FOUR, placement)).start.tolist()

    # Job 1 holds the nodes 1 and 2 until 10, job 2 needs three then, job 3 all four at 15. Job 4 runs long on one: job
    # 2 can spare it, and under EASY nobody minds job 3.
    rows = [(0, 10, 10, 8, 2, 0, 0, 1), (1, 5, 5, 12, 3, 0, 0, 1), (2, 20, 20, 16, 4, 0, 0, 1),
            (3, 36, 36, 4, 1, 0, 0, 1)]  # fmt: skip
    assert starts(rows, "easy") == [0, 10, 39, 3]
    assert starts(rows, "conservative") == [0, 10, 15, 35]
    # A job that ends by 15 may pass all the same, on the node that job 2 leaves.
    assert starts([*rows[:3], (3, 12, 12, 4, 1, 0, 0, 1)], "conservative") == [0, 10, 15, 3]
    # The same with memory: 3,000 of 4,000 MB at 10, all of it at 15.
    pool = [(0, 10, 10, 1, 1, 3000, 0, 0), (1, 5, 5, 1, 1, 3000, 0, 0), (2, 5, 5, 1, 1, 4000, 0, 0),
            (3, 30, 30, 1, 1, 1000, 0, 0)]  # fmt: skip
    assert starts(pool, "easy", "pool") == [0, 10, 33, 3]
    assert starts(pool, "conservative", "pool") == [0, 10, 15, 20]


def test_licences_count_beside_nodes() -> None:
    rows = [(0, 9, 9, 1, 1, 0, 0, 0), (1, 9, 9, 1, 1, 0, 0, 0), (2, 9, 9, 1, 1, 0, 0, 0)]
    licence = Licence("solver", 2, np.array([2, 1, 0]))
    schedule = simulate(workload(rows), "FCFS", machine=Machine(FOUR, licences=(licence,)))
    assert schedule.start.tolist() == [0, 9, 2]
    assert schedule.utilisation_of_each()["solver"] == pytest.approx(100 * (2 * 9 + 1 * 9) / (2 * 18))


@pytest.mark.parametrize("text", ["-(w + p)/p", "p - 3*w", "p/q - 4*min(1, max(0, f - q + 1))", "p*q"])
@pytest.mark.parametrize("placement", ["pool", "first", "best"])
@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_random_jobs_are_those_of_the_plain_simulator(text: str, placement: str, backfill: Any) -> None:
    rng = np.random.default_rng([61, len(text), len(placement)])
    groups = (NodeGroup("a[1-2]", cores=4, memory=9, gpus=2), NodeGroup("b[1-3]", cores=6, memory=5))
    capacity = [(4, 9, 2)] * 2 + [(6, 5, 0)] * 3
    pool = placement == "pool"
    for _ in range(25):
        n = int(rng.integers(1, 31))
        nodes, each = np.minimum(rng.geometric(0.6, n), 2), np.stack([rng.integers(0, most, n) for most in (4, 6, 3)])
        each[0] += 1
        each[1] = np.where(each[2] > 0, each[1], np.minimum(each[1], 5))
        submit, request, run = np.cumsum(rng.integers(0, 4, n)), rng.integers(1, 13, n), rng.integers(0, 13, n)
        whole = (rng.random(n) < 0.3) & (not pool)
        jobs = workload(
            list(zip(submit, run, request, *(nodes * each)[:1], nodes, *(nodes * each)[1:], whole, strict=True))
        )
        rules = Rules(
            backfill,
            threshold=float(rng.choice([10, 25])),
            ties=str(rng.choice(["fifo", "lifo"])),
            backfill_policy=policy("-p") if rng.random() < 0.3 and backfill == "easy" else None,
        )
        found = simulate(jobs, policy(text), rules, machine=Machine(groups, placement))
        plain = []
        for at in range(n):
            vector = tuple(map(int, each[:, at] * (nodes[at] if pool else 1)))
            place = (
                {"counters": vector} if pool else {"nodes": int(nodes[at]), "on_each": vector, "whole": bool(whole[at])}
            )
            plain.append(Job(at, int(submit[at]), int(run[at]), int(request[at]), **place))
            plain[-1].processors = int(nodes[at] * each[0, at])  # for formulas
        own = rules.backfill_policy
        totals = tuple(np.sum(capacity, axis=0).tolist()) if pool else ()
        online = Online(
            plain, totals, [] if pool else capacity, score_of(found.workload, policy(text)), backfill, rules.threshold,
            rules.ties, None if own is None else score_of(found.workload, own), placement == "best",
        )  # fmt: skip
        with np.errstate(all="ignore"):
            online.run()
        assert found.start.tolist() == [job.start for job in plain]
        assert found.backfilled.tolist() == [job.backfilled for job in plain]
        if not pool:
            assert found.held is not None
            assert [tuple(sorted(found.held.nodes(row))) for row in range(n)] == [job.placed for job in plain]


def test_a_site_is_a_machine() -> None:
    site = Site("toy", FOUR, (Partition("all", default=True), Partition("half", nodes="n[3-4]", exclusive=True)))
    machine = Machine.of_site(site, "half")
    assert machine.columns().tolist() == [[4, 1000, 1]] * 2
    assert machine.exclusive
    assert len(Machine.of_site(site).columns()) == 4
    with pytest.raises(UsageError, match="site toy has no partition 'gpu'; it has all, half"):
        Machine.of_site(site, "gpu")


REFUSED = {
    "drawn: job 2 asks for 3 nodes with 4 processors, 1,001 MB of memory, 0 GPUs on each; 0 nodes of the machine have "
    "that (1 such jobs)": [(0, 1, 1, 1, 1, 1, 0, 0), (0, 1, 1, 12, 3, 3003, 0, 0)],
    "drawn: 1 of 2 jobs do not say how much memory they need (job 2 is the first)": [
        (0, 1, 1, 1, 1, 1, 0, 0), (0, 1, 1, 1, 1, -1, 0, 0)],
    "assume='g=0'": [(0, 1, 1, 1, 1, 1, -1, 0)],
    "--assume n=q/32": [(0, 1, 1, 1, -1, 1, 0, 0)],
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_run_is_named_with_a_cure(message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)):
        simulate(workload(REFUSED[message]), "FCFS", machine=Machine(FOUR))


def test_the_cure_works() -> None:
    jobs = assume(workload([(0, 1, 1, 5, -1, -1, -1, 0)]), "n=q/4,mem=200*q,g=0")
    held = simulate(jobs, "FCFS", machine=Machine(FOUR)).held
    assert held is not None
    assert held.amount.tolist() == [[6, 1000, 0]]


def test_rules_that_know_processors_only_are_refused() -> None:
    jobs = workload([(0, 1, 1, 1, 1, 1, 0, 0)])
    with pytest.raises(UsageError, match="processors only"):
        simulate(jobs, "FCFS", machine=Machine(FOUR), compatibility="ocst")
    with pytest.raises(UsageError, match="choose easy, conservative or none"):
        simulate(jobs, "FCFS", machine=Machine(FOUR), backfill="slurm")
    with pytest.raises(UsageError, match="reads predictions"):
        simulate(jobs, policy("e"), machine=Machine(FOUR))
    with pytest.raises(UsageError, match="choose one of pool, first, best"):
        Machine(FOUR, "worst")  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match="processors only"):
        simulate(jobs, "FCFS").utilisation_of_each()
