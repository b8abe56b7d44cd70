"""A site: what a cluster has and what its scheduler is told, in Slurm's words."""

from __future__ import annotations

import dataclasses
import functools
import math

from policyfactory.core.text import shortened
from policyfactory.site.hostlist import expand
from policyfactory.site.settings import Priority, Scheduling

__all__ = [
    "Association",
    "Limits",
    "NodeGroup",
    "NotModelled",
    "Outage",
    "Partition",
    "Priority",
    "Qos",
    "Reservation",
    "Scheduling",
    "Site",
]

NEVER = math.inf
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
    """

    names: str
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    weight: int = 1


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

    jobs: float = NEVER
    submitted: float = NEVER
    nodes: float = NEVER
    cores: float = NEVER
    memory: float = NEVER
    gpus: float = NEVER


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
    """

    name: str
    nodes: str = "ALL"
    default: bool = False
    tier: int = 1
    job_factor: int = 1
    max_time: float = NEVER
    default_time: float = NEVER
    max_nodes: float = NEVER
    min_nodes: int = 1
    exclusive: bool = False
    qos: str = ""
    allowed_accounts: tuple[str, ...] = ()
    allowed_qos: tuple[str, ...] = ()
    up: bool = True


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
    """

    name: str
    priority: int = 0
    max_wall: float = NEVER
    total: Limits = Limits()
    per_user: Limits = Limits()
    per_account: Limits = Limits()
    per_job: Limits = Limits()
    usage_factor: float = 1.0
    flags: tuple[str, ...] = ()


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
    """

    account: str
    user: str = ""
    parent: str = ""
    shares: float = 1.0
    max_wall: float = NEVER
    total: Limits = Limits()
    own: Limits = Limits()
    per_job: Limits = Limits()
    default_qos: str = ""
    qos: tuple[str, ...] = ()
    priority: int = 0


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
        Whose jobs may use it; both empty: nobody's (maintenance).
    known : float
        Unix seconds from which the scheduler knows it; minus infinity: always.
    """

    name: str
    nodes: str
    start: float
    end: float
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    known: float = -NEVER


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

    nodes: str
    start: float
    end: float = NEVER
    drained: bool = False
    reason: str = ""


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

    name: str
    value: str
    place: str
    effect: str

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
    priority, scheduling
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

    name: str
    nodes: tuple[NodeGroup, ...]
    partitions: tuple[Partition, ...]
    qos: tuple[Qos, ...] = ()
    associations: tuple[Association, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    outages: tuple[Outage, ...] = ()
    priority: Priority = dataclasses.field(default_factory=Priority)
    scheduling: Scheduling = dataclasses.field(default_factory=Scheduling)
    enforced: tuple[str, ...] = ()
    not_modelled: tuple[NotModelled, ...] = ()
    remarks: tuple[str, ...] = ()
    assumed: str = ""

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, by node number."""
        return _names_of(self.nodes)


@functools.lru_cache(maxsize=16)
def _names_of(groups: tuple[NodeGroup, ...]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in expand(group.names))
