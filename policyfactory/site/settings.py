"""What a scheduler is told: how it orders jobs, and when and how far its passes look."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

__all__ = ["Priority", "Scheduling"]


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

    kind: Literal["multifactor", "basic"] = "multifactor"
    age: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    association: int = 0
    tres: Mapping[str, float] = dataclasses.field(default_factory=dict)
    max_age: float = 7 * 86400.0
    favor_small: bool = False
    calculation_period: float = 300.0
    half_life: float = 7 * 86400.0
    flags: tuple[str, ...] = ()


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
    kill_overrun : float
        Seconds that a job may run over its limit (OverTimeLimit); infinite: jobs are not killed.
    """

    backfill: bool = True
    select: Literal["cores", "cores+memory", "nodes"] = "cores"
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_interval: float = 60.0
    batch_sched_delay: float = 3.0
    sched_max_job_start: int = 0
    bf_interval: float = 30.0
    bf_window: float = 86400.0
    bf_resolution: float = 60.0
    bf_max_job_test: int = 500
    bf_max_job_part: int = 0
    bf_max_job_user: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    bf_continue: bool = False
    bf_min_prio_reserve: float = 0.0
    bf_job_part_count_reserve: int = 0
    bf_min_age_reserve: float = 0.0
    default_memory_per_core: int = 0
    default_memory_per_node: int = 0
    kill_overrun: float = 0.0
