"""Several resources: the kernels against the plain simulator, on random machines, jobs and orders full of ties."""

from __future__ import annotations

import math

import numpy as np
import pytest

from naive.resources import Job, Online
from policyfactory.engine.events import NEVER, Order, new_jobs
from policyfactory.engine.placement import (
    NO_HEAD,
    Ask,
    choose_nodes,
    count_fitting,
    may_fit,
    new_nodes,
    release_nodes,
    take_nodes,
)
from policyfactory.engine.resources import Demand, Machine
from policyfactory.engine.resources_easy import resources_easy
from policyfactory.engine.sliding import sort_keys

MEMORY = 4  # where the second field begins: nodes have up to 8 processors
GUARD, MASK = (1 << 4) | (1 << 9), 15
SHIFTS = np.array([0, MEMORY + 1])


def random_nodes(rng: np.random.Generator) -> np.ndarray:
    """Return what each node has: two kinds, or none at all."""
    return rng.integers(1, 9, (2, 2))[rng.integers(0, 2, rng.integers(0, 7))]


def random_jobs(rng: np.random.Generator, counters: np.ndarray, nodes: np.ndarray) -> list[Job]:
    """Return jobs that fit an idle machine; every number is small, so that ties are the rule."""
    jobs = []
    submit = 0
    for number in range(int(rng.integers(1, 31))):
        submit += int(rng.integers(0, 6)) * int(rng.random() < 0.7)
        request = int(rng.integers(1, 13))
        job = Job(number, submit, int(rng.integers(0, 13)), request - int(rng.random() < 0.1))
        asked = rng.integers(0, counters + 1)
        if len(nodes):
            ask = rng.integers(0, nodes[rng.integers(len(nodes))] + 1) // int(rng.integers(1, 4))
            ask[0] = max(ask[0], 1)
            job.on_each, job.whole = tuple(map(int, ask)), bool(rng.random() < 0.3)
            job.nodes = int(min(rng.geometric(0.5), (nodes >= ask).all(axis=1).sum()))
        else:
            asked[0] = max(asked[0], 1)
        job.counters = tuple(map(int, asked))
        jobs.append(job)
    return jobs


def starts_of_the_kernel(
    jobs: list[Job], counters: np.ndarray, nodes: np.ndarray, keys: list[np.ndarray], order: Order, best_fit: bool
) -> list[tuple[int, bool, tuple[int, ...]]]:
    """Return start, backfilled and nodes of each job."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(job, name) for job in jobs])

    count = column("nodes")
    each = np.array([job.on_each or (0, 0) for job in jobs], dtype=np.int64)
    asked = np.array([job.counters for job in jobs], dtype=np.int64).reshape(len(jobs), len(counters))
    first = np.cumsum(count) - count
    table = new_jobs(
        *(column(name) for name in ("submit", "run_time", "estimate")),
        count * each[:, 0] if len(nodes) else asked[:, 0],
        key=sort_keys(keys[0]),
        backfill_key=sort_keys(keys[1]),
    )
    demand = Demand(asked, count, (each << SHIFTS).sum(axis=1), column("whole"), first)
    capacity = (nodes << SHIFTS).sum(axis=1).astype(np.int64)
    placed = new_nodes(capacity, GUARD, MASK, int(count.sum()), best_fit=best_fit)
    machine = Machine(counters.copy(), np.zeros_like(counters), placed)
    resources_easy(table, demand, machine, order, int(nodes[:, 0].sum()) if len(nodes) else int(counters[0]))
    taken = [tuple(sorted(map(int, placed.placed[at : at + some]))) for at, some in zip(first, count, strict=True)]
    return list(zip(table.start.tolist(), table.backfilled.tolist(), taken, strict=True))


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_the_kernel_is_its_plain_twin(backfill: str) -> None:
    rng = np.random.default_rng([51, len(backfill)])
    backfilled = 0
    for case in range(400):
        nodes = random_nodes(rng)
        counters = rng.integers(1, 9, int(rng.integers(0 if len(nodes) else 1, 4)))
        jobs = random_jobs(rng, counters, nodes)
        sizes = [job.estimate * (job.nodes or job.counters[0]) for job in jobs]
        keys = [np.array(values, float) for values in ([job.submit for job in jobs], sizes)]
        if rng.random() < 0.5:
            keys.reverse()
        own, best_fit = bool(rng.random() < 0.4), bool(rng.random() < 0.5)
        threshold, ties = float(rng.choice([math.inf, 0, 5, 20])), str(rng.choice(["fifo", "lifo"]))
        plain = [key.tolist() for key in keys]
        Online(
            jobs,
            tuple(map(int, counters)),
            [tuple(map(int, node)) for node in nodes],
            lambda job, *_, plain=plain: plain[0][job.id],
            backfill,
            threshold,
            ties,
            (lambda job, *_, plain=plain: plain[1][job.id]) if own else None,
            best_fit,
        ).run()
        order = Order(NEVER if math.isinf(threshold) else int(threshold), ties == "lifo", backfill == "easy", own)
        found = starts_of_the_kernel(jobs, counters, nodes, keys, order, best_fit)
        assert found == [(job.start, job.backfilled, job.placed) for job in jobs], case
        backfilled += sum(job.backfilled for job in jobs)
    assert (backfilled > 500) == (backfill == "easy")


def test_what_is_free_on_the_nodes_is_counted_exactly() -> None:
    """The tables that spare a look at all nodes, after every job that takes and gives back its own."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        kinds = rng.integers(1, 9, (3, 2))
        each = kinds[rng.integers(0, 3, int(rng.integers(1, 7)))]
        nodes = new_nodes(each[:, 0] | each[:, 1] << MEMORY + 1, GUARD, MASK, 200, best_fit=bool(rng.random() < 0.5))
        assert len(nodes.at_least) == each[:, 0].max() + 1
        running: list[tuple[int, int, Ask, int]] = []
        first = 0
        for _ in range(12):
            ask = Ask(int(rng.integers(1, len(nodes.at_least)) | rng.integers(0, 5) << MEMORY + 1), rng.random() < 0.3)
            fitting = count_fitting(nodes, ask)
            count = int(rng.integers(1, 4))
            assert may_fit(nodes, ask, count) or fitting < count
            if fitting >= count:
                choose_nodes(nodes, first, first + count, ask, NO_HEAD)
                before = int((nodes.free & MASK).sum())
                cores, lost = take_nodes(nodes, first, first + count, ask, NO_HEAD)
                assert (cores, lost) == (before - int((nodes.free & MASK).sum()), 0)
                running.append((first, first + count, ask, cores))
                first += count
            elif running:
                begin, end, held, cores = running.pop(int(rng.integers(len(running))))
                assert release_nodes(nodes, begin, end, held) == cores
            free = nodes.free & MASK
            assert nodes.at_least.tolist() == [int((free >= least).sum()) for least in range(len(nodes.at_least))]
        for begin, end, held, cores in running:
            assert release_nodes(nodes, begin, end, held) == cores
        assert (nodes.free == nodes.capacity).all()
