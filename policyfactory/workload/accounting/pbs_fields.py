"""The fields of a PBS accounting record: how many processors and nodes, how long, and what was asked for.

Sources: the accounting functions of OpenPBS (``src/server/accounting.c``: the order of the fields, which values are
quoted) and the accounting chapters of the TORQUE administrator's guide; genuine records of OpenPBS, PBS Professional
and TORQUE 2 to 6 were looked at.
"""

from __future__ import annotations

import re

from policyfactory.workload.accounting.record import array_size

__all__ = [
    "asked_memory",
    "count_slots",
    "depends_on",
    "fields_of",
    "hosts_of",
    "parse_walltime",
    "requested_gpus",
    "requested_processors",
    "vnode_processors",
    "whole",
]

# A value goes to the next blank, or to its closing quote. A job name is never quoted by the server, so a quote in
# it is a character like others and must not swallow what follows.
_FIELD = re.compile(r"""(?:^| )([A-Za-z_][\w.-]*)=((?<!jobname=)(?:"[^"]*"|'[^']*')(?= |$)|\S*)""")
# These stand before the job name, into which a user can write what looks like fields: the first one counts.
_BEFORE_NAME = ("user", "group", "account", "project")
_FIRST = 12
_WHOLE = re.compile(r"[0-9]{1,12}")
_VNODE_NCPUS = re.compile(r":ncpus=([0-9]{1,9})(?=[:+)]|$)")
_NCPUS = re.compile(r"(?:^|:)(?:ppn|ncpus)=([0-9]{1,9})(?=[:#]|$)")
_CPP = re.compile(r":cpp=([0-9]{1,9})(?=[:#]|$)")
_MOST = 10**9
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_SIZE_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_WORD = 8  # bytes
_CHUNK_SIZE = re.compile(r":mem=([0-9]+[kmgtp]?[bw]?)(?=[:#]|$)", re.IGNORECASE)
_CHUNK_GPUS = re.compile(r":n?gpus=([0-9]{1,9})(?=[:#]|$)")
# Jobs that must have ended: not those that must have begun (after), nor those that wait for this one (before...).
_DEPENDENCY = re.compile(r"(?:^|,)after(?:ok|any|notok)((?::[^:,]{1,256})+)")


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of a record, without quotes.

    Where a name comes twice the last value counts, but of user, group, account and project the first: a job name may
    hold blanks and equals signs, and it stands between these and the others.
    """
    pairs = _FIELD.findall(text)
    fields: dict[str, str] = dict(pairs)
    first = dict(reversed(pairs[:_FIRST]))
    for name in _BEFORE_NAME:
        if name in first:
            fields[name] = first[name]
    if '"' in text or "'" in text:
        for name, value in fields.items():
            if value[:1] in {'"', "'"} and len(value) > 1 and value[-1] == value[0]:
                fields[name] = value[1:-1]
    return fields


def whole(fields: dict[str, str], name: str) -> int | None:
    """Return a whole number of at most 12 digits; None for what is missing, is none, or is 0 (PBS's "not yet")."""
    text = fields.get(name)
    return (int(text) or None) if text is not None and _WHOLE.fullmatch(text) else None


def parse_walltime(text: str) -> int | None:
    """Return the seconds of ``SS``, ``MM:SS``, ``HH:MM:SS`` or ``DD:HH:MM:SS``; None if it is none of them.

    Hours may be more than 24, a fraction of a second is cut off.
    """
    parts = text.split(".", 1)[0].split(":")
    if len(parts) > 4 or not all(_WHOLE.fullmatch(part) for part in parts):
        return None
    seconds = 0
    for part, size in zip(reversed(parts), (1, 60, 3600, 86400), strict=False):
        seconds += int(part) * size
    return seconds if seconds < 10**12 else None


def count_slots(exec_host: str) -> int:
    """Return the processors of ``h1/0*4+h2/1`` (OpenPBS), ``h1/0+h1/1`` or ``h1/0-7,9`` (TORQUE)."""
    total = 0
    for part in exec_host.split("+"):
        _, slash, slots = part.rpartition("/")
        if not slash:
            total += 1
            continue
        _, star, times = slots.partition("*")
        if star:
            total += int(times) if _WHOLE.fullmatch(times) else 1
            continue
        total += sum(array_size(span) or 1 for span in slots.split(","))
    return min(total, _MOST)


def hosts_of(exec_host: str) -> int:
    """Return how many different hosts ``exec_host`` names."""
    return len({part.rpartition("/")[0] or part for part in exec_host.split("+")})


def requested_processors(fields: dict[str, str]) -> int | None:
    """Return the processors that a job asked for; None if its record does not say.

    OpenPBS adds up the chunks of ``select`` in ``ncpus``. TORQUE has ``nodes=N:ppn=M(+...)``, ``procs=N`` or, on a
    Cray, ``mppwidth=N``, and may set ``ncpus=1`` or ``nodes=1`` by default beside them: there the largest counts.
    """
    ncpus = whole(fields, "Resource_List.ncpus")
    select = fields.get("Resource_List.select")
    if select is not None:
        return ncpus or _chunks(select) or None
    nodes = fields.get("Resource_List.nodes")
    known = [
        ncpus or 0,
        whole(fields, "Resource_List.procs") or 0,
        whole(fields, "Resource_List.mppwidth") or 0,
        0 if nodes is None else _chunks(nodes),
    ]
    return min(max(known), _MOST) or None


def asked_memory(fields: dict[str, str]) -> int | None:
    """Return the MB that a job asked for in all, rounded up: ``mem``, or the sum over the chunks of ``select``."""
    total = _bytes(fields.get("Resource_List.mem", ""))
    if total is None:
        sizes = [
            (count, _bytes(match[1]))
            for count, chunk in _counted(fields.get("Resource_List.select", ""))
            if (match := _CHUNK_SIZE.search(chunk))
        ]
        known = [count * size for count, size in sizes if size is not None]
        total = sum(known) if known else None
    return None if total is None else min(-(-total // (1 << 20)), 10**12)


def _bytes(text: str) -> int | None:
    """Return the bytes of ``4gb``, ``1024mb``, ``100kw`` (words); None if it is none of these."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = _WORD if match[3].lower() == "w" else 1
    return int(match[1]) * int(1024 ** _SIZE_STEPS[match[2].lower()]) * unit


def requested_gpus(fields: dict[str, str]) -> int | None:
    """Return the GPUs that a job asked for in all; None if its record has neither that nor chunks."""
    total = fields.get("Resource_List.ngpus", "")
    if _WHOLE.fullmatch(total):
        return int(total)
    text = fields.get("Resource_List.select") or fields.get("Resource_List.nodes")
    if text is None:
        return None
    found = ((count, _CHUNK_GPUS.search(chunk)) for count, chunk in _counted(text))
    return min(sum(count * int(match[1]) for count, match in found if match), _MOST)


def depends_on(fields: dict[str, str]) -> str:
    """Return the ids of the jobs that had to end first (``depend=afterok:17.host:18.host``), with ``:`` between."""
    lists = _DEPENDENCY.findall(fields.get("depend", ""))
    ids = [one.partition("@")[0] for text in lists for one in text[1:].split(":")]
    return ":".join(dict.fromkeys(ids))


def _counted(text: str) -> list[tuple[int, str]]:
    """Return how often each chunk of ``select`` or ``nodes`` is asked for, and the chunk."""
    chunks = []
    for chunk in text.split("+"):
        head = re.split(r"[:#]", chunk, maxsplit=1)[0]
        chunks.append(((int(head) if _WHOLE.fullmatch(head) else 0) or 1, chunk))
    return chunks


def _chunks(text: str) -> int:
    """Return the processors of ``2:ncpus=4:mem=1gb+1:ncpus=2`` (select) or ``4:ppn=16+node2#shared`` (nodes).

    A chunk without a count is one, one without processors has one.
    """
    total = 0
    for count, chunk in _counted(text):
        ncpus, cpp = _NCPUS.search(chunk), _CPP.search(chunk)
        total += count * (int(ncpus[1]) if ncpus else 1) * (int(cpp[1]) if cpp else 1)
    return min(total, _MOST)


def vnode_processors(exec_vnode: str) -> int:
    """Return the sum of ncpus in ``(v1:ncpus=4:mem=2kb)+(v2:ncpus=2+v3:ncpus=1)``."""
    return min(sum(map(int, _VNODE_NCPUS.findall(exec_vnode))), _MOST)
