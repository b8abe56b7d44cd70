"""The cells of ``sacct -P`` as numbers: from the column that has something, of one cell once however often it comes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.workload.accounting.cells import Rows
from policyfactory.workload.accounting.record import Limit, State
from policyfactory.workload.accounting.slurm import (
    LARGEST,
    array_limit,
    array_tasks,
    asked,
    asks_for_nodes,
    gres_gpus,
    limit_in_id,
    memory_of_each,
    read_limit,
    state_of,
    tres,
    tres_gpus,
    tres_memory,
)
from policyfactory.workload.accounting.times import AMBIGUOUS, UNREADABLE, Clock, duration, settle

__all__ = ["TIMES", "Parsed", "odd_term", "parse"]

_Mask = NDArray[np.bool_]
_Reader = Callable[[str], int | None]

_NONE = -1
TIMES = ("submit", "start", "end")


def _count(text: str) -> int:
    """Return a count; sacct without --noconvert prints 2048 as 2K."""
    return int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text)


def _suspended(text: str) -> int | None:
    seconds = duration(text) if text else None
    if text and seconds is None:
        raise ValueError(text)
    return seconds


# How columns of the table are read: from a column of the log or, where that one is empty, cannot be read or does not
# have the resource, from the next. What reads a cell gives a number from 0 or None, or raises ValueError.
_SOURCES: dict[str, tuple[tuple[str, _Reader], ...]] = {
    "elapsed": (("elapsed_raw", int), ("elapsed", duration)),
    "suspended": (("suspended", _suspended),),
    "limit": (
        ("limit_raw", lambda text: read_limit(text, "")[0]),
        ("limit", lambda text: read_limit("", text)[0]),
    ),
    "limit_kind": (
        ("limit_raw", lambda text: read_limit(text, "")[1]),
        ("limit", lambda text: read_limit("", text)[1]),
    ),
    "requested": (("requested", _count), ("requested_tres", lambda text: tres(text, "cpu"))),
    "allocated": (("allocated", _count), ("allocated_tres", lambda text: tres(text, "cpu"))),
    "requested_nodes": (("requested_nodes", _count), ("requested_tres", lambda text: tres(text, "node"))),
    "allocated_nodes": (("allocated_nodes", _count), ("allocated_tres", lambda text: tres(text, "node"))),
    "memory": (("requested_tres", tres_memory), ("allocated_tres", tres_memory)),
    "gpus": (("requested_tres", tres_gpus),),
    "allocated_gpus": (("allocated_tres", tres_gpus),),
    "node_gpus": (("requested_gres", gres_gpus),),
    "node_allocated_gpus": (("allocated_gres", gres_gpus),),
    "exclusive": (("submit_line", asks_for_nodes),),
    "array_limit": (("submit_line", array_limit),),
    "state": (("state", state_of),),
}


@functools.lru_cache(maxsize=1 << 16)
def _value(how: _Reader, text: str) -> int:
    """Return the number that a cell holds, -1 if none, `UNREADABLE` if it cannot be what it is for."""
    if not text and how in {int, _count}:
        return _NONE
    try:
        number = how(text)
    except ValueError:
        return UNREADABLE
    return _NONE if number is None else max(_NONE, min(number, LARGEST + 1))


def _column(rows: Rows, source: tuple[str, _Reader], *others: tuple[str, _Reader], strict: bool = False) -> Int64Array:
    """Return a column of numbers from the first of some sources that has something in a row; see `_SOURCES`.

    ``strict``: a cell that cannot be read stays so, whatever the next source has.
    """
    term, how = source
    if how is int and (whole := rows.numbers(term)) is not None:
        return whole
    codes, texts = rows.coded(term)
    numbers = np.array([_value(how, text) for text in texts], dtype=np.int64)[codes]
    if any(rows.has(name) for name, _ in others):
        gone = np.array([not text for text in texts], dtype=bool)[codes]
        gone |= (numbers == _NONE) & term.endswith("_tres")
        if not strict:
            gone |= numbers == UNREADABLE
        if gone.any():
            other = _column(rows, *others, strict=strict)
            # What no other has stays unreadable.
            numbers[gone] = np.where(other == _NONE, numbers, other)[gone]
    return numbers


class Parsed(NamedTuple):
    """The cells of some rows as numbers.

    Parameters
    ----------
    numbers : dict of str to int64 array (n,)
        The columns `NUMBERS`.
    odd : dict of str to bool array (n,)
        Of columns with cells that cannot be what they are for, the rows in which that is so.
    lost : bool array (n,)
        Rows whose submission, start or end cannot be read.
    settled : list of (int, str)
        Rows whose times could mean two, and how that was settled.
    """

    numbers: dict[str, Int64Array]
    odd: dict[str, _Mask]
    lost: _Mask
    settled: list[tuple[int, str]]


def parse(rows: Rows, clock: Clock, *, strict: bool = False) -> Parsed:
    """Read the cells of some rows."""
    numbers = {}
    for term in ("eligible", *TIMES):
        whole = rows.numbers(term)
        numbers[term] = clock.column(rows.texts(term)) if whole is None or not whole.all() else whole
    numbers |= {name: _column(rows, *sources, strict=strict) for name, sources in _SOURCES.items()}
    numbers |= {"line": rows.lines, "tasks": np.ones(len(rows), dtype=np.int64)}
    _of_each(rows, numbers)
    odd = {name: mask for name, column in numbers.items() if (mask := column == UNREADABLE).any()}
    none = np.zeros(len(rows), dtype=bool)
    lost = odd.get("submit", none) | odd.get("start", none) | (odd.get("end", none) & (numbers["elapsed"] < 0))
    for name, mask in odd.items():
        numbers[name][mask] = Limit.missing if name == "limit_kind" else _NONE
    settled = _settle_times(rows, numbers, ~lost, clock)
    _settle_unfinished(rows, numbers)
    _settle_words(rows, numbers)
    return Parsed(numbers, odd, lost, settled)


def odd_term(rows: Rows, name: str, row: int) -> str:
    """Return what is read in the column of the log whose cell in a row cannot be what it is for."""
    for term, how in _SOURCES.get(name, ()):
        if rows.has(term) and _value(how, rows.texts(term)[row]) == UNREADABLE:
            return term
    return "requested_memory" if name == "memory" else name


def _of_each(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Fill in memory and GPUs that old logs have for each node or core (ReqMem, ReqGRES, AllocGRES)."""
    nodes = np.where(numbers["allocated_nodes"] > 0, numbers["allocated_nodes"], numbers["requested_nodes"])
    for name in ("gpus", "allocated_gpus"):
        of_node = numbers.pop(f"node_{name}")
        numbers[name] = np.where((numbers[name] <= 0) & (of_node >= 0) & (nodes > 0), of_node * nodes, numbers[name])
    if not rows.has("requested_memory") or (numbers["memory"] >= 0).all():
        return
    codes, texts = rows.coded("requested_memory")
    each = [_memory(text) for text in texts]
    cores = np.where(numbers["requested"] > 0, numbers["requested"], numbers["allocated"])
    of = np.array([one[1] for one in each], dtype=np.int64)[codes]
    of = np.where(of == 1, nodes, np.where(of == 2, cores, 1))
    megabytes = np.array([one[0] for one in each])[codes]
    total = np.where((of > 0) & (megabytes > 0), np.minimum(np.ceil(megabytes * of), LARGEST + 1), _NONE)
    total = np.where(megabytes == UNREADABLE, UNREADABLE, total).astype(np.int64)
    numbers["memory"] = np.where(numbers["memory"] < 0, total, numbers["memory"])


def _memory(text: str) -> tuple[float, int]:
    """Return the MB of a cell of ReqMem, and of what; 0 MB stands for none, as for all that a node has."""
    try:
        return memory_of_each(text) if text else (0.0, 0)
    except ValueError:
        return float(UNREADABLE), 0


def _settle_times(rows: Rows, numbers: dict[str, Int64Array], readable: _Mask, clock: Clock) -> list[tuple[int, str]]:
    """Choose among times that can mean two, since summer time ends in between, and return where and how."""
    for row in np.flatnonzero(numbers["eligible"] == AMBIGUOUS).tolist():
        numbers["eligible"][row] = clock.read(rows.texts("eligible")[row])[0]
    settled = []
    ambiguous = readable & np.any([numbers[name] == AMBIGUOUS for name in TIMES], axis=0)
    for row in np.flatnonzero(ambiguous).tolist():
        ran, rested = int(numbers["elapsed"][row]), int(numbers["suspended"][row])
        readings = [() if numbers[name][row] == _NONE else clock.read(rows.texts(name)[row]) for name in TIMES]
        chosen, how = settle(readings, None if ran < 0 else ran + max(rested, 0))
        for name, time in zip(TIMES, chosen, strict=True):
            numbers[name][row] = _NONE if time is None else time
        settled.append((row, how))
    return settled


def _settle_unfinished(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Take away what a line says of a run that is not over, or never was."""
    pending = numbers["state"] == State.pending
    numbers["end"][pending | (numbers["state"] == State.running)] = _NONE
    numbers["start"][pending] = _NONE
    # ReqNodes is a minimum, and only the nodes that a job had show whether it wanted more.
    numbers["requested_nodes"][numbers["allocated_nodes"] <= 0] = _NONE
    nothing = numbers["allocated_nodes"] == 0
    if rows.has("allocated_tres"):
        codes, texts = rows.coded("allocated_tres")
        nothing |= np.array([not text for text in texts], dtype=bool)[codes]
    # A job cancelled in the queue shows AllocCPUS = ReqCPUS, though nothing was allocated (22.05.8, seen).
    numbers["allocated"][nothing & (numbers["elapsed"] <= 0)] = 0


def _settle_words(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Take from job ids how many tasks wait, and may run at once, and from submit lines which limits were asked for."""
    jobs = rows.texts("id")
    if "[" in "".join(jobs):
        numbers["tasks"] = np.array([array_tasks(job) for job in jobs], dtype=np.int64)
        limits = np.array([limit_in_id(job) or _NONE for job in jobs], dtype=np.int64)
        numbers["array_limit"] = np.where(limits > 0, limits, numbers["array_limit"])
    if rows.has("submit_line"):
        lines = rows.texts("submit_line")
        for row in np.flatnonzero(numbers["limit_kind"] == Limit.given).tolist():
            if numbers["limit"][row] in asked(lines[row]):
                numbers["limit_kind"][row] = Limit.asked
