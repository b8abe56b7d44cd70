"""What the plain Slurm is told of each job, and what becomes of it."""

from __future__ import annotations

import dataclasses
import math

from policyfactory.site.model import Partition, Scheduling

__all__ = ["YEAR", "Allocation", "Demand", "Entry", "Job", "demand_of", "limit_of", "may_use"]

YEAR = 365 * 86400


@dataclasses.dataclass
class Job:
    """A job as it is submitted; seconds, MB; -1 and empty names where nothing is asked for.

    ``memory`` and ``gpus`` are those of the whole job; ``reservation`` names the one that it asks for.
    """

    id: int
    submit: int
    run_time: int
    limit: int = -1
    nodes: int = -1
    cores: int = 1
    memory: int = -1
    gpus: int = 0
    partition: str = ""
    qos: str = ""
    account: str = ""
    user: str = ""
    eligible: int = -1
    after: int = -1
    site_factor: int = 0
    exclusive: bool = False
    reservation: str = ""
    array: int = -1  # a number that its tasks share
    array_limit: int = -1  # how many of them may run at once
    ran: bool = False  # in the log: its cores are those that it got
    cancelled: int = -1  # when, if it waits still
    partitions: tuple[str, ...] = ()  # several, in the order of the request; it starts in one of them


# What a job holds of each node: (cores, MB, GPUs).
Allocation = dict[int, tuple[int, int, int]]


@dataclasses.dataclass(frozen=True)
class Demand:
    """What is looked for: nodes at least and at most, cores in all, the rest of each node (memory also per core)."""

    least: int
    most: float
    cores: int
    memory: int = 0
    memory_per_core: int = 0
    gpus: int = 0
    whole: bool = False
    per_node: int = 0  # cores of every node, where they are asked for by node
    no_memory: bool = False  # nothing is known of memory: it does not stand for all of a node's


@dataclasses.dataclass(eq=False)
class Entry:
    """A submitted job in the hands of the controller."""

    job: Job
    partition: Partition
    demand: Demand
    limit: int  # whole minutes, in seconds
    qos: str
    submit: int
    begin: int  # -1: depends on a job that has not ended
    accrue: int = -1  # since when age counts; -1: it does not yet
    priority: int = 0
    held: bool = False
    start: int = -1
    end: int = -1  # when it really ends
    believed_end: int = -1
    started_by: str = ""
    allocation: Allocation = dataclasses.field(default_factory=dict)
    seen: list[int] = dataclasses.field(default_factory=lambda: [0])  # that of its first entry: see `cores_seen`
    others: list[Entry] = dataclasses.field(default_factory=list)  # the same job in its other partitions
    place: int = 0  # of its partition among those of the job
    plan: int = 0  # the start that the running backfilling pass foresees
    requeues: int = 0
    preempted: int = 0  # how often it was stopped for others
    lost: int = 0  # node seconds of the runs that were stopped
    stopped_others: int = -YEAR  # when it last had others stopped
    to_stop: bool = False  # its grace time runs
    stops_at: int = -1  # when it is stopped after that, if it has not ended before

    @property
    def cores_seen(self) -> int:
        """Cores of the last placing of the job, real or planned, in any of its partitions (total_cpus)."""
        return self.seen[0]

    @cores_seen.setter
    def cores_seen(self, cores: int) -> None:
        self.seen[0] = cores

    @property
    def held_cores(self) -> int:
        return sum(cores for cores, _, _ in self.allocation.values())


def may_use(partition: Partition, job: Job, qos: str) -> bool:
    """Return whether a partition lets a QOS in; where the job's own is not known, nothing is held against it."""
    return not partition.allowed_qos or not job.qos or not qos or qos in partition.allowed_qos


def limit_of(job: Job, partition: Partition) -> int:
    """Return the limit in seconds that Slurm works with: whole minutes, rounded up; without any it is a year."""
    limit: float = job.limit
    if limit < 0:
        limit = partition.default_time if math.isfinite(partition.default_time) else partition.max_time
    return YEAR if math.isinf(limit) else math.ceil(limit / 60) * 60


def demand_of(job: Job, partition: Partition, scheduling: Scheduling, gpus_of_a_node: int) -> Demand:
    """Return what is asked of each node; what a log says of the whole job is spread evenly."""
    whole = job.exclusive or partition.exclusive or scheduling.select == "nodes"
    nodes, gpus = job.nodes, max(job.gpus, 0)
    if nodes < 0 and gpus:
        nodes = math.ceil(gpus / max(gpus_of_a_node, 1))
    memory = per_core = 0
    if job.memory >= 0:
        if nodes > 0:
            memory = math.ceil(job.memory / nodes)
        else:
            per_core = math.ceil(job.memory / job.cores)
    if nodes > 0:
        cores = max(job.cores, nodes)
        # As with --ntasks-per-node; what can not be spread evenly is asked for in all (-N and -n).
        per_node = 0 if whole or cores % nodes else cores // nodes
        return Demand(nodes, nodes, cores, memory, per_core, math.ceil(gpus / nodes), whole, per_node)
    # Where no number is asked for, that of the partition is put in at submission, whatever the QOS (job_mgr.c).
    return Demand(partition.min_nodes, math.inf, job.cores, memory, per_core, 0, whole)
