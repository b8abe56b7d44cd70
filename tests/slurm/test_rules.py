"""The plain Slurm (tests/naive/slurm.py) beside the real one: where a pass puts jobs, and when backfilling plans them.

Small clusters drawn at random: nodes of several sizes and weights, memory, GPUs, whole nodes or shared ones, partitions
that overlap. No clock is accelerated here, and no job ends: what is compared is one decision, in the same state.
"""

from __future__ import annotations

import calendar
import dataclasses
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from naive.slurm import Job, Simulation
from naive.slurm_backfill import Backfill
from naive.slurm_jobs import Entry
from policyfactory.site.model import NodeGroup, Partition, Scheduling, Site
from schedulers.processes import short_directory, wait_for
from schedulers.replay_site import gres, node_lines, partition_line, settings
from schedulers.slurm import Cluster

NODES = 8
BEFORE = 8  # seconds in which all jobs are submitted
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]


class SiteCluster(Cluster):
    """A cluster with the nodes, partitions and settings of a site."""

    def __init__(self, folder: Path, site: Site) -> None:
        files = {"gres.conf": gres(site, folder)} if any(group.gpus for group in site.nodes) else {}
        lines = [line for line in settings(site) if not line.startswith("AccountingStorageTRES")]
        super().__init__(folder, nodes=NODES, lines=[*lines, "SlurmctldDebug=debug"], files=files, partitions=())
        kept = [line for line in self.configuration.read_text().splitlines() if not line.startswith("NodeName=")]
        kept += node_lines(site, self.port)
        kept += [partition_line(partition, f"n[1-{NODES}]") for partition in site.partitions]
        self.configuration.write_text("\n".join(kept) + "\n")
        self.environment |= {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        self.daemons.environment["TZ"] = "UTC"

    def shown(self, number: int) -> tuple[dict[str, str], dict[int, int]]:
        """Return what scontrol says of a job, and the cores that it has by node (from 0 on)."""
        text = self.run("scontrol", "show", "job", "-d", number)
        cores = {}
        for names, ids in re.findall(r"^\s+Nodes=(\S+) CPU_IDs=(\S+)", text, re.MULTILINE):
            ranges = re.findall(r"(\d+)(?:-(\d+))?", ids)
            for name in self.run("scontrol", "show", "hostnames", names).split():
                cores[int(name[1:]) - 1] = sum(int(last or first) - int(first) + 1 for first, last in ranges)
        return dict(re.findall(r"(\w+)=(\S+)", text)), cores

    def submit(self, jobs: list[Job], *more: str) -> dict[int, Job]:
        """Submit the jobs; return them by Slurm's number. One that no node could ever run is left out."""
        numbers = {}
        for job in jobs:
            answer = self.run("sbatch", *more, *_asked(job), check=False).strip()
            if answer.isdigit():
                numbers[int(answer)] = job
        return numbers


def _asked(job: Job) -> Iterator[str]:
    yield from ("--parsable", "-o", "/dev/null", "-t", str(job.limit // 60), "-p", job.partition)
    if job.nodes > 0:
        yield f"-N{job.nodes}"
        yield f"-n{job.cores}" if job.cores % job.nodes else f"--ntasks-per-node={job.cores // job.nodes}"
    else:
        yield f"-n{job.cores}"
    if job.memory > 0:
        yield f"--mem={job.memory // job.nodes}" if job.nodes > 0 else f"--mem-per-cpu={job.memory // job.cores}"
    if job.gpus:
        yield f"--gres=gpu:{job.gpus // job.nodes}"
    if job.exclusive:
        yield "--exclusive"
    yield from ("--wrap", "exec sleep 1000")


def draw_site(draw: random.Random, *, backfill: bool) -> Site:
    whole, memory = draw.random() < 0.3, draw.random() < 0.5
    nodes = tuple(
        NodeGroup(
            f"n{i}",
            draw.choice((2, 4, 4, 8)),
            draw.choice((1000, 2000)),
            draw.choice((0, 0, 2)),
            draw.choice((1, 1, 2)),
        )
        for i in range(1, NODES + 1)
    )
    parts = [Partition("batch", default=True, exclusive=whole)]
    if draw.random() < 0.5:
        parts += [Partition("left", "n[1-4]", tier=draw.choice((1, 2)), exclusive=whole)]
        parts += [Partition("middle", "n[3-6]", exclusive=whole)]
    plan = Scheduling(
        select="cores+memory" if memory else "cores",
        default_memory_per_core=100 if memory else 0,
        backfill=backfill,
        batch_sched_delay=0,
        sched_interval=5,
        bf_interval=1,
        bf_resolution=draw.choice((1, 60, 300)),
        bf_window=7 * 86400,
        bf_job_part_count_reserve=draw.choice((0, 0, 1)),
    )
    return Site("drawn", nodes, tuple(parts), scheduling=plan)


def draw_jobs(draw: random.Random, site: Site, most: int) -> list[Job]:
    jobs = []
    for id_ in range(1, draw.randint(most // 2, most)):
        nodes, whole = draw.choice((-1, 1, 1, 2, 3, 4)), site.partitions[0].exclusive or draw.random() < 0.1
        cores = draw.randint(1, 10) if nodes < 0 else nodes * draw.randint(1, 3) + draw.choice((0, 0, nodes > 1))
        gpus = nodes if nodes > 0 and draw.random() < 0.2 else 0
        memory = draw.choice((-1, 200)) * (nodes if nodes > 0 else cores)
        minutes = draw.choice((2, 3, 5, 6, 10, 11, 12, 20, 30, 31, 45, 60, 90))
        part = draw.choice(site.partitions).name
        if whole and nodes > 0:
            cores = nodes
        jobs.append(Job(id_, 0, 1000, 60 * minutes, nodes, int(cores), max(memory, -1), gpus, part, exclusive=whole))
    return jobs


@pytest.fixture
def start() -> Iterator[Callable[[Site], Any]]:
    with short_directory() as folder:
        yield lambda site: SiteCluster(folder, site)


def of_version(site: Site, cluster: Cluster) -> Site:
    """Return the site under the rules of the cluster's version."""
    version = ".".join(f"{number:02}" for number in cluster.version)
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=version))


def submitted(controller: Any, simulation: Simulation, job: Job, told: dict[str, str]) -> Entry:
    """Return the job as the twin has it, with the priority and the time that the real one has."""
    simulation._submit(job)
    entry = controller.pending[-1]
    entry.priority = int(told["Priority"])
    entry.submit = entry.begin = int(told["SubmitTime"])
    return entry


def with_threads(site: Site) -> Site:
    """Return a site whose processors are threads of cores."""
    nodes = tuple(dataclasses.replace(group, cores=2 * group.cores, threads=2) for group in site.nodes)
    return dataclasses.replace(site, nodes=nodes)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_pass_puts_jobs_where_the_twin_puts_them(start: Callable[[Site], Any], seed: int, threads: bool) -> None:
    draw = random.Random(seed)
    site = draw_site(draw, backfill=False)
    site = with_threads(site) if threads else site
    with start(site) as cluster:
        # All may start from one second on. Of nodes that were drained 26.05 takes some back sooner than others.
        begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + BEFORE))
        numbers = cluster.submit(draw_jobs(draw, site, 16), f"--begin={begin}")
        wait_for("a pass", lambda: cluster.run("squeue", "-h", "-t", "RUNNING").strip())
        time.sleep(6)  # a pass over the whole queue
        real = {number: cluster.shown(number) for number in numbers}
        site = of_version(site, cluster)
    simulation = Simulation(site, [], begin=2_000_000_000)
    controller = simulation.c
    controller.now = 2_000_000_000
    entries = {number: submitted(controller, simulation, job, real[number][0]) for number, job in numbers.items()}
    controller.main_pass(full=True)
    twin = {
        number: {controller.nodes.number[i]: share[0] for i, share in sorted(entry.allocation.items())}
        for number, entry in entries.items()
    }
    assert twin == {number: dict(sorted(cores.items())) for number, (_, cores) in real.items()}


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_backfilling_plans_what_the_twin_plans(start: Callable[[Site], Any], seed: int, threads: bool) -> None:
    draw = random.Random(seed)
    site = draw_site(draw, backfill=True)
    site = with_threads(site) if threads else site
    with start(site) as cluster:
        numbers = cluster.submit(draw_jobs(draw, site, 26))
        time.sleep(8)  # until what can start has started, and the rest is planned
        real = {number: cluster.shown(number) for number in numbers}
        log = (cluster.log / "slurmctld.log").read_text()
        site = of_version(site, cluster)
    # The passes since the last start, main ones too: what each found of GPUs is remembered in the next.
    last_start = max(log.rfind("Allocate JobId"), log.rfind("Started JobId"), 0)
    passes = re.findall(
        r"^\[([^.\]]+).*(Running job scheduler|_attempt_backfill: beginning)", log[last_start:], re.MULTILINE
    )
    while "backfill" not in passes[-1][1]:
        passes.pop()
    now = calendar.timegm(time.strptime(passes[-1][0], "%Y-%m-%dT%H:%M:%S"))
    simulation = Simulation(site, [], begin=now)
    controller = simulation.c
    controller.now = now
    planned = {}
    for number, job in numbers.items():
        told, cores = real[number]
        entry = submitted(controller, simulation, job, told)
        if told["JobState"] == "RUNNING":
            controller.pending.remove(entry)
            run(controller, entry, int(told["StartTime"]), cores)
        else:
            planned[number] = (entry, int(told["StartTime"]) if told["StartTime"].isdigit() else 0)
    for _, kind in passes:
        assert not (Backfill(controller).run() if "backfill" in kind else controller.main_pass(full=True))
    assert planned
    assert {number: entry.plan for number, (entry, _) in planned.items()} == {
        number: start for number, (_, start) in planned.items()
    }


def run(controller: Any, entry: Entry, start: int, cores: dict[int, int]) -> None:
    """Let a job run as it does in the real cluster."""
    nodes, demand = controller.nodes, entry.demand
    for number, held in cores.items():
        i = nodes.inner[number]
        memory = demand.memory or demand.memory_per_core * held
        entry.allocation[i] = (held, memory, nodes.gpus[i] if demand.whole else demand.gpus)
    entry.start, entry.believed_end = start, start + entry.limit
    controller.use.add(entry)
    controller.running.append(entry)
