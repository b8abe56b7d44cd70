"""Sites and workloads drawn at random, with all that Slurm's rules know: to compare two implementations of them."""

from __future__ import annotations

import dataclasses
import random

from naive.slurm_jobs import Job
from policyfactory.site.model import (
    Association,
    Limits,
    NodeGroup,
    Outage,
    Partition,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
)

__all__ = ["FEATURES", "MORE", "draw"]

# What a case may have beside nodes of one kind in one partition; drawn for each case, or asked for by name.
FEATURES = (
    "cores", "memory", "gpus", "weights", "partitions", "limits", "shares", "age", "reservations", "outages",
    "eligible", "plan", "arrays",
)  # fmt: skip
# And what is drawn only if it is asked for: what QOS, accounts and weights have beside the common limits, "rules";
# cores of several "threads"; jobs that may start in several "lists" of partitions; running jobs that are stopped for
# others, "preemption"; what partitions give jobs that ask for no memory or cores, "defaults"; limits on what a job has
# of "each node"; weights of "billing"; reservations of several kinds, "kept for some"; jobs that are
# "cancelled" while they wait.
MORE = ("rules", "threads", "lists", "preemption", "defaults", "each node", "billing", "kept for some", "cancelled")
ACCOUNTS, USERS = ("lab", "firm"), ("ann", "bob", "cid")
BEGIN = 1_772_409_600  # on the second of a minute, a Monday


def draw(seed: int, jobs: int = 40, *features: str) -> tuple[Site, list[Job]]:
    """Return a site of 4 to 9 nodes and its jobs, submitted over two hours or so.

    Without ``features`` about half of them are drawn.
    """
    rng = random.Random(seed)
    chosen = set(features) or {name for name in FEATURES if rng.random() < 0.5}
    site = _site(rng, chosen)
    if "preemption" in chosen:
        site = _with_preemption(random.Random(-1001 - seed), site)
    submits = sorted(BEGIN + rng.choice((0, rng.randrange(7200))) for _ in range(jobs))
    drawn = [_job(rng, chosen, site, id_, submit) for id_, submit in enumerate(submits, 1)]
    if "lists" in chosen:
        drawn = [_with_list(rng, site, job) for job in drawn]
    if "threads" in chosen:
        site = _with_threads(random.Random(-1 - seed), site)
    site = _with_rules(random.Random(-1 - seed), site) if "rules" in chosen else site
    if "defaults" in chosen:
        site, drawn = _with_defaults(random.Random(f"defaults {seed}"), site, drawn)
    if "each node" in chosen:
        site = _with_limits_of_nodes(random.Random(f"each node {seed}"), site)
    if "billing" in chosen:
        site = _with_billing(random.Random(f"billing {seed}"), site)
    if "kept for some" in chosen:
        site, drawn = _with_reservations(random.Random(f"kept for some {seed}"), site, drawn)
    if chosen & {"lists", "kept for some"}:
        drawn = _with_arrays(drawn)
    if "cancelled" in chosen:
        mine = random.Random(f"cancelled {seed}")
        drawn = [_cancelled(mine, job) if mine.random() < 0.4 else job for job in drawn]
    return site, drawn


def _cancelled(rng: random.Random, job: Job) -> Job:
    return dataclasses.replace(job, cancelled=job.submit + rng.choice((rng.randrange(1, 60), rng.randrange(1, 3600))))


def _with_arrays(jobs: list[Job]) -> list[Job]:
    """Return jobs of which the tasks of an array ask for the same, as they do in Slurm."""
    first: dict[int, Job] = {}
    own = "id", "submit", "run_time", "eligible", "after"
    return [
        dataclasses.replace(first.setdefault(job.array, job), **{name: getattr(job, name) for name in own})
        if job.array >= 0
        else job
        for job in jobs
    ]


def _site(rng: random.Random, has: set[str]) -> Site:
    count = rng.randint(4, 9)
    mixed = "cores" in has
    nodes = tuple(
        NodeGroup(
            f"n{i}",
            rng.choice((2, 4, 8)) if mixed else 4,
            rng.choice((1000, 2000)) if "memory" in has else 0,
            rng.choice((0, 0, 1, 2)) if "gpus" in has else 0,
            rng.choice((1, 1, 2)) if "weights" in has else 1,
        )
        for i in range(1, count + 1)
    )
    associations, qos, enforced = _accounts(rng, has)
    site = Site(
        "drawn",
        nodes,
        _partitions(rng, has, count),
        qos=qos,
        associations=associations,
        enforced=enforced,
        priority=_priority(rng, has),
        scheduling=_scheduling(rng, has),
    )
    hosts = f"n[1-{rng.randint(1, count - 2)}]"
    if "reservations" in has:
        start = BEGIN + rng.randrange(600, 7200)
        users = rng.choice(((), ("ann",)))
        reserved = Reservation(
            "kept", hosts, start, start + rng.randrange(300, 3600), users, known=BEGIN + rng.choice((0, 300))
        )
        site = dataclasses.replace(site, reservations=(reserved,))
    if "outages" in has:
        start = BEGIN + rng.randrange(100, 7200)
        out = Outage(rng.choice((hosts, "n2")), start, start + rng.randrange(60, 3600), drained=rng.random() < 0.5)
        site = dataclasses.replace(site, outages=(out,))
    return site


def _with_preemption(rng: random.Random, site: Site) -> Site:
    """Return a site on which running jobs are stopped for others, by partition or by QOS."""

    def of_one() -> dict[str, object]:
        mode = rng.choice(("", "", "", "off", "requeue", "cancel"))
        return {"preempt_mode": mode, "grace_time": rng.choice((0, 0, 0, 45, 200))}

    by_qos = bool(site.qos) and rng.random() < 0.6
    partitions = site.partitions
    if not by_qos:
        scavenger = Partition("idle", exclusive=rng.random() < 0.3, tier=0, **of_one())
        tiers = (dataclasses.replace(one, tier=rng.choice((1, 1, 2)), **of_one()) for one in partitions)
        partitions = (*tiers, scavenger)
    qos = site.qos
    if by_qos:
        stopped = rng.choice((("normal",), ("normal", "idle"), ("idle",)))
        of_qos = {"high": stopped, "normal": rng.choice(((), ("idle",)))}
        qos = tuple(
            dataclasses.replace(
                one,
                preempts=of_qos.get(one.name, ()),
                exempt_time=rng.choice((float("inf"), float("inf"), 90.0)),
                **of_one(),
            )
            for one in (*qos, Qos("idle", rng.choice((0, 5)), flags=rng.choice(((), ("NoReserve",)))))
        )
    preemption = Preemption(
        "qos" if by_qos else "partition_prio",
        rng.choice(("requeue", "requeue", "cancel")),
        exempt_time=rng.choice((0.0, 0.0, 120.0)),
        youngest_first=rng.random() < 0.3,
        strict_order=rng.random() < 0.3,
        reorder_count=rng.choice((0, 1, 1, 3)),
        min_exempt_priority=rng.choice((float("inf"), float("inf"), 300.0)),
        job_requeue=rng.random() < 0.8,
    )
    return dataclasses.replace(site, partitions=partitions, qos=qos, preemption=preemption)


def _with_list(rng: random.Random, site: Site, job: Job) -> Job:
    """Return a job that perhaps may start in several partitions."""
    several = rng.sample([one.name for one in site.partitions], rng.randint(1, len(site.partitions)))
    # A log has limits, those of the partition in which the job ran where it asked for none.
    return dataclasses.replace(job, partitions=tuple(several)) if len(several) > 1 and job.limit > 0 else job


def _with_threads(rng: random.Random, site: Site) -> Site:
    """Return a site whose processors are threads of cores, some nodes with more of them."""
    threads = rng.choice((2, 2, 4))
    nodes = (dataclasses.replace(one, cores=threads * max(one.cores // 2, 1), threads=threads) for one in site.nodes)
    return dataclasses.replace(site, nodes=tuple(nodes))


def _with_limits_of_nodes(rng: random.Random, site: Site) -> Site:
    """Return a site whose QOS and associations limit what a job has of each of its nodes."""

    def limits() -> Limits:
        most = rng.choice((2, 3, float("inf"))), rng.choice((250, 500, float("inf"))), rng.choice((1, float("inf")))
        return Limits(**dict(zip(("cores", "memory", "gpus"), most, strict=True))) if rng.random() < 0.5 else Limits()

    qos = tuple(dataclasses.replace(one, per_node=limits()) for one in site.qos)
    associations = tuple(dataclasses.replace(one, per_node=limits()) for one in site.associations)
    partitions = tuple(dataclasses.replace(one, qos=rng.choice(("", "high"))) for one in site.partitions)
    return dataclasses.replace(
        site, qos=qos, associations=associations, partitions=partitions if qos else site.partitions
    )


def _with_billing(rng: random.Random, site: Site) -> Site:
    """Return a site on which memory, nodes and GPUs count in fair share as well."""

    def weights() -> dict[str, float]:
        some = {"cpu": (0.0, 0.5, 1.0), "mem": (0.0, 0.001, 0.01), "node": (0.0, 3.0), "gres/gpu": (0.0, 4.0, 20.0)}
        return {name: rng.choice(values) for name, values in some.items() if rng.random() < 0.7}

    partitions = tuple(dataclasses.replace(one, billing=weights()) for one in site.partitions)
    flag = rng.choice((None, "MAX_TRES", "MAX_TRES_GRES"))
    priority = dataclasses.replace(site.priority, flags=(*site.priority.flags, *([flag] if flag else [])))
    return dataclasses.replace(site, partitions=partitions, priority=priority)


def _with_reservations(rng: random.Random, site: Site, jobs: list[Job]) -> tuple[Site, list[Job]]:
    """Return a site with reservations that overlap, each for some, and jobs that ask for one."""

    def some(names: tuple[str, ...]) -> tuple[str, ...]:
        chosen = rng.choice(((), (), names[:1], names[1:], names[:2]))
        return tuple(f"-{name}" for name in chosen) if rng.random() < 0.2 else chosen

    kept = []
    for number in range(rng.randint(1, 3)):
        first = rng.randint(1, len(site.nodes))
        hosts = "ALL" if rng.random() < 0.2 else f"n[{first}-{rng.randint(first, len(site.nodes))}]"
        start = BEGIN + rng.randrange(0, 7200)
        flags = rng.choice(((), ("MAINT",), ("OVERLAP",), ("OVERLAP",), ("MAINT", "OVERLAP"), ("ALL_NODES",)))
        end = start + rng.randrange(600, 5400)
        known = BEGIN + rng.choice((0, 300))
        kept.append(
            Reservation(f"kept{number}", hosts, start, end, some(USERS), some(ACCOUNTS), known=known, flags=flags)
        )
    asked = [dataclasses.replace(job, reservation=rng.choice(kept).name if rng.random() < 0.3 else "") for job in jobs]
    return dataclasses.replace(site, reservations=tuple(kept)), asked


def _with_defaults(rng: random.Random, site: Site, jobs: list[Job]) -> tuple[Site, list[Job]]:
    """Return a site whose partitions say what jobs get that ask for no memory or cores, and some jobs that ran."""

    def some() -> dict[str, int]:
        by_core = rng.random() < 0.5
        return {
            "default_memory_per_core": rng.choice((0, 60, 250)) * by_core,
            "default_memory_per_node": rng.choice((0, 200, 700)) * (not by_core),
            "default_memory_per_gpu": rng.choice((0, 0, 150, 600)),
            "default_cores_per_gpu": rng.choice((0, 0, 1, 2, 3)),
        }

    partitions = tuple(dataclasses.replace(one, **some()) for one in site.partitions)
    scheduling = dataclasses.replace(site.scheduling, **some())
    asked = [dataclasses.replace(job, ran=rng.random() < 0.3) for job in jobs]
    return dataclasses.replace(site, partitions=partitions, scheduling=scheduling), asked


def _with_rules(rng: random.Random, site: Site) -> Site:
    """Return a site with limits on memory and GPUs, longest times, rights, and more weights of priorities."""

    def some(*choices: float) -> float:
        return rng.choice((*choices, float("inf"), float("inf")))

    def flags(*names: str) -> tuple[str, ...]:
        return tuple(name for name in names if rng.random() < 0.3)

    lifting = "PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes"
    qos = tuple(
        dataclasses.replace(
            one,
            max_wall=some(900, 1800),
            flags=flags("NoReserve", "OverPartQOS", *lifting),
            per_job=dataclasses.replace(one.per_job, memory=some(600), gpus=some(1)),
            per_user=dataclasses.replace(one.per_user, memory=some(900), gpus=some(2)),
            total=dataclasses.replace(one.total, memory=some(1500), gpus=some(2)),
        )
        for one in site.qos
    )
    partitions = tuple(
        dataclasses.replace(
            one,
            qos=rng.choice(("", "high")) if qos else "",
            min_nodes=rng.choice((1, 1, 2)),
            max_time=min(one.max_time, some(1800)),
            allowed_qos=rng.choice(((), ("normal",))) if qos else (),
        )
        for one in site.partitions
    )
    associations = tuple(
        dataclasses.replace(
            one,
            priority=rng.choice((0, 0, 3, 10)),
            max_wall=some(1200),
            total=dataclasses.replace(one.total, memory=some(1200), gpus=some(2)),
            per_job=dataclasses.replace(one.per_job, memory=some(500), cores=some(6)),
        )
        for one in site.associations
    )
    weights = {name: rng.choice((0.0, 500.0)) for name in ("cpu", "mem", "node", "gres/gpu")}
    normal = "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"
    priority = dataclasses.replace(
        site.priority,
        association=rng.choice((0, 300)),
        tres={name: weight for name, weight in weights.items() if weight},
        flags=flags("ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE", *normal),
    )
    scheduling = dataclasses.replace(
        site.scheduling,
        bf_max_job_user_part=rng.choice((0, 0, 2)),
        bf_max_job_assoc=rng.choice((0, 0, 2)),
        bf_min_prio_reserve=rng.choice((0.0, 0.0, 200.0)),
        bf_min_age_reserve=rng.choice((0.0, 0.0, 600.0)),
    )
    return dataclasses.replace(
        site, qos=qos, partitions=partitions, associations=associations, priority=priority, scheduling=scheduling
    )


def _partitions(rng: random.Random, has: set[str], count: int) -> tuple[Partition, ...]:
    whole = rng.random() < 0.4
    if "partitions" not in has:
        return (Partition("batch", default=True, exclusive=whole),)
    return (
        Partition("batch", default=True, exclusive=whole, job_factor=rng.choice((1, 5))),
        Partition("small", "n[1-3]", tier=rng.choice((1, 2)), exclusive=whole, max_nodes=2),
        Partition("late", f"n[2-{count}]", exclusive=rng.random() < 0.5, max_time=3600, default_time=1800),
    )


def _accounts(rng: random.Random, has: set[str]) -> tuple[tuple[Association, ...], tuple[Qos, ...], tuple[str, ...]]:
    limited = "limits" in has
    if not limited and "shares" not in has:
        return (), (), ()

    def some(*choices: float) -> float:
        return rng.choice((*choices, float("inf"), float("inf"))) if limited else float("inf")

    associations = [Association("root")]
    for account in ACCOUNTS:
        total = Limits(jobs=some(3, 6), cores=some(8, 16), nodes=some(3))
        associations.append(Association(account, parent="root", shares=rng.choice((1, 2, 5)), total=total))
        associations += [
            Association(account, user, shares=rng.choice((1, 1, 3, float("nan"))), own=Limits(jobs=some(2, 4)))
            for user in USERS
        ]
    qos = (
        Qos("normal", 0, per_user=Limits(jobs=some(2, 5), cores=some(8, 12)), total=Limits(nodes=some(4))),
        Qos("high", 10, per_account=Limits(jobs=some(2)), per_job=Limits(nodes=some(2)), usage_factor=2.0),
    )
    return tuple(associations), qos, ("associations", "limits", "qos") if limited else ()


def _priority(rng: random.Random, has: set[str]) -> Priority:
    if rng.random() < 0.2 and not has & {"shares", "age"}:
        return Priority("basic")
    return Priority(
        age=5000 if "age" in has else 0,
        fair_share=10000 if "shares" in has else 0,
        job_size=rng.choice((0, 300)),
        partition=rng.choice((0, 200)),
        qos=rng.choice((0, 400)),
        max_age=3600,
        calculation_period=rng.choice((60, 300)),
        half_life=rng.choice((1800, 7 * 86400)),
        favor_small=rng.random() < 0.3,
    )


def _scheduling(rng: random.Random, has: set[str]) -> Scheduling:
    memory = "memory" in has
    plan = Scheduling(
        select="cores+memory" if memory else "cores", default_memory_per_core=rng.choice((0, 50)) * memory
    )
    if "plan" not in has:
        return plan
    return dataclasses.replace(
        plan,
        backfill=rng.random() < 0.9,
        bf_interval=rng.choice((10, 30, 60)),
        bf_resolution=rng.choice((1, 60, 300)),
        bf_window=rng.choice((3600, 86400)),
        bf_max_job_test=rng.choice((3, 10, 500)),
        bf_max_job_user=rng.choice((0, 0, 2)),
        bf_max_job_part=rng.choice((0, 0, 3)),
        bf_max_job_start=rng.choice((0, 0, 1)),
        bf_job_part_count_reserve=rng.choice((0, 0, 1, 2)),
        default_queue_depth=rng.choice((1, 5, 100)),
        partition_job_depth=rng.choice((0, 0, 2)),
        sched_max_job_start=rng.choice((0, 0, 2)),
        batch_sched_delay=rng.choice((0, 3, 10)),
        kill_overrun=rng.choice((0, 60, float("inf"))),
    )


def _job(rng: random.Random, has: set[str], site: Site, id_: int, submit: int) -> Job:
    nodes = rng.choice((-1, 1, 1, 2, 3))
    cores = rng.randint(1, 8) if nodes < 0 else nodes * rng.randint(1, 2) + rng.choice((0, 0, int(nodes > 1)))
    limit = 60 * rng.choice((1, 2, 5, 10, 15, 30, 60))
    array = rng.choice((-1, 1, 2, 3)) if "arrays" in has else -1
    return Job(
        id_,
        submit,
        run_time=max(int(limit * rng.choice((0.05, 0.3, 0.8, 1.0, 1.2))), 1),
        limit=rng.choice((limit, limit, limit, -1)) if "partitions" in has else limit,
        nodes=nodes,
        cores=cores,
        memory=rng.choice((-1, 100 * cores, 300 * max(nodes, 1))) if "memory" in has else -1,
        gpus=max(nodes, 1) if "gpus" in has and rng.random() < 0.3 else 0,
        partition=rng.choice(site.partitions).name,
        qos=rng.choice(("", "normal", "high", "idle")[: len(site.qos) + 1]) if site.qos else "",
        account=rng.choice(ACCOUNTS),
        user=rng.choice(USERS),
        eligible=submit + rng.randrange(900) if "eligible" in has and rng.random() < 0.2 else -1,
        after=rng.randrange(1, id_) if "eligible" in has and id_ > 1 and rng.random() < 0.2 else -1,
        site_factor=rng.choice((0, 0, rng.randrange(500))),
        exclusive=rng.random() < 0.1,
        reservation="kept" if site.reservations and rng.random() < 0.1 else "",
        array=array,
        array_limit=array,
    )
