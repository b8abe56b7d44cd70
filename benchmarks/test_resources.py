"""Jobs per CPU second on machines of several resources: a pool of four, 1,000 nodes taken one by one.

    pytest benchmarks/test_resources.py --benchmark-enable

The logs of test_easy.py, whose jobs are given memory, GPUs and licences. On nodes their widths are scaled to 64,000
processors, at 64 a node. The same run times the simulator that knows processors only, on the same jobs.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
from test_easy import LOGS, read

from floors import record
from policyfactory.policy.catalogue import resolve
from policyfactory.simulate.machine import Licence, Machine
from policyfactory.simulate.prepare import prepare
from policyfactory.simulate.simulate import Rules, run_prepared
from policyfactory.site.model import NodeGroup
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

NODES, CORES, MEMORY, GPUS = 1000, 64, 256_000, 4
FLOORS = {"pool": 1.0, "first": 0.2, "best": 0.2}


def asked(log: Workload, seed: int = 1) -> Workload:
    """Return the jobs of a log, scaled to the nodes, with nodes, memory and GPUs; half of the jobs share nodes."""
    rng = np.random.default_rng(seed)
    n = len(log)
    processors = np.maximum(np.rint(log.processors * (NODES * CORES / log.machine)), 1).astype(np.int64)
    nodes = -(-processors // CORES)
    each = -(-processors // nodes)
    requests = dataclasses.replace(
        Requests.unknown(n),
        nodes=nodes,
        memory=nodes * np.minimum(each * rng.integers(500, 4000, n), MEMORY),
        gpus=np.where(rng.random(n) < 0.1, nodes * rng.integers(1, GPUS + 1, n), 0),
        exclusive=(rng.random(n) < 0.5).astype(np.int64),
    )
    return dataclasses.replace(log, machine=NODES * CORES, processors=processors, requests=requests)


@pytest.mark.benchmark(group="several resources", timer=time.process_time)
@pytest.mark.parametrize("placement", FLOORS)
@pytest.mark.parametrize("policy", ["FCFS", "SAF"])
@pytest.mark.parametrize("log", LOGS)
def test_resources(benchmark: Any, log: str, policy: str, placement: str) -> None:
    jobs, order = asked(read(log)), resolve(policy)
    licences = (Licence("solver", 2000, np.random.default_rng(2).integers(0, 3, len(jobs))),)
    groups = (NodeGroup(f"n[1-{NODES}]", cores=CORES, memory=MEMORY, gpus=GPUS),)
    several = prepare(jobs, Rules(), machine=Machine(groups, placement, licences=licences))
    plain = prepare(jobs, Rules())
    if benchmark.enabled:
        run_prepared(several, order)
        run_prepared(plain, order)
    benchmark.pedantic(run_prepared, (several, order), rounds=5)
    if benchmark.enabled:
        best = min(_seconds(plain, order) for _ in range(5))
        rate = len(jobs) / benchmark.stats.stats.min / 1e6
        what = f"{log}, {policy}, {'4 resources' if placement == 'pool' else f'{NODES:,} nodes, {placement} fit'}"
        ratio = best / benchmark.stats.stats.min
        to = "processors only"
        record("several resources", what, rate, "M jobs/CPU s", floor=FLOORS[placement], ratio=ratio, to=to)


@pytest.mark.benchmark(group="several resources", timer=time.process_time)
@pytest.mark.parametrize("placement", ["pool", "first"])
def test_conservative(benchmark: Any, placement: str) -> None:
    jobs = asked(read("KTH-SP2"))
    groups = (NodeGroup(f"n[1-{NODES}]", cores=CORES, memory=MEMORY, gpus=GPUS),)
    several = prepare(jobs, Rules("conservative"), machine=Machine(groups, placement))
    if benchmark.enabled:
        run_prepared(several, resolve("FCFS"))
    benchmark.pedantic(run_prepared, (several, resolve("FCFS")), rounds=2)
    if benchmark.enabled:
        what = f"KTH-SP2, FCFS, conservative, {'a pool' if placement == 'pool' else f'{NODES:,} nodes, first fit'}"
        record("several resources", what, len(jobs) / benchmark.stats.stats.min / 1e3, "k jobs/CPU s")


def _seconds(prepared: Any, order: Any) -> float:
    begin = time.process_time()
    run_prepared(prepared, order)
    return time.process_time() - begin
