"""A site as a real Slurm is told of it: slurm.conf, the accounting's tables, reservations."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from pathlib import Path

from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Qos, Reservation, Site

_SELECT = {"cores": "CR_CPU", "cores+memory": "CR_CPU_Memory"}
# Of Scheduling, what SchedulerParameters calls the same; seconds unless said otherwise.
_SECONDS = ("batch_sched_delay", "bf_interval", "bf_resolution")
_COUNTS = (
    "default_queue_depth", "partition_job_depth", "sched_max_job_start", "bf_max_job_test", "bf_max_job_part",
    "bf_max_job_user", "bf_max_job_user_part", "bf_max_job_assoc", "bf_max_job_start", "bf_job_part_count_reserve",
    "bf_min_prio_reserve", "bf_min_age_reserve",
)  # fmt: skip


def count_nodes(group: NodeGroup) -> int:
    """Return how many nodes a group has, called ``n[1-8]``."""
    first, _, last = group.names.removeprefix("n").strip("[]").partition("-")
    return int(last or first) - int(first) + 1


def needs_accounting(site: Site) -> bool:
    """Return whether slurmctld needs slurmdbd: for shares, limits, age as part of the priority, GPUs as a TRES."""
    aged = site.priority.kind == "multifactor" and site.priority.age
    return bool(site.associations or site.qos or aged or any(group.gpus for group in site.nodes))


def settings(site: Site) -> list[str]:
    """Return the lines of slurm.conf that are of the site, but for nodes and partitions."""
    priority, plan = site.priority, site.scheduling
    threads = any(group.threads > 1 for group in site.nodes)
    select = _SELECT[plan.select].replace("CPU", "Core") if threads else _SELECT[plan.select]
    lines = [
        f"PriorityType=priority/{priority.kind}",
        f"SchedulerType=sched/{'backfill' if plan.backfill else 'builtin'}",
        f"SelectTypeParameters={select}",
        f"SchedulerParameters={','.join(scheduler_parameters(site))}",
    ]
    if plan.default_memory_per_core:
        lines.append(f"DefMemPerCPU={plan.default_memory_per_core}")
    if any(group.gpus for group in site.nodes):
        lines += ["GresTypes=gpu", "AccountingStorageTRES=gres/gpu"]
    if priority.kind == "multifactor":
        lines += [
            f"PriorityWeightAge={priority.age}",
            f"PriorityWeightFairshare={priority.fair_share}",
            f"PriorityWeightJobSize={priority.job_size}",
            f"PriorityWeightPartition={priority.partition}",
            f"PriorityWeightQOS={priority.qos}",
            f"PriorityMaxAge={minutes(priority.max_age)}",
            f"PriorityCalcPeriod={minutes(priority.calculation_period)}",
            f"PriorityDecayHalfLife={minutes(priority.half_life)}",
            f"PriorityFavorSmall={'YES' if priority.favor_small else 'NO'}",
        ]
        if priority.flags:
            lines.append(f"PriorityFlags={','.join(priority.flags)}")
        if priority.tres:
            weights = ",".join(f"{name}={weight:g}" for name, weight in priority.tres.items())
            lines.append(f"PriorityWeightTRES={weights}")
    lines += _preemption(site)
    if site.enforced:
        lines.append(f"AccountingStorageEnforce={','.join(site.enforced)}")
    return lines


def _preemption(site: Site) -> Iterator[str]:
    given = site.preemption
    if not given.on:
        return
    yield f"PreemptType=preempt/{given.kind}"
    yield f"PreemptMode={given.mode.upper()}"
    if given.exempt_time:
        yield f"PreemptExemptTime={exact(given.exempt_time)}"
    if given.min_exempt_priority < math.inf:
        yield f"PreemptParameters=min_exempt_priority={given.min_exempt_priority:.0f}"
    yield f"JobRequeue={int(given.job_requeue)}"


def scheduler_parameters(site: Site) -> Iterator[str]:
    """Give SchedulerParameters: the site's, and a machine that is fast enough for a clock that runs ahead."""
    plan = site.scheduling
    for name in _SECONDS:
        yield f"{name}={getattr(plan, name):.0f}"
    for name in _COUNTS:
        if getattr(plan, name):
            yield f"{name}={getattr(plan, name):.0f}"
    yield f"sched_interval={plan.sched_interval:.0f}"
    yield "sched_min_interval=0"
    yield f"bf_window={plan.bf_window / 60:.0f}"
    if plan.bf_continue:
        yield "bf_continue"
    # As all versions read them; Slurm 22.05 has no PreemptParameters.
    given = site.preemption
    yield from (f"preempt_{name}" for name in ("youngest_first", "strict_order") if getattr(given, name))
    if given.reorder_count != 1:
        yield f"preempt_reorder_count={given.reorder_count}"
    # A pass takes some real milliseconds, which are many on this clock: it must not be broken off for that.
    yield from ("max_sched_time=50", "bf_max_time=600", "bf_yield_interval=10000000")


def node_lines(site: Site, port: int) -> Iterator[str]:
    """Give the NodeName lines: every node is a slurmd of this host, behind a port of its own."""
    host = socket.gethostname().split(".")[0]
    number = 0
    for group in site.nodes:
        for _ in range(count_nodes(group)):
            number += 1
            gpus = f" Gres=gpu:{group.gpus}" if group.gpus else ""
            if group.threads > 1:
                gpus += f" Sockets=1 CoresPerSocket={group.cores // group.threads} ThreadsPerCore={group.threads}"
            yield (
                f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + number} CPUs={group.cores} "
                f"RealMemory={group.memory or 1000} Weight={group.weight}{gpus} State=UNKNOWN"
            )


def partition_line(partition: Partition, everything: str) -> str:
    """Return a PartitionName line."""
    nodes = everything if partition.nodes == "ALL" else partition.nodes
    words = [
        f"PartitionName={partition.name} Nodes={nodes} Default={'YES' if partition.default else 'NO'}",
        f"PriorityTier={partition.tier} PriorityJobFactor={partition.job_factor}",
        f"MaxTime={minutes(partition.max_time)} DefaultTime={minutes(min(partition.default_time, 3600.0))}",
        f"MinNodes={partition.min_nodes} State={'UP' if partition.up else 'DOWN'}",
        f"OverSubscribe={'EXCLUSIVE' if partition.exclusive else 'NO'}",
    ]
    if partition.max_nodes < math.inf:
        words.append(f"MaxNodes={partition.max_nodes:.0f}")
    if partition.default_memory_per_node:
        words.append(f"DefMemPerNode={partition.default_memory_per_node}")
    if partition.default_memory_per_core:
        words.append(f"DefMemPerCPU={partition.default_memory_per_core}")
    if partition.default_cores_per_gpu:
        words.append(f"DefCpuPerGPU={partition.default_cores_per_gpu}")
    if partition.default_memory_per_gpu:
        words.append(f"DefMemPerGPU={partition.default_memory_per_gpu}")
    if partition.billing:
        words.append(f"TRESBillingWeights={','.join(f'{name}={value:g}' for name, value in partition.billing.items())}")
    if partition.preempt_mode:
        words.append(f"PreemptMode={partition.preempt_mode.upper()}")
    if partition.grace_time:
        words.append(f"GraceTime={partition.grace_time:.0f}")
    if partition.qos:
        words.append(f"QOS={partition.qos}")
    if partition.allowed_accounts:
        words.append(f"AllowAccounts={','.join(partition.allowed_accounts)}")
    if partition.allowed_qos:
        words.append(f"AllowQos={','.join(partition.allowed_qos)}")
    return " ".join(words)


def gres(site: Site, folder: Path) -> str:
    """Return gres.conf: GPUs with no device behind them; makes the files that stand for them.

    Without a file, slurmd counts none.
    """
    for i in range(max(group.gpus for group in site.nodes)):
        (folder / f"gpu{i}").symlink_to("/dev/null")
    number, lines = 0, list[str]()
    for group in site.nodes:
        first, number = number + 1, number + count_nodes(group)
        if group.gpus:
            files = f"{folder}/gpu[0-{group.gpus - 1}]" if group.gpus > 1 else f"{folder}/gpu0"
            lines.append(f"NodeName=n[{first}-{number}] Name=gpu File={files}")
    return "\n".join(lines) + "\n"


def minutes(seconds: float) -> str:
    """Return a time as Slurm's configuration reads it."""
    if seconds == math.inf:
        return "INFINITE"
    days, rest = divmod(int(seconds), 86_400)
    return f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}" if days else f"{rest // 60}"


def exact(seconds: float) -> str:
    """Return a time with its seconds."""
    return f"{int(seconds) // 3600:02}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def _counted(limits: Limits) -> str:
    """Return what of the limits are TRES."""
    names = {"cpu": limits.cores, "node": limits.nodes, "gres/gpu": limits.gpus, "mem": limits.memory}
    return ",".join(f"{name}={value:.0f}" for name, value in names.items() if value < math.inf)


def _limits(limits: Limits, tres: str, jobs: str = "", submitted: str = "") -> Iterator[str]:
    if _counted(limits):
        yield f"{tres}={_counted(limits)}"
    if jobs and limits.jobs < math.inf:
        yield f"{jobs}={limits.jobs:.0f}"
    if submitted and limits.submitted < math.inf:
        yield f"{submitted}={limits.submitted:.0f}"


def accounting_commands(site: Site) -> Iterator[list[str]]:
    """Give the arguments of sacctmgr that fill an empty accounting with the site's QOS and associations."""
    for qos in site.qos:
        yield ["modify" if qos.name == "normal" else "add", "qos", *_of_qos(qos)]
    for association in site.associations:
        yield ["add", "user" if association.user else "account", *_of_association(association)]


def _of_qos(qos: Qos) -> Iterator[str]:
    yield from ([qos.name, "set"] if qos.name == "normal" else [qos.name])
    yield f"priority={qos.priority}"
    if qos.flags:
        yield f"Flags={','.join(qos.flags)}"
    yield from _limits(qos.total, "GrpTRES", "GrpJobs", "GrpSubmitJobs")
    yield from _limits(qos.per_user, "MaxTRESPerUser", "MaxJobsPerUser", "MaxSubmitJobsPerUser")
    yield from _limits(qos.per_account, "MaxTRESPerAccount", "MaxJobsPerAccount", "MaxSubmitJobsPerAccount")
    yield from _limits(qos.per_job, "MaxTRESPerJob")
    yield from _limits(qos.per_node, "MaxTRESPerNode")
    if qos.max_wall < math.inf:
        yield f"MaxWall={minutes(qos.max_wall)}"
    if qos.usage_factor != 1.0:
        yield f"UsageFactor={qos.usage_factor:g}"
    if qos.preempts:
        yield f"preempt={','.join(qos.preempts)}"
    if qos.preempt_mode:
        yield f"PreemptMode={qos.preempt_mode}"
    if qos.grace_time:
        yield f"GraceTime={qos.grace_time:.0f}"
    if qos.exempt_time < math.inf:
        yield f"PreemptExemptTime={exact(qos.exempt_time)}"


def _of_association(association: Association) -> Iterator[str]:
    if association.user:
        yield from (association.user, f"account={association.account}")
    else:
        yield association.account
        if association.parent:
            yield f"parent={association.parent}"
    yield f"fairshare={'parent' if math.isnan(association.shares) else f'{association.shares:.0f}'}"
    yield from _limits(association.total, "GrpTRES", "GrpJobs", "GrpSubmitJobs")
    yield from _limits(association.own, "MaxTRESPerUser", "MaxJobs", "MaxSubmitJobs")
    yield from _limits(association.per_job, "MaxTRESPerJob")
    if association.max_wall < math.inf:
        yield f"MaxWall={minutes(association.max_wall)}"
    if association.qos:
        yield f"qos={','.join(association.qos)}"
    if association.default_qos:
        yield f"defaultqos={association.default_qos}"


def reservation_words(reservation: Reservation, start: str, end: str) -> list[str]:
    """Return the arguments of scontrol that make a reservation; times as scontrol reads them."""
    who = [f"users={','.join(reservation.users or ('root',))}"]
    if reservation.accounts:
        who = [f"accounts={','.join(reservation.accounts)}"]
    words = [f"reservationname={reservation.name}", f"starttime={start}", f"endtime={end}"]
    return ["create", "reservation", *words, f"nodes={reservation.nodes}", *who, "flags=ignore_jobs"]
