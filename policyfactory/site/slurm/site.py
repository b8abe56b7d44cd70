"""A Slurm cluster's own files as a site, with every setting that matters and is not modelled."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import counted, enumerated, shortened
from policyfactory.site.file import check_site, known_settings, with_hints
from policyfactory.site.model import (
    NEVER,
    Association,
    Limits,
    NodeGroup,
    Origin,
    Outage,
    Partition,
    Qos,
    Reservation,
    Scheduling,
    Setting,
    Site,
)
from policyfactory.site.slurm.accounts import qos_of, read_dump, read_qos
from policyfactory.site.slurm.conf import (
    Conf,
    joined_lines,
    listed,
    read_conf,
    read_rows,
    read_text,
    refused,
    reported_pairs,
    whole,
    words_of,
)
from policyfactory.site.slurm.nodes import Nodes, read_nodes, read_partitions
from policyfactory.site.slurm.preemption import partition_preemption, read_preemption
from policyfactory.site.slurm.settings import enforced, fill_defaults, read_priority, read_scheduling
from policyfactory.site.values import LATEST, Named, compress, count_hosts, expand
from policyfactory.workload.accounting.times import Clock

# What to do where they contradict each other and slurmctld would not go on.
_CURES = {
    "no partition": "add its PartitionName lines, or the file in which they are",
    "partition twice": "write one PartitionName line of each name",
    "no QOS": "correct the name, or give the table of all QOS: sacctmgr -P show qos > qos.txt",
    "no node": "add it to a NodeName line, or correct the name",
    "QOS twice": "print the table again: sacctmgr -P show qos > qos.txt",
    "no account": "its line Account - '...' must be there: give all that sacctmgr dump CLUSTER writes",
    "circle": "give what sacctmgr dump CLUSTER writes",
    "reservation ends": "correct StartTime or EndTime",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Reports:
    """What Slurm's commands have printed; None where there is no such file.

    Parameters
    ----------
    dump : Path, optional
        Of ``sacctmgr dump CLUSTER``.
    qos : Path, optional
        Of ``sacctmgr -P show qos``.
    events : Path, optional
        Of ``sacctmgr -P show event``.
    reservations : Path, optional
        Of ``scontrol -o show reservation``.
    """

    dump: Path | None = None
    qos: Path | None = None
    events: Path | None = None
    reservations: Path | None = None


def import_slurm(path: Path, reports: Reports, clock: Clock, version: str | None = None) -> tuple[Site, dict[str, str]]:
    """Return a site, and the SHA-256 of every file that it was read from.

    Parameters
    ----------
    path : Path
        slurm.conf, or what scontrol show config, scontrol show node and scontrol show partition print.
    reports : Reports
        What else is known.
    clock : Clock
        Reads times of events and reservations, which have no zone.
    version : str, optional
        Of Slurm, whose defaults hold; without it what scontrol show config says, else 24.11.

    Raises
    ------
    SiteError
        If a file cannot be read as what it should be (names file and line), or slurmctld would not start with it.
    InputError
        If a file cannot be read at all.
    UsageError
        If the version is none.
    """
    conf = read_conf(path)
    origin = Origin(_CURES)
    version = fill_defaults(conf, version, path.name, origin)
    nodes = read_nodes(conf, origin)
    if not nodes.groups:
        raise SiteError(f"{path}: names no node; {_no_node(conf, nodes)}")
    if nodes.away and reports.events is None:
        gone = Setting("State", "DOWN, DRAIN", path.name)
        effect = "they are not there now, and are simulated as if they were: give --events"
        origin.differs(gone, effect, f"NodeName={shortened(compress(nodes.away), 40)}")
    partitions = read_partitions(conf, nodes, origin)
    # The settings of the cluster are told first.
    of_nodes, origin.not_modelled = origin.not_modelled, []
    _judge(conf, origin)
    scheduling = dataclasses.replace(read_scheduling(conf, origin), slurm_version=version)
    site = Site(
        name=conf.value("ClusterName").lower() or path.stem,
        nodes=_threaded(nodes, scheduling, conf, origin),
        partitions=tuple(partitions),
        priority=read_priority(conf, origin),
        scheduling=scheduling,
        preemption=read_preemption(conf, origin),
        enforced=enforced(conf),
    )
    if site.preemption.kind == "partition_prio":
        of = [origin.entries[f"partition {partition.name}"][1] for partition in partitions]
        stopped = (partition_preemption(*each, origin) for each in zip(partitions, of, strict=True))
        site = dataclasses.replace(site, partitions=tuple(stopped))
    origin.not_modelled += of_nodes
    inputs: dict[str, str] = {}
    qos, associations = _accounts(conf, site, reports, origin, inputs)
    outages, reservations = _times(site, nodes.outages, reports, clock, origin, inputs)
    site = dataclasses.replace(
        site,
        qos=tuple(qos),
        associations=tuple(associations),
        outages=tuple(outages),
        reservations=tuple(reservations),
        not_modelled=with_hints(origin.not_modelled),
    )
    site = _corrected(site, origin)
    site = dataclasses.replace(site, remarks=origin.remarks)
    check_site(site, " with ".join([path.name, *([", ".join(inputs)] if inputs else [])]), origin)
    return site, {**conf.inputs, **inputs}


def _no_node(conf: Conf, nodes: Nodes) -> str:
    """Return what to do where no node is named; where they register themselves, only scontrol has them."""
    report = "scontrol -o show node and scontrol -o show partition"
    if conf.reported:
        return f"add what {report} print"
    report = f"(scontrol show config; {report.replace(' and ', '; ')}) > slurm.conf"
    most = conf.settings.get("maxnodecount")
    if nodes.future:
        return f"all are FUTURE, or have no core for jobs; those that registered since, slurmctld alone has: {report}"
    if most is not None or any(record.kind == "nodeset" and "feature" in record.settings for record in conf.records):
        where = "" if most is None else f" ({most.key}={shortened(most.value)}, {most.location})"
        return f"they register themselves{where}, and slurmctld alone has them: {report}"
    return (
        "give the slurm.conf of slurmctld, with the files that it includes beside it; where nodes register themselves, "
        f"slurmctld alone has them: {report}"
    )


def _accounts(
    conf: Conf, site: Site, reports: Reports, origin: Origin, inputs: dict[str, str]
) -> tuple[list[Qos], list[Association]]:
    """Return QOS and associations, and add the files that they are from."""
    qos: list[Qos] = []
    asked = set(enforced(conf))
    fair = conf.value("PriorityWeightFairshare", "0") not in {"", "0"}
    # The QOS are told before the associations.
    before, origin.not_modelled = origin.not_modelled, []
    accounts = None if reports.dump is None else read_dump(reports.dump, origin)
    of_accounts, origin.not_modelled = origin.not_modelled, before
    rows = [] if accounts is None else accounts.qos
    if reports.qos is not None:
        rows, inputs[reports.qos.name] = read_qos(reports.qos)
    if rows:
        qos = qos_of(rows, _wholes(site), origin, by_qos=site.preemption.kind == "qos")
    elif asked & {"limits", "qos"}:
        effect = "the QOS are not known, and so not their limits and priorities: give --qos"
        origin.differs(_given(conf, "AccountingStorageEnforce"), effect)
    if accounts is None or reports.dump is None:
        if asked or fair:
            key = "AccountingStorageEnforce" if asked else "PriorityWeightFairshare"
            effect = "who may submit, and shares and limits of accounts and users, are not known: give --sacctmgr"
            origin.differs(_given(conf, key), effect)
        return qos, []
    cluster = conf.value("ClusterName")
    if accounts.cluster and cluster and accounts.cluster.lower() != cluster.lower():
        raise SiteError(
            f"{reports.dump.name}: is of cluster {shortened(accounts.cluster, 60)}, and slurm.conf of "
            f"{shortened(cluster, 60)}; give what sacctmgr dump {shortened(cluster, 60)} "
            f"file={reports.dump.name} writes"
        )
    origin.not_modelled += of_accounts
    inputs[reports.dump.name] = accounts.digest
    return qos, accounts.associations


def _given(conf: Conf, key: str) -> Setting:
    """Return a setting under its own name."""
    return dataclasses.replace(conf.settings[key.lower()], key=key)


def _wholes(site: Site) -> dict[str, Limits]:
    """Return what relative QOS are a part of: the cluster, or the partition whose QOS it is."""

    def whole(names: Collection[str]) -> Limits:
        of_groups = [(group, sum(name in names for name in expand(group.names))) for group in site.nodes]
        return Limits(
            nodes=sum(count for _, count in of_groups),
            **{
                field: sum(count * getattr(group, field) for group, count in of_groups)
                for field in ("cores", "memory", "gpus")
            },
        )

    everything = set(site.node_names)
    parts = {
        partition.qos: whole(everything if partition.nodes == "ALL" else set(expand(partition.nodes)))
        for partition in site.partitions
        if partition.qos
    }
    return {**parts, "": whole(everything)}


def _times(
    site: Site, outages: list[Outage], reports: Reports, clock: Clock, origin: Origin, inputs: dict[str, str]
) -> tuple[list[Outage], list[Reservation]]:
    reservations: list[Reservation] = []
    cores = {name: group.cores for group in site.nodes for name in expand(group.names)}
    if reports.events is not None:
        more, inputs[reports.events.name] = read_events(reports.events, site.name, cores, clock, origin)
        outages = [*outages, *more]
    if reports.reservations is not None:
        # CoreCnt counts cores, not threads.
        whole = {name: group.cores // group.threads for group in site.nodes for name in expand(group.names)}
        reservations, inputs[reports.reservations.name] = read_reservations(reports.reservations, whole, clock, origin)
    return outages, reservations


def _threaded(nodes: Nodes, scheduling: Scheduling, conf: Conf, origin: Origin) -> tuple[NodeGroup, ...]:
    """Return the nodes, with the threads of their cores where these are given whole, which is also so with CR_CPU."""
    if scheduling.select == "nodes":
        return tuple(dataclasses.replace(group, threads=1) for group in nodes.groups)
    units = conf.settings.get("selecttypeparameters")
    if units is not None and "CR_CPU" in units.value.upper() and any(group.threads > 1 for group in nodes.groups):
        effect = "memory, limits and fair share would count the CPUs that jobs ask for, not those of their whole cores"
        origin.differs(dataclasses.replace(units, key="SelectTypeParameters"), effect)
    return tuple(nodes.groups)


def _judge(conf: Conf, origin: Origin) -> None:
    """Keep what of the settings of the whole cluster matters and is not modelled, in the order of the file."""
    known_settings("conf").judge(conf.settings.values(), origin)
    if "priorityflags" in conf.settings:
        known_settings("flags").judge(words_of(conf.settings["priorityflags"]), origin, "PriorityFlags")


# What contradicts itself and stops slurmctld not: it corrects it, or goes on, and so does the import ------------------


# Where jobs would wait for ever, the site says so in its own words: the partition is down. Names of files and functions
# are those of Slurm 24.11.5.


_AMOUNTS = ("jobs", "submitted", "nodes", "cores", "memory", "gpus")


def _corrected(site: Site, origin: Origin) -> Site:
    """Return a site as slurmctld would go on with it; each correction is kept as a remark of the origin.

    Parameters
    ----------
    site : Site
        As it was read.
    origin : Origin
        Knows where its entries stand.
    """
    known = {qos.name for qos in site.qos}
    everything = sum(count_hosts(group.names) for group in site.nodes)
    return dataclasses.replace(
        site,
        partitions=tuple(
            _corrected_partition(partition, everything, known, site.enforced, origin)
            for partition in _one_default(site.partitions, origin)
        ),
        qos=tuple(_corrected_qos(qos, known, origin) for qos in site.qos),
        associations=tuple(_associations(site.associations, known, origin)),
        scheduling=_corrected_passes(site.scheduling, origin),
    )


def _say(origin: Origin, entry: str, keys: Iterable[str], how: str) -> None:
    """Keep a correction of an entry, with those of the keys that it has."""
    location, settings = origin.entries.get(entry, ("", {}))
    written = [f"{settings[key].key}={settings[key].value[:60]}" for key in keys if key in settings]
    location = location or next((settings[key].location for key in keys if key in settings), "")
    origin.remark("corrected", " ".join([entry[:80], *written, f"({location})"]), how)


def _one_default(partitions: tuple[Partition, ...], origin: Origin) -> tuple[Partition, ...]:
    """Keep the last default (slurmctld/read_config.c, _build_single_partitionline_info)."""
    defaults = [partition.name for partition in partitions if partition.default]
    for name in defaults[:-1]:
        _say(origin, f"partition {name}", ("default",), "slurmctld takes the last partition that has Default=YES")
    return tuple(
        dataclasses.replace(partition, default=partition.default and partition.name == defaults[-1])
        for partition in partitions
    )


def _corrected_partition(
    partition: Partition, everything: int, known: Collection[str], enforced: Collection[str], origin: Origin
) -> Partition:
    entry = f"partition {partition.name}"
    if partition.max_time < partition.default_time < NEVER:
        # As for the default.
        how = "DefaultTime is more than MaxTime; slurmctld drops it, and jobs without a time get MaxTime"
        _say(origin, entry, ("defaulttime", "maxtime"), how)
        partition = dataclasses.replace(partition, default_time=NEVER)
    size = everything if partition.nodes.upper() == "ALL" else count_hosts(partition.nodes)
    if not partition.max_time > 0 or partition.min_nodes > min(partition.max_nodes, max(size, 1)):
        # Jobs are held to these when they come and before they start (job_mgr.c, _part_access_check).
        how = "no job fits its limits; slurmctld goes on, and none ever starts in it, so it is taken as down"
        _say(origin, entry, ("maxtime", "minnodes", "maxnodes"), how)
        most = max(partition.max_nodes, 1)
        partition = dataclasses.replace(
            partition, up=False, max_time=partition.max_time or NEVER, min_nodes=1, max_nodes=most
        )
    strangers = [name for name in partition.allowed_qos if known and name not in known]
    if strangers:
        # Slurmctld/read_config.c, qos_list_build; of a list without one that is there it lets no job in.
        how = f"slurmctld passes over QOS that are not there, and so do we ({shortened(enumerated(strangers), 80)})"
        _say(origin, entry, ("allowqos",), how)
        allowed = tuple(name for name in partition.allowed_qos if name in known)
        partition = dataclasses.replace(partition, allowed_qos=allowed, up=partition.up and bool(allowed))
    if partition.qos and known and partition.qos not in known and "qos" not in enforced:
        # Fatal where QOS are enforced (slurmctld/read_config.c, _build_single_partitionline_info).
        _say(origin, entry, ("qos",), "its QOS is not there, and QOS are not enforced; it is taken without")
        partition = dataclasses.replace(partition, qos="")
    return partition


def _corrected_qos(qos: Qos, known: Collection[str], origin: Origin) -> Qos:
    """Hold one job to what all jobs together may have: it could not start with more."""
    if not set(qos.preempts) <= set(known):
        _say(origin, f"QOS {qos.name}", ("preempt",), "QOS that the table of QOS does not have are left out")
        qos = dataclasses.replace(qos, preempts=tuple(name for name in qos.preempts if name in known))
    job, total = qos.per_job, qos.total
    lower = {name: getattr(total, name) for name in _AMOUNTS if getattr(total, name) < getattr(job, name) < NEVER}
    if not lower:
        return qos
    _say(origin, f"QOS {qos.name}", ("maxtres", "maxtresperjob", "grptres"), "GrpTRES holds for each job as well")
    return dataclasses.replace(qos, per_job=dataclasses.replace(job, **lower))


def _associations(
    associations: tuple[Association, ...], known: Collection[str], origin: Origin
) -> Iterable[Association]:
    """Keep the first of each (sacctmgr/file_functions.c), and of its QOS those that are there."""
    seen = set()
    for association in associations:
        entry = association.entry
        if (association.account, association.user) in seen:
            _say(origin, entry, (), "it is there a second time; sacctmgr load takes the first, and so do we")
            continue
        seen.add((association.account, association.user))
        qos = tuple(name for name in association.qos if name in known or not known)
        default = association.default_qos if association.default_qos in known or not known else ""
        if (qos, default) != (association.qos, association.default_qos):
            _say(origin, entry, ("qos", "defaultqos"), "QOS that the table of QOS does not have are left out")
        if default and qos and default not in qos:
            # Job_mgr.c, _determine_and_validate_qos: jobs that name no QOS would be refused when they are submitted.
            _say(origin, entry, ("defaultqos",), "it may not use its default QOS; jobs that name none are of no QOS")
            default = ""
        yield dataclasses.replace(association, qos=qos, default_qos=default)


def _corrected_passes(passes: Scheduling, origin: Origin) -> Scheduling:
    """Take values that slurmctld takes and the simulation does not have (job_scheduler.c, backfill.c)."""
    if not passes.default_queue_depth:
        how = "the first job of the queue is looked at all the same; it is taken as 1"
        _say(origin, "scheduling", ("default_queue_depth",), how)
        passes = dataclasses.replace(passes, default_queue_depth=1)
    if passes.bf_window < passes.bf_resolution:
        how = "the plan is shorter than one of its steps; a step is taken as long as the plan"
        _say(origin, "scheduling", ("bf_window", "bf_resolution"), how)
        passes = dataclasses.replace(passes, bf_resolution=passes.bf_window)
    return passes


# What changes over time -----------------------------------------------------------------------------------------------

# Nodes that were away (sacctmgr show event), and reservations (scontrol show reservation).


_EVENTS = (
    "sacctmgr -P show event start=2026-01-01 format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User > events.txt"
)
_RESERVATIONS = "scontrol -o show reservation > reservations.txt"
_STRANGE = "the site has no node of this name (any more); its capacity is not there either"
_OTHER = "nodes in other states than DOWN, FAIL and DRAIN (reboots, maintenance, power saving) are taken as there"
_TURNED = "TimeEnd is before TimeStart; they are left out"
_CLOSED = "the log does not say which jobs ran in it: it is closed to all"


def read_events(
    path: Path, cluster: str, nodes: Collection[str], clock: Clock, origin: Origin
) -> tuple[list[Outage], str]:
    """Return the times in which nodes were away, and the SHA-256 of the file.

    Parameters
    ----------
    path : Path
        What ``sacctmgr -P show event`` has printed.
    cluster : str
        Whose events are wanted, where the table has those of several.
    nodes : collection of str
        Names of the site's nodes.
    clock : Clock
        Reads the times, which have no zone.
    origin : Origin
        Is told what was left out.

    Raises
    ------
    SiteError
        If a row cannot be read (names file and line).
    InputError
        If the file cannot be read.
    """
    rows, digest = read_rows(path, ("NodeName", "TimeStart", "TimeEnd", "State"), "Reason", _EVENTS)
    clusters = {row["cluster"].value for row in rows if "cluster" in row}
    together: dict[tuple[float, float, bool, str], list[str]] = {}
    left: dict[str, list[Setting]] = {effect: [] for effect in (_STRANGE, _OTHER, _TURNED)}
    for row in rows:
        name = row["nodename"].value
        if not name or (len(clusters) > 1 and row["cluster"].value.lower() != cluster.lower()):
            continue
        drained = _gone(row["state"].value)
        start, end = _time(row["timestart"], clock), _time(row["timeend"], clock)
        if drained is None or start is None:
            left[_OTHER].append(row["nodename"])
        elif name not in nodes:
            left[_STRANGE].append(row["nodename"])
        elif end is not None and end < start:
            left[_TURNED].append(row["timeend"])
        elif end is None or end > start:
            reason = shortened(row["reason"].value, 80) if "reason" in row else ""
            together.setdefault((start, math.inf if end is None else end, drained, reason), []).append(name)
    for effect, some in left.items():
        if some:
            first = f"{counted(len(some), 'event')}, first {shortened(some[0].value, 60)}"
            origin.differs(Setting("events", first, some[0].location), effect)
    outages = [
        Outage(compress(dict.fromkeys(names)), start, end, drained, reason)
        for (start, end, drained, reason), names in sorted(together.items())
    ]
    return outages, digest


def _gone(state: str) -> bool | None:
    """Return whether jobs on a node of this state run on; None if the node is there."""
    words = set(re.split(r"[^A-Z_]+", state.upper()))
    if words & {"DRAIN", "DRAINED", "DRAINING"} and not words & {"DOWN"}:
        return True
    return False if words & {"DOWN", "FAIL", "FAILING", "ERROR", "NOT_RESPONDING"} else None


def _time(setting: Setting, clock: Clock) -> float | None:
    """Return a time; None where there is none. Of an hour that comes twice the first is taken."""
    try:
        times = clock.read(setting.value)
    except (ValueError, OverflowError):
        times = (-1,)
    if times and not 0 <= times[0] < LATEST:
        raise refused(setting, f"a time such as 2026-03-01T08:00:00, or Unix seconds from 0 to {LATEST - 1:,}")
    return float(times[0]) if times else None


def read_reservations(
    path: Path, cores: Mapping[str, int], clock: Clock, origin: Origin
) -> tuple[list[Reservation], str]:
    """Return the reservations, and the SHA-256 of the file.

    Parameters
    ----------
    path : Path
        What ``scontrol show reservation`` has printed, with -o or without.
    cores : mapping of str to int
        Cores of each of the site's nodes.
    clock : Clock
        Reads the times, which have no zone.
    origin : Origin
        Is told where they stand, and what is not modelled of them.

    Raises
    ------
    SiteError
        If a line cannot be read (names file and line).
    InputError
        If the file cannot be read.
    """
    text, digest = read_text(path)
    found: list[Reservation] = []
    named = Named()
    for number, line in joined_lines(text):
        location = f"{path.name}:{number}"
        if line.startswith("No reservations"):
            continue
        fields = {pair.key.lower(): pair for pair in reported_pairs(line, location)}
        if not line.startswith("ReservationName=") or not {"starttime", "endtime"} <= set(fields):
            raise SiteError(f"{location}: {shortened(line, 60)!r} is no reservation; print them with: {_RESERVATIONS}")
        _judge_reservation(fields, origin)
        origin.note(f"reservation {fields['reservationname'].value}", location, fields)
        reservation = _reservation(fields, clock, cores, named, origin)
        found += [] if reservation is None else [reservation]
    return found, digest


def _reservation(
    fields: Mapping[str, Setting], clock: Clock, cores: Mapping[str, int], named: Named, origin: Origin
) -> Reservation | None:
    name, location = fields["reservationname"].value, fields["reservationname"].location
    what = f"reservation {shortened(name)}"
    start, end = _time(fields["starttime"], clock), _time(fields["endtime"], clock)
    hosts = fields["nodes"].value if "nodes" in fields else ""
    if start is None or end is None or hosts in {"", "(null)"}:
        origin.differs(Setting(what, hosts, location), "it has no nodes or no end, and is left out")
        return None
    try:
        names = named.expand(hosts)
    except UsageError as error:
        raise SiteError(f"{location}: {error}") from None
    there = [node for node in names if node in cores]
    if len(there) < len(names):
        some = "the site does not have all of its nodes; it keeps the others"
        origin.differs(
            Setting(what, hosts, location), some if there else "the site has none of its nodes; it is left out"
        )
    if "corecnt" in fields and whole(fields["corecnt"]) < sum(cores[node] for node in there):
        cores_there = Setting("CoreCnt", fields["corecnt"].value, location)
        origin.differs(cores_there, "it has only some cores of its nodes; it keeps them whole", what)
    if not there:
        return None
    kept = known_settings("reservation").modelled
    flags = tuple(flag.upper() for flag in _flags(fields) if flag.lower() in kept)
    users, accounts = _allowed(fields, "users"), _allowed(fields, "accounts")
    return Reservation(name, compress(there), start, end, users, accounts, flags=flags)


def _flags(fields: Mapping[str, Setting]) -> list[str]:
    # A flag may have a time of its own: PURGE_COMP=00:05:00.
    return [flag.partition("=")[0] for flag in listed(fields["flags"].value)] if "flags" in fields else []


def _allowed(fields: Mapping[str, Setting], key: str) -> tuple[str, ...]:
    names = listed(fields[key].value) if key in fields else ()
    return tuple(name for name in names if name != "(null)")


def _judge_reservation(fields: Mapping[str, Setting], origin: Origin) -> None:
    name = fields["reservationname"]
    what = f"reservation {shortened(name.value)}"
    of_flags = (Setting(flag, "yes", name.location) for flag in _flags(fields))
    known_settings("reservation").judge(of_flags, origin, f"{what} Flags")
    for key in ("users", "accounts", "groups", "licenses"):
        if key not in fields or fields[key].value in {"", "(null)"}:
            continue
        others = "-" in {entry[0] for entry in listed(fields[key].value)}
        effect = {
            "groups": f"users of these groups could use it; {_CLOSED}",
            "licenses": "it would keep licences",
        }.get(key, f"{'all others than these' if others else 'their jobs'} could use it; {_CLOSED}")
        origin.differs(dataclasses.replace(fields[key], location=name.location), effect, what)
