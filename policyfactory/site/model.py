"""A site: what a cluster has and what its scheduler is told, in Slurm's words."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from policyfactory.core.text import shortened
from policyfactory.site.values import (
    COUNT,
    HOSTS,
    LIMIT,
    MEMORY,
    MOMENT,
    MOST_CORES,
    MOST_GPUS,
    MOST_THREADS,
    NUMBER,
    NUMBERS,
    SECONDS,
    SHARES,
    VERSION,
    WEIGHT,
    expand,
    parse_version,
)
from policyfactory.workload.declared import FLAG, NAMES, TEXT, choice, count, kept, rows


@dataclasses.dataclass(frozen=True, slots=True)
class Priority:
    """PriorityType and its weights.

    Parameters
    ----------
    kind : {"multifactor", "basic"}
        ``basic`` is first come, first served.
    age, fair_share, job_size, partition, qos, association : int
        PriorityWeightAge and so on.
    tres : mapping of str to float
        PriorityWeightTRES by ``cpu``, ``mem``, ``node``, ``gres/gpu``.
    max_age : float
        Seconds after which age counts no more (PriorityMaxAge).
    favor_small : bool
        PriorityFavorSmall.
    calculation_period : float
        Seconds (PriorityCalcPeriod).
    half_life : float
        Seconds of the decay of usage (PriorityDecayHalfLife); 0: usage does not decay.
    flags : tuple of str
        PriorityFlags in Slurm's words. Fair Tree is the default since Slurm 19.05; ``NO_FAIR_TREE`` turns it off.
    """

    kind: Literal["multifactor", "basic"] = kept(choice("multifactor", "basic"), "multifactor")
    age: int = kept(WEIGHT, 0, slurm="PriorityWeightAge")
    fair_share: int = kept(WEIGHT, 0, slurm="PriorityWeightFairshare")
    job_size: int = kept(WEIGHT, 0, slurm="PriorityWeightJobSize")
    partition: int = kept(WEIGHT, 0, slurm="PriorityWeightPartition")
    qos: int = kept(WEIGHT, 0, slurm="PriorityWeightQOS")
    association: int = kept(WEIGHT, 0, slurm="PriorityWeightAssoc")
    tres: Mapping[str, float] = kept(NUMBERS, dict)
    max_age: float = kept(SECONDS, 7 * 86400.0, slurm="PriorityMaxAge")
    favor_small: bool = kept(FLAG, False, slurm="PriorityFavorSmall")
    calculation_period: float = kept(SECONDS, 300.0, slurm="PriorityCalcPeriod")
    half_life: float = kept(SECONDS, 7 * 86400.0, slurm="PriorityDecayHalfLife")
    flags: tuple[str, ...] = kept(NAMES, ())


@dataclasses.dataclass(frozen=True, slots=True)
class SchedulerParameter:
    """How Slurm writes a value of SchedulerParameters, and where it acts.

    Parameters
    ----------
    engine : str
        The field of `policyfactory.engine.slurm.jobs.SlurmSettings` that has it.
    unit : int or float
        Seconds of Slurm's unit; 1 of a count.
    low, high : int
        Slurm says in its log that a value beyond these is invalid, and takes the default.
    """

    engine: str
    unit: float = 1
    low: int = 0
    high: int = 2**31 - 1


# The versions of Slurm whose rules are simulated and compared with the real scheduler's, the oldest first; and the
# newest whose source was at hand: its rules, and its defaults, are taken where no version is said.
VERSIONS = ("22.05", "24.11", "26.05")
ASSUMED_VERSION = "24.11"


def _count(default: int, engine: str, *bounds: int) -> Any:
    return kept(COUNT, default, parameter=SchedulerParameter(engine, 1, *bounds))


def _time(default: float, engine: str, *bounds: int, unit: float = 1.0) -> Any:
    return kept(SECONDS, default, parameter=SchedulerParameter(engine, unit, *bounds))


@dataclasses.dataclass(frozen=True, slots=True)
class Scheduling:
    """SchedulerType, SelectType and SchedulerParameters; times in seconds.

    Parameters
    ----------
    backfill : bool
        sched/backfill, not sched/builtin.
    select : {"cores", "cores+memory", "nodes"}
        What is consumed: CR_CPU or CR_Core; CR_CPU_Memory or CR_Core_Memory; select/linear.
    default_queue_depth, bf_max_job_test : int
        Jobs that a main and a backfilling pass look at, at least 1; of the other counts 0 is no limit.
    partition_job_depth, sched_interval, batch_sched_delay, sched_max_job_start
        Of the main pass.
    bf_interval, bf_window, bf_resolution, bf_max_job_part, bf_max_job_user, bf_max_job_user_part, \
bf_max_job_assoc, bf_max_job_start, bf_continue, bf_min_prio_reserve, bf_job_part_count_reserve, bf_min_age_reserve
        Of the backfilling pass. ``bf_continue`` is kept and has no effect: passes take no time in the simulation, so
        none is ever interrupted.
    default_memory_per_core, default_memory_per_node : int
        MB of a job that asks for none (DefMemPerCPU, DefMemPerNode); 0: all of the node where memory is consumed.
    default_memory_per_gpu, default_cores_per_gpu : int
        Of a job that asks for GPUs, and for no memory or no cores (DefMemPerGPU, DefCpuPerGPU); 0: the others hold.
    kill_overrun : float
        Seconds that a job may run over its limit (OverTimeLimit); infinite: jobs are not killed.
    slurm_version : str
        Whose rules hold: ``24.11``; empty: nobody says it. See `rules_version`.
    """

    backfill: bool = kept(FLAG, True)
    select: Literal["cores", "cores+memory", "nodes"] = kept(choice("cores", "cores+memory", "nodes"), "cores")
    default_queue_depth: int = _count(100, "queue_depth")
    partition_job_depth: int = _count(0, "partition_depth")
    sched_interval: float = _time(60.0, "sched_interval")
    batch_sched_delay: float = _time(3.0, "batch_delay")
    sched_max_job_start: int = _count(0, "most_starts")
    bf_interval: float = _time(30.0, "interval", 1, 10_800)
    bf_window: float = _time(86400.0, "window", 1, 43_200, unit=60.0)
    bf_resolution: float = _time(60.0, "resolution", 1, 3_600)
    bf_max_job_test: int = _count(500, "most_tested", 1, 1_000_000)
    bf_max_job_part: int = _count(0, "most_of_partition")
    bf_max_job_user: int = _count(0, "most_of_user")
    bf_max_job_user_part: int = _count(0, "most_of_user_partition")
    bf_max_job_assoc: int = _count(0, "most_of_association")
    bf_max_job_start: int = _count(0, "most_started", 0, 10_000)
    bf_continue: bool = kept(FLAG, False)
    bf_min_prio_reserve: float = kept(NUMBER, 0.0, parameter=SchedulerParameter("least_priority", 1.0, 0, 2**32 - 1))
    bf_job_part_count_reserve: int = _count(0, "reserved_of_partition", 0, 100_000)
    bf_min_age_reserve: float = _time(0.0, "least_age", 0, 2_592_000)
    default_memory_per_core: int = kept(MEMORY, 0, slurm="DefMemPerCPU")
    default_memory_per_node: int = kept(MEMORY, 0, slurm="DefMemPerNode")
    default_memory_per_gpu: int = kept(MEMORY, 0, slurm="DefMemPerGPU")
    default_cores_per_gpu: int = kept(COUNT, 0, slurm="DefCpuPerGPU")
    kill_overrun: float = kept(SECONDS, 0.0)
    slurm_version: str = kept(VERSION, "", slurm="SLURM_VERSION")

    @property
    def rules_version(self) -> str:
        """The version whose rules are simulated: the newest of `VERSIONS` that is not newer, or else the oldest."""
        asked = parse_version(self.slurm_version or ASSUMED_VERSION)
        older = [version for version in VERSIONS if asked is None or (parse_version(version) or asked) <= asked]
        return older[-1] if older else VERSIONS[0]

    @property
    def rules_in_words(self) -> str:
        """Whose rules are simulated, and what is assumed of that."""
        if not self.slurm_version:
            return (
                f"assumed: the rules and defaults of Slurm {self.rules_version}; the site does not say its version: "
                "give it (site import --slurm-version, or slurm_version under [scheduling])"
            )
        if self.slurm_version == self.rules_version:
            return f"the rules are those of Slurm {self.rules_version}"
        return (
            f"assumed: the rules of Slurm {self.rules_version}; those of {self.slurm_version} are not simulated "
            f"(simulated are {', '.join(VERSIONS)})"
        )


STOPPING = ("off", "requeue", "cancel")


@dataclasses.dataclass(frozen=True, slots=True)
class Preemption:
    """PreemptType, PreemptMode and PreemptParameters: which running jobs are stopped for others.

    Parameters
    ----------
    kind : {"none", "partition_prio", "qos"}
        By the tiers of partitions, or by what each QOS says (PreemptType).
    mode : {"off", "requeue", "cancel"}
        What becomes of a stopped job whose partition, or QOS, does not say it (PreemptMode).
    exempt_time : float
        Seconds that a job is safe after its start, where its QOS do not say it (PreemptExemptTime).
    youngest_first, strict_order : bool
        In which order jobs are stopped (``youngest_first``, ``strict_order``).
    reorder_count : int
        How often the jobs are put into another order, so that fewer are stopped (``reorder_count``).
    min_exempt_priority : float
        Jobs of a higher priority are safe (``min_exempt_priority``).
    job_requeue : bool
        Whether jobs can be put back into the queue; if not, they are cancelled (JobRequeue).
    """

    kind: Literal["none", "partition_prio", "qos"] = kept(choice("none", "partition_prio", "qos"), "none")
    mode: Literal["off", "requeue", "cancel"] = kept(choice(*STOPPING), "off")
    exempt_time: float = kept(SECONDS, 0.0)
    youngest_first: bool = kept(FLAG, False)
    strict_order: bool = kept(FLAG, False)
    reorder_count: int = kept(COUNT, 1)
    min_exempt_priority: float = kept(LIMIT, math.inf)
    job_requeue: bool = kept(FLAG, True)

    @property
    def on(self) -> bool:
        """Whether jobs are stopped for others at all."""
        return self.kind != "none" and self.mode != "off"


PARAMETERS: dict[str, SchedulerParameter] = {
    field.name: field.metadata["parameter"] for field in dataclasses.fields(Scheduling) if "parameter" in field.metadata
}


def declared_settings() -> dict[str, tuple[str, ...]]:
    """Return the keys of slurm.conf, and the SchedulerParameters, that are fields of `Priority` and `Scheduling`."""
    fields = (*dataclasses.fields(Priority), *dataclasses.fields(Scheduling))
    return {
        "conf": tuple(field.metadata["slurm"] for field in fields if "slurm" in field.metadata),
        "parameters": tuple(PARAMETERS),
    }


# A site: what a cluster has and what its scheduler is told, in Slurm's words ------------------------------------------


NEVER = math.inf
_PRIORITY = count(0, 65_535)
_LONGEST_SETTING = 2_000  # characters that are kept of one that is not modelled


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike.

    Parameters
    ----------
    names : str
        A host list: ``cn[001-100]``.
    cores : int
        Processors of each (CPUs).
    memory : int
        MB of each (RealMemory); 0: not counted.
    gpus : int
        GPUs of each (Gres).
    weight : int
        Nodes of a lower weight are taken first (Weight).
    threads : int
        Processors of a core, which one job has whole (ThreadsPerCore, with CR_Core); 1: jobs take single processors.
    """

    names: str = kept(HOSTS)
    cores: int = kept(count(1, MOST_CORES), 1)
    memory: int = kept(MEMORY, 0)
    gpus: int = kept(count(0, MOST_GPUS), 0)
    weight: int = kept(WEIGHT, 1)
    threads: int = kept(count(1, MOST_THREADS), 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The most of something; infinity where there is no limit.

    Parameters
    ----------
    jobs, submitted : float
        Jobs that run; jobs that run or wait.
    nodes, cores, memory, gpus : float
        Held by running jobs; memory in MB.
    """

    jobs: float = kept(LIMIT, NEVER)
    submitted: float = kept(LIMIT, NEVER)
    nodes: float = kept(LIMIT, NEVER)
    cores: float = kept(LIMIT, NEVER)
    memory: float = kept(MEMORY, NEVER)
    gpus: float = kept(LIMIT, NEVER)


@dataclasses.dataclass(frozen=True, slots=True)
class Partition:
    """A partition, its nodes and what it lets jobs ask for.

    Parameters
    ----------
    name : str
        PartitionName.
    nodes : str
        A host list, or ``ALL``.
    default : bool
        Whether jobs that name no partition go here.
    tier : int
        PriorityTier: jobs of a higher tier are all looked at first.
    job_factor : int
        PriorityJobFactor, weighed by PriorityWeightPartition.
    max_time, default_time : float
        Seconds; infinite where there is no limit.
    max_nodes, min_nodes : float
        Nodes that a job may ask for.
    exclusive : bool
        Whether jobs get whole nodes (OverSubscribe=EXCLUSIVE).
    qos : str
        The partition's own QOS, whose limits hold for all its jobs; empty: none.
    allowed_accounts, allowed_qos : tuple of str
        Who may use it; empty: everybody.
    up : bool
        Whether jobs start in it (State=UP).
    preempt_mode : {"", "off", "requeue", "cancel"}
        What becomes of its jobs where those of higher tiers need their nodes; empty: as of the cluster.
    grace_time : float
        Seconds that they then have left (GraceTime).
    default_memory_per_core, default_memory_per_node, default_memory_per_gpu, default_cores_per_gpu : int
        As of `Scheduling`, for its jobs; 0: the cluster's.
    billing : mapping of str to float
        What each ``cpu``, MB of ``mem``, ``node`` and ``gres/gpu`` counts in usage (TRESBillingWeights); empty: cores.
    """

    name: str = kept(TEXT)
    nodes: str = kept(HOSTS, "ALL")
    default: bool = kept(FLAG, False)
    tier: int = kept(_PRIORITY, 1)
    job_factor: int = kept(_PRIORITY, 1)
    max_time: float = kept(SECONDS, NEVER)
    default_time: float = kept(SECONDS, NEVER)
    max_nodes: float = kept(LIMIT, NEVER)
    min_nodes: int = kept(COUNT, 1)
    exclusive: bool = kept(FLAG, False)
    qos: str = kept(TEXT, "")
    allowed_accounts: tuple[str, ...] = kept(NAMES, ())
    allowed_qos: tuple[str, ...] = kept(NAMES, ())
    up: bool = kept(FLAG, True)
    preempt_mode: Literal["", "off", "requeue", "cancel"] = kept(choice("", *STOPPING), "")
    grace_time: float = kept(SECONDS, 0.0)
    default_memory_per_core: int = kept(MEMORY, 0)
    default_memory_per_node: int = kept(MEMORY, 0)
    default_memory_per_gpu: int = kept(MEMORY, 0)
    default_cores_per_gpu: int = kept(COUNT, 0)
    billing: Mapping[str, float] = kept(NUMBERS, dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Qos:
    """A quality of service.

    Parameters
    ----------
    name : str
        Its name.
    priority : int
        Weighed by PriorityWeightQOS.
    max_wall : float
        Seconds that a job may ask for (MaxWall).
    total : Limits
        Of all its jobs together (GrpTRES, GrpJobs, GrpSubmit).
    per_user, per_account : Limits
        Of the jobs of each user (MaxTRESPerUser, MaxJobsPerUser, MaxSubmitJobsPerUser), of each account.
    per_job : Limits
        Of one job (MaxTRESPerJob).
    usage_factor : float
        How much its jobs count in fair share (UsageFactor).
    flags : tuple of str
        Slurm's flags, in its words: NoReserve, OverPartQOS, PartitionMaxNodes, PartitionMinNodes, PartitionTimeLimit.
    preempts : tuple of str
        The QOS whose jobs are stopped for its own (Preempt).
    preempt_mode, grace_time
        As of a partition, where jobs are stopped by QOS.
    exempt_time : float
        Seconds that its jobs are safe after their start (PreemptExemptTime); infinite: it does not say.
    per_node : Limits
        Of one job on each of its nodes, in the mean (MaxTRESPerNode).
    """

    name: str = kept(TEXT)
    priority: int = kept(WEIGHT, 0)
    max_wall: float = kept(SECONDS, NEVER)
    total: Limits = kept(Limits, Limits())
    per_user: Limits = kept(Limits, Limits())
    per_account: Limits = kept(Limits, Limits())
    per_job: Limits = kept(Limits, Limits())
    usage_factor: float = kept(NUMBER, 1.0)
    flags: tuple[str, ...] = kept(NAMES, ())
    preempts: tuple[str, ...] = kept(NAMES, ())
    preempt_mode: Literal["", "off", "requeue", "cancel"] = kept(choice("", *STOPPING), "")
    grace_time: float = kept(SECONDS, 0.0)
    exempt_time: float = kept(SECONDS, NEVER)
    per_node: Limits = kept(Limits, Limits())


@dataclasses.dataclass(frozen=True, slots=True)
class Association:
    """An account, or a user in an account.

    Parameters
    ----------
    account : str
        Its name.
    user : str
        Empty: the account itself.
    parent : str
        The account above; empty: root.
    shares : float
        Fairshare; NaN stands for ``parent``, that is: the user counts as the account does.
    max_wall : float
        Seconds that a job may ask for (MaxWall); infinite: what the accounts above say.
    total : Limits
        Of all jobs below it together (GrpTRES, GrpJobs, GrpSubmitJobs).
    own : Limits
        Of the user's jobs in this account (MaxJobs, MaxSubmitJobs); a user without takes those of the accounts above.
    per_job : Limits
        Of one job (MaxTRES); inherited in the same way.
    default_qos : str
        Of jobs that name none; empty: that of the account above.
    qos : tuple of str
        Which it may use; empty: those of the account above, and all where none of these names any.
    priority : int
        Weighed by PriorityWeightAssoc; 0: that of the account above.
    per_node : Limits
        Of one job on each of its nodes (MaxTRESPerNode); inherited as ``per_job``.
    """

    account: str = kept(TEXT)
    user: str = kept(TEXT, "")
    parent: str = kept(TEXT, "")
    shares: float = kept(SHARES, 1.0)
    max_wall: float = kept(SECONDS, NEVER)
    total: Limits = kept(Limits, Limits())
    own: Limits = kept(Limits, Limits())
    per_job: Limits = kept(Limits, Limits())
    default_qos: str = kept(TEXT, "")
    qos: tuple[str, ...] = kept(NAMES, ())
    priority: int = kept(WEIGHT, 0)
    per_node: Limits = kept(Limits, Limits())

    @property
    def entry(self) -> str:
        """What messages call it."""
        return f"association {self.account}{f'/{self.user}' if self.user else ''}"


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes kept for some from one time to another, known beforehand.

    Parameters
    ----------
    name : str
        ReservationName.
    nodes : str
        A host list.
    start, end : float
        Unix seconds.
    users, accounts : tuple of str
        Whose jobs may use it, with ``-`` in front all others'; both empty: nobody's (maintenance).
    known : float
        Unix seconds from which the scheduler knows it; minus infinity: always.
    flags : tuple of str
        Slurm's, in its words: MAINT, OVERLAP, ALL_NODES.
    """

    name: str = kept(TEXT)
    nodes: str = kept(HOSTS)
    start: float = kept(MOMENT)
    end: float = kept(MOMENT)
    users: tuple[str, ...] = kept(NAMES, ())
    accounts: tuple[str, ...] = kept(NAMES, ())
    known: float = kept(MOMENT, -NEVER)
    flags: tuple[str, ...] = kept(NAMES, ())


@dataclasses.dataclass(frozen=True, slots=True)
class Outage:
    """Nodes that are not there from one time to another, which the scheduler does not know beforehand.

    Parameters
    ----------
    nodes : str
        A host list.
    start, end : float
        Unix seconds.
    drained : bool
        Whether jobs on them run on to their end (DRAIN); otherwise they are put back into the queue (DOWN).
    reason : str
        In words.
    """

    nodes: str = kept(HOSTS)
    start: float = kept(MOMENT)
    end: float = kept(MOMENT, NEVER)
    drained: bool = kept(FLAG, False)
    reason: str = kept(TEXT, "")


@dataclasses.dataclass(frozen=True, slots=True)
class NotModelled:
    """A setting that is there and is not modelled.

    Parameters
    ----------
    name, value : str
        The setting as it stands in its file; of very long ones the beginning and the end are kept.
    place : str
        ``file:line``.
    effect : str
        What it would change.
    """

    name: str = kept(TEXT)
    value: str = kept(TEXT)
    place: str = kept(TEXT)
    effect: str = kept(TEXT)

    def __post_init__(self) -> None:
        for field in ("name", "value", "effect"):
            text = getattr(self, field)
            if len(text) > _LONGEST_SETTING:
                object.__setattr__(self, field, shortened(text, _LONGEST_SETTING))


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """What a cluster has and what its scheduler is told.

    Parameters
    ----------
    name : str
        ClusterName.
    nodes : tuple of NodeGroup
        In the order of the scheduler's own file.
    partitions : tuple of Partition
        At least one.
    qos, associations, reservations, outages
        As their classes say; empty where the site has none.
    priority, scheduling, preemption
        Their settings.
    enforced : tuple of str
        AccountingStorageEnforce: of ``associations``, ``limits``, ``qos``, ``safe``; without ``limits`` none is kept.
    not_modelled : tuple of NotModelled
        What matters and is not modelled.
    remarks : tuple of str
        What its import assumed, and what it corrected as the scheduler itself would, in sentences.
    assumed : str
        What was assumed where nobody described the site, in a sentence; empty: somebody did.
    """

    name: str = kept(TEXT)
    nodes: tuple[NodeGroup, ...] = rows(NodeGroup)
    partitions: tuple[Partition, ...] = rows(Partition)
    qos: tuple[Qos, ...] = rows(Qos)
    associations: tuple[Association, ...] = rows(Association)
    reservations: tuple[Reservation, ...] = rows(Reservation)
    outages: tuple[Outage, ...] = rows(Outage)
    priority: Priority = kept(Priority, Priority())
    scheduling: Scheduling = kept(Scheduling, Scheduling())
    preemption: Preemption = kept(Preemption, Preemption())
    enforced: tuple[str, ...] = kept(NAMES, ())
    not_modelled: tuple[NotModelled, ...] = rows(NotModelled)
    remarks: tuple[str, ...] = kept(NAMES, ())
    assumed: str = ""

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, by node number."""
        return _names_of(self.nodes)

    def lets_in(self, partition: Partition, account: str) -> bool:
        """Tell whether a partition is open to an account: since 24.11 AllowAccounts names those below, too."""
        allowed = partition.allowed_accounts
        if not allowed or account in allowed or self.scheduling.rules_version < "24.11":
            return not allowed or account in allowed
        above, seen = {its.account: its.parent or "root" for its in self.associations if not its.user}, {account}
        while (account := above.get(account, "root")) not in seen:
            if account in allowed:
                return True
            seen.add(account)
        return False


@functools.lru_cache(maxsize=16)
def _names_of(groups: tuple[NodeGroup, ...]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in expand(group.names))


# Where the entries of an imported site stand in the scheduler's own files ---------------------------------------------

# A contradiction in an import is told with its line in the file that has to be changed, and a cure for that file.

_LONGEST_LINE = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """A key as it is written, its value, and the file and line where it stands."""

    key: str
    value: str
    location: str


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be true of a site.

    Parameters
    ----------
    kind : str
        By which a scheduler's file has its own cure.
    entry : str
        What of the site, ``partition batch``; empty: the site itself.
    text : str
        What is wrong.
    cure : str
        What to do in a site file.
    """

    kind: str
    entry: str
    text: str
    cure: str

    def sentence(self, cure: str = "") -> str:
        """Return it with the cure of a site file, or another one."""
        return shortened(f"{self.text}; {cure or self.cure}", _LONGEST_LINE)


@dataclasses.dataclass(slots=True)
class Origin:
    """Places and settings of the entries of a site.

    Parameters
    ----------
    cures : mapping of str to str
        By kind of contradiction.
    entries : dict of str to tuple of str and mapping of str to Setting
        By entry, as a `Contradiction` has it, the line where it begins and its settings; of two of a name the last.
    not_modelled : list of NotModelled
        What matters and is not modelled, in the order in which it was read.
    """

    cures: Mapping[str, str]
    entries: dict[str, tuple[str, Mapping[str, Setting]]] = dataclasses.field(default_factory=dict)
    not_modelled: list[NotModelled] = dataclasses.field(default_factory=list)
    _first: dict[str, str] = dataclasses.field(default_factory=dict, init=False)
    _times: Counter[str] = dataclasses.field(default_factory=Counter, init=False)

    def note(self, entry: str, location: str, settings: Mapping[str, Setting]) -> None:
        """Keep where an entry stands."""
        self.entries[entry] = (location, settings)

    def remark(self, kind: Literal["assumed", "corrected"], what: str, how: str) -> None:
        """Keep what was assumed, or what the scheduler corrects and goes on; so do we.

        Parameters
        ----------
        kind : {"assumed", "corrected"}
            Which of the two.
        what : str
            The setting or entry as it stands there, with its place.
        how : str
            What is taken in its place, in a sentence; of those with the same one the first is told, and the number.
        """
        self._first.setdefault(how, f"{kind}: {what}")
        self._times[how] += 1

    def differs(self, setting: Setting, effect: str, of: str = "") -> None:
        """Keep that a setting, of an entry if one is given, is not modelled."""
        self.not_modelled.append(NotModelled(f"{of} {setting.key}".strip(), setting.value, setting.location, effect))

    def correct(self, setting: Setting, of: str, how: str) -> None:
        """Keep that the scheduler corrects a setting of an entry: `remark` with its value and place."""
        what = f"{of} {setting.key}={shortened(setting.value, 60)}".strip()
        self.remark("corrected", f"{shortened(what, 160)} ({setting.location})", how)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed and corrected, each kind in a sentence."""
        return tuple(
            f"{first}: {how}" + (f"; so too {self._times[how] - 1:,} more" if self._times[how] > 1 else "")
            for how, first in self._first.items()
        )

    def sentence(self, contradiction: Contradiction, where: str) -> str:
        """Return a contradiction with its line and the cure of the file; ``where`` stands for an unknown line."""
        location, _ = self.entries.get(contradiction.entry, ("", {}))
        return f"{location or where}: {contradiction.sentence(self.cures.get(contradiction.kind, ''))}"
