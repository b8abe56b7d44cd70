"""Qualities of service, as ``sacctmgr -P show qos`` prints them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from policyfactory.core.errors import SiteError
from policyfactory.site.consistent import MOST_OF_A_KIND
from policyfactory.site.known import known_settings
from policyfactory.site.model import Limits, NotModelled, Qos
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.slurm.quantities import limits, listed, refused, seconds, tres, whole
from policyfactory.site.slurm.tables import read_rows

__all__ = ["qos_of", "read_qos"]

_MOST = MOST_OF_A_KIND["qos"]
_RELATIVE = "relative"
_CURE = "sacctmgr -P show qos > qos.txt"


def read_qos(path: Path) -> tuple[list[dict[str, Setting]], str]:
    """Return the rows of a table of QOS, and the SHA-256 of the file.

    Raises
    ------
    SiteError
        If a row cannot be read (names file and line).
    InputError
        If the file cannot be read.
    """
    return read_rows(path, ("Name", "Priority"), "Description", _CURE)


def qos_of(
    rows: Iterable[Mapping[str, Setting]], wholes: Mapping[str, Limits], origin: Origin, *, preempts: bool
) -> tuple[list[Qos], list[NotModelled]]:
    """Return the QOS of rows of a table or a dump, and what is not modelled of them.

    Parameters
    ----------
    rows : iterable of mapping of str to Setting
        By the names of the columns in lower case.
    wholes : mapping of str to Limits
        By name of QOS what a relative one is a part of; of those without an entry that of the empty name, the cluster.
    origin : Origin
        Is told where they stand.
    preempts : bool
        Whether the cluster stops jobs for others: if not, it does not matter which QOS may.

    Raises
    ------
    SiteError
        If a value is none of its kind (names file and line).
    """
    known = known_settings("qos")
    missing: list[NotModelled] = []
    found: list[Qos] = []
    for row in rows:
        what = f"QOS {row['name'].value}"
        if not row["name"].value:
            raise SiteError(f"{row['name'].place}: a QOS has no name; print the table with: {_CURE}")
        for setting in row.values():
            if setting.key.lower().startswith("preempt") and not preempts:
                continue
            unlike = known.judge(setting.key, setting.value, setting.place, what)
            missing += [] if unlike is None else [unlike]
        if len(found) >= _MOST:
            raise SiteError(f"{row['name'].place}: more than {_MOST:,} QOS; leave out those without jobs")
        origin.note(f"QOS {row['name'].value.lower()}", row["name"].place, row)
        one = _qos(row, what, missing)
        flags = listed(row["flags"].value) if "flags" in row else ()
        if any(flag.lower() == _RELATIVE for flag in flags):
            one = _part(one, wholes.get(one.name, wholes[""]))
        found.append(dataclasses.replace(one, flags=_flags(flags, row, what, missing)))
    return found, missing


def _part(one: Qos, whole: Limits) -> Qos:
    """Return a QOS whose limits are per cent of a whole, rounded down (assoc_mgr.c, _foreach_tres_pos_set_cnt)."""

    def absolute(limits: Limits) -> Limits:
        amounts = {
            name: min(getattr(limits, name), 100) * getattr(whole, name) // 100
            for name in ("nodes", "cores", "memory", "gpus")
            if math.isfinite(getattr(limits, name))
        }
        return dataclasses.replace(limits, **amounts)

    return dataclasses.replace(
        one,
        total=absolute(one.total),
        per_user=absolute(one.per_user),
        per_account=absolute(one.per_account),
        per_job=absolute(one.per_job),
    )


def _qos(row: Mapping[str, Setting], what: str, missing: list[NotModelled]) -> Qos:
    def cell(*names: str) -> Setting | None:
        return next((row[name] for name in names if name in row and row[name].value), None)

    def number(*names: str) -> float:
        setting = cell(*names)
        return math.inf if setting is None else float(whole(setting))

    def group(resources: tuple[str, ...], jobs: float = math.inf, submitted: float = math.inf) -> Limits:
        setting = cell(*resources)
        if setting is None:
            return Limits(jobs, submitted)
        known, left = limits(tres(setting), jobs, submitted)
        for name, amount in left.items():
            effect = f"jobs would wait, or be refused, for {name} beyond this"
            missing.append(NotModelled(f"{what} {setting.key}", f"{name}={amount:g}", setting.place, effect))
        return known

    priority, wall, factor = cell("priority"), cell("maxwall", "maxwalldurationperjob"), cell("usagefactor")
    return Qos(
        row["name"].value.lower(),
        0 if priority is None else whole(priority, 0, 2**32 - 1),
        math.inf if wall is None else seconds(wall),
        group(("grptres",), number("grpjobs"), number("grpsubmit", "grpsubmitjobs")),
        group(
            ("maxtrespu", "maxtresperuser"),
            number("maxjobspu", "maxjobsperuser"),
            number("maxsubmitpu", "maxsubmitjobsperuser"),
        ),
        group(
            ("maxtrespa", "maxtresperaccount"),
            number("maxjobspa", "maxjobsperaccount"),
            number("maxsubmitpa", "maxsubmitjobsperaccount"),
        ),
        group(("maxtres", "maxtresperjob")),
        1.0 if factor is None else _factor(factor),
    )


def _flags(flags: Iterable[str], row: Mapping[str, Setting], what: str, missing: list[NotModelled]) -> tuple[str, ...]:
    """Return the flags that are modelled, in Slurm's own spelling."""
    known, kept = known_settings("qos_flags"), []
    for flag in flags:
        if flag.lower() in known.modelled:
            kept.append(known.names[flag.lower()])
        elif flag.lower() != _RELATIVE:
            one = known.judge(flag, "yes", row["flags"].place, f"{what} Flags")
            missing += [] if one is None else [one]
    return tuple(kept)


def _factor(setting: Setting) -> float:
    try:
        value = float(setting.value)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9:
        raise refused(setting, "a number from 0")
    return value
