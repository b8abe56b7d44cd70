"""What changes over time: nodes that were away (sacctmgr show event), and reservations (scontrol show reservation)."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import counted, shortened
from policyfactory.site.consistent import known_settings
from policyfactory.site.model import Origin, Outage, Reservation, Setting
from policyfactory.site.slurm.conf import (
    joined_lines,
    listed,
    read_rows,
    read_text,
    refused,
    reported_pairs,
    whole,
)
from policyfactory.site.values import LATEST, Named, compress
from policyfactory.workload.accounting.times import Clock

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
        _judge(fields, origin)
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


def _judge(fields: Mapping[str, Setting], origin: Origin) -> None:
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
