"""Cases of running jobs that are stopped for others on a real slurmctld: by partition and by QOS, in both ways."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from policyfactory.site.model import Association, Partition, Preemption, Priority, Qos, Site
from schedulers.record import Record, read_record
from schedulers.replay import Case
from schedulers.replay_cases import ACCOUNTS, plain
from schedulers.replay_workloads import at_random, make_jobs

FOLDER = Path(__file__).resolve().parents[1] / "data/preemption"
TIERS = (Partition("batch", default=True, tier=2), Partition("idle", tier=1))
QOS = (Qos("normal"), Qos("low"), Qos("high", preempts=("low",)))


def by_partition(mode: str, *, of_idle: Mapping[str, object] | None = None, **more: object) -> Site:
    """Return sixteen nodes with a partition whose jobs are stopped for those of another."""
    tiers = (TIERS[0], dataclasses.replace(TIERS[1], **(of_idle or {})))
    preemption = Preemption("partition_prio", mode, **more)
    return dataclasses.replace(plain(), partitions=tiers, priority=Priority(), preemption=preemption)


def by_qos(mode: str) -> Site:
    """Return sixteen nodes with a QOS whose jobs are stopped for those of another."""
    names = tuple(qos.name for qos in QOS)
    accounts = tuple(Association(name, qos=names) for name in sorted(set(ACCOUNTS.values())))
    users = tuple(Association(account, user, account) for user, account in ACCOUNTS.items())
    site = dataclasses.replace(plain(), qos=QOS, associations=accounts + users, enforced=("associations", "qos"))
    return dataclasses.replace(site, priority=Priority(), preemption=Preemption("qos", mode))


def _case(name: str, site: Site, seed: int, field: str, values: tuple[str, str]) -> Case:
    return Case(name, site, make_jobs(seed, 50, changes=[at_random(field, values, (0.6, 0.4))]))


_PARTITIONS, _BOTH = ("idle", "batch"), ("low", "high")
CASES: dict[str, Callable[[], Case]] = {
    "idle-requeued": lambda: _case("idle-requeued", by_partition("requeue"), 31, "partition", _PARTITIONS),
    "idle-cancelled": lambda: _case("idle-cancelled", by_partition("cancel"), 32, "partition", _PARTITIONS),
    "low-requeued": lambda: _case("low-requeued", by_qos("requeue"), 33, "qos", _BOTH),
    "low-cancelled": lambda: _case("low-cancelled", by_qos("cancel"), 34, "qos", _BOTH),
}


def site_of(record: Record) -> Site:
    """Return the site of a record, by the rules of its version."""
    site = CASES[record.case]().site
    version = ".".join(record.version.split(".")[:2])
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=version))


def record_of(name: str) -> Record:
    """Return the record of a case."""
    return read_record(FOLDER / f"{name}.json.gz")


def count_stopped(record: Record) -> int:
    """Return how many runs were stopped for other jobs."""
    return sum(run.ended in {"stopped", "cancelled"} for past in record.past for run in past.runs)
