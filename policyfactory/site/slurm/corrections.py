"""What contradicts itself in Slurm's files and stops slurmctld not: it corrects it, or goes on, and so does the import.

Where jobs would wait for ever, the site says so in its own words: the partition is down. Names of files and functions
are those of Slurm 24.11.5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from policyfactory.core.text import enumerated, shortened
from policyfactory.site.model import NEVER, Association, Origin, Partition, Qos, Scheduling, Site
from policyfactory.site.values import count_hosts

__all__ = ["corrected"]

_AMOUNTS = ("jobs", "submitted", "nodes", "cores", "memory", "gpus")


def corrected(site: Site, origin: Origin) -> Site:
    """Return a site as slurmctld would go on with it; each correction is kept as a remark of the origin.

    Parameters
    ----------
    site : Site
        As it was read.
    origin : Origin
        Knows where its entries stand.
    """
    known = {one.name for one in site.qos}
    everything = sum(count_hosts(group.names) for group in site.nodes)
    return dataclasses.replace(
        site,
        partitions=tuple(
            _partition(one, everything, known, site.enforced, origin) for one in _one_default(site.partitions, origin)
        ),
        qos=tuple(_qos(one, origin) for one in site.qos),
        associations=tuple(_associations(site.associations, known, origin)),
        scheduling=_scheduling(site.scheduling, origin),
    )


def _say(origin: Origin, entry: str, keys: Iterable[str], how: str) -> None:
    """Keep a correction of an entry, with those of the keys that it has."""
    place, settings = origin.entries.get(entry, ("", {}))
    written = [f"{settings[key].key}={settings[key].value[:60]}" for key in keys if key in settings]
    place = place or next((settings[key].place for key in keys if key in settings), "")
    origin.remark("corrected", " ".join([entry[:80], *written, f"({place})"]), how)


def _one_default(partitions: tuple[Partition, ...], origin: Origin) -> tuple[Partition, ...]:
    """Keep the last default (slurmctld/read_config.c, _build_single_partitionline_info)."""
    defaults = [one.name for one in partitions if one.default]
    for name in defaults[:-1]:
        _say(origin, f"partition {name}", ("default",), "slurmctld takes the last partition that has Default=YES")
    return tuple(dataclasses.replace(one, default=one.default and one.name == defaults[-1]) for one in partitions)


def _partition(
    one: Partition, everything: int, known: Collection[str], enforced: Collection[str], origin: Origin
) -> Partition:
    entry = f"partition {one.name}"
    if one.max_time < one.default_time < NEVER:
        # As for the default.
        how = "DefaultTime is more than MaxTime; slurmctld drops it, and jobs without a time get MaxTime"
        _say(origin, entry, ("defaulttime", "maxtime"), how)
        one = dataclasses.replace(one, default_time=NEVER)
    size = everything if one.nodes.upper() == "ALL" else count_hosts(one.nodes)
    if not one.max_time > 0 or one.min_nodes > min(one.max_nodes, max(size, 1)):
        # Jobs are held to these when they come and before they start (job_mgr.c, _part_access_check).
        how = "no job fits its limits; slurmctld goes on, and none ever starts in it, so it is taken as down"
        _say(origin, entry, ("maxtime", "minnodes", "maxnodes"), how)
        most = max(one.max_nodes, 1)
        one = dataclasses.replace(one, up=False, max_time=one.max_time or NEVER, min_nodes=1, max_nodes=most)
    strangers = [name for name in one.allowed_qos if known and name not in known]
    if strangers:
        # Slurmctld/read_config.c, qos_list_build; of a list without one that is there it lets no job in.
        how = f"slurmctld passes over QOS that are not there, and so do we ({shortened(enumerated(strangers), 80)})"
        _say(origin, entry, ("allowqos",), how)
        allowed = tuple(name for name in one.allowed_qos if name in known)
        one = dataclasses.replace(one, allowed_qos=allowed, up=one.up and bool(allowed))
    if one.qos and known and one.qos not in known and "qos" not in enforced:
        # Fatal where QOS are enforced (slurmctld/read_config.c, _build_single_partitionline_info).
        _say(origin, entry, ("qos",), "its QOS is not there, and QOS are not enforced; it is taken without")
        one = dataclasses.replace(one, qos="")
    return one


def _qos(one: Qos, origin: Origin) -> Qos:
    """Hold one job to what all jobs together may have: it could not start with more."""
    job, total = one.per_job, one.total
    lower = {name: getattr(total, name) for name in _AMOUNTS if _above(getattr(job, name), getattr(total, name))}
    if not lower:
        return one
    _say(origin, f"QOS {one.name}", ("maxtres", "maxtresperjob", "grptres"), "GrpTRES holds for each job as well")
    return dataclasses.replace(one, per_job=dataclasses.replace(job, **lower))


def _above(job: float, total: float) -> bool:
    return total < job < NEVER


def _associations(
    associations: tuple[Association, ...], known: Collection[str], origin: Origin
) -> Iterable[Association]:
    """Keep the first of each (sacctmgr/file_functions.c), and of its QOS those that are there."""
    seen = set()
    for one in associations:
        entry = f"association {one.account}/{one.user}" if one.user else f"association {one.account}"
        if (one.account, one.user) in seen:
            _say(origin, entry, (), "it is there a second time; sacctmgr load takes the first, and so do we")
            continue
        seen.add((one.account, one.user))
        qos = tuple(name for name in one.qos if name in known or not known)
        default = one.default_qos if one.default_qos in known or not known else ""
        if (qos, default) != (one.qos, one.default_qos):
            _say(origin, entry, ("qos", "defaultqos"), "QOS that the table of QOS does not have are left out")
        if default and qos and default not in qos:
            # Job_mgr.c, _determine_and_validate_qos: jobs that name no QOS would be refused when they are submitted.
            _say(origin, entry, ("defaultqos",), "it may not use its default QOS; jobs that name none are of no QOS")
            default = ""
        yield dataclasses.replace(one, qos=qos, default_qos=default)


def _scheduling(one: Scheduling, origin: Origin) -> Scheduling:
    """Take values that slurmctld takes and the simulation does not have (job_scheduler.c, backfill.c)."""
    if not one.default_queue_depth:
        how = "the first job of the queue is looked at all the same; it is taken as 1"
        _say(origin, "scheduling", ("default_queue_depth",), how)
        one = dataclasses.replace(one, default_queue_depth=1)
    if one.bf_window < one.bf_resolution:
        how = "the plan is shorter than one of its steps; a step is taken as long as the plan"
        _say(origin, "scheduling", ("bf_window", "bf_resolution"), how)
        one = dataclasses.replace(one, bf_resolution=one.bf_window)
    return one
