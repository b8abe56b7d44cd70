"""The result of a simulation as text, and back: for the journal, and from other processes.

JSON in which everything that JSON has no word for is an object of one key that says what it is: tuples, lists,
mappings, arrays (type, shape, order, bytes), numbers of numpy, and the records that analyses keep, by the names of
`RECORDS`. Every number comes back bit by bit, so that what is concluded from it is the same. Nothing but these can be
read, and reading runs no code of the text's: a file may come from a stranger.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError, PolicyfactoryError
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload

__all__ = ["RECORDS", "decode", "encode", "is_kept", "is_of"]

# Module below policyfactory/ and class; the fields are written by their order, so a change of them is another version.
RECORDS: dict[str, tuple[str, str]] = {
    "facts": ("simulate.cases", "CaseFacts"),
    "attributes": ("workload.attributes", "Attributes"),
    "requests": ("workload.requests", "Requests"),
    "cleaning": ("workload.cleaning_report", "CleaningReport"),
    "cleaning-step": ("workload.cleaning_report", "CleaningStep"),
    "run": ("evaluate.work", "SimulationResult"),
    "weeks": ("simulate.metrics", "WeeklySums"),
    "overuse": ("simulate.schedule", "Overuse"),
    "replayed": ("analyses.replay", "Replayed"),
    "groups": ("analyses.grouping", "GroupSums"),
    "waits": ("analyses.waits", "Waits"),
    "load": ("analyses.load", "ObservedLoad"),
    "load-sums": ("analyses.load_over_time", "LoadSums"),
    "load-course": ("analyses.load_over_time", "LoadCourse"),
    "delayed": ("analyses.delayed", "DelayedJobs"),
    "course": ("analyses.improvement", "WaitCourse"),
    "schedule": ("analyses.excerpt", "KeptSchedule"),
}
_KINDS = "biuf"  # of the arrays: truth values, whole numbers, floats
_TYPE = re.compile(r"\|[biu]1|[<>][iuf][248]")  # as numpy writes them; f1 does not exist
_HUGE = 2**63  # whole numbers that go into no array
_NAMED = ("name", "unix_start", "time_zone", "origin")  # of jobs, what their digest does not have


def encode(value: Any, jobs_sha256: str = "") -> bytes:
    """Return ``value`` as text in one line.

    Parameters
    ----------
    value : object
        None, truth values, numbers, texts, tuples, lists, mappings, arrays of numbers, records of these (`RECORDS`).
    jobs_sha256 : str
        Digest of the case's jobs: a `Workload` in the value must be these, and is only mentioned.

    Raises
    ------
    TypeError
        If there is anything else in it; an analysis that keeps it needs a line in `RECORDS`.
    """
    return json.dumps(_encoded(value, jobs_sha256), separators=(",", ":")).encode("ascii")


def _encoded(value: Any, jobs: str) -> Any:
    kind = type(value)
    if value is None or kind in {bool, int, float, str}:
        return value
    if kind in {list, tuple}:
        return {kind.__name__: [_encoded(entry, jobs) for entry in value]}
    if kind is np.ndarray and value.dtype.kind in _KINDS:
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return {"array": [value.dtype.str, list(value.shape), order, _text(value.tobytes(order))]}
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return {"number": [value.dtype.str, _text(value.tobytes())]}
    if kind is Workload:
        if value.sha256() == jobs:
            return {"jobs": [getattr(value, name) for name in _NAMED]}
        return {"workload": [_encoded(getattr(value, field), "") for field in _fields(Workload)]}
    if isinstance(value, Mapping):
        return {"mapping": [_encoded(entry, jobs) for entry in value.items()]}
    name = _names().get(kind)
    if name is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be written to a journal of simulations")
    return {name: [_encoded(getattr(value, field), jobs) for field in _fields(kind)]}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or a named tuple, in order."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return names


@functools.cache
def _record(name: str) -> type:
    module, kind = RECORDS[name]
    record: type = getattr(import_module(f"policyfactory.{module}"), kind)
    return record


@functools.cache
def _names() -> dict[type, str]:
    return {_record(name): name for name in RECORDS}


def decode(text: bytes, jobs: Callable[[], Workload] | None = None) -> Any:
    """Return the value of a text of `encode`.

    Parameters
    ----------
    text : bytes
        The text.
    jobs : callable, optional
        Returns the jobs of the case, where the text mentions them.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return _value(json.loads(text), jobs)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, PolicyfactoryError) as error:
        # What numpy says of a type has the type in it, as it was written.
        raise InputError(f"{text[:40]!r} is not the result of a simulation: {printable(str(error), 200)}") from None


def _value(content: Any, jobs: Callable[[], Workload] | None) -> Any:
    if not isinstance(content, dict):
        if isinstance(content, list):
            raise ValueError("a list without its kind")
        return content
    ((name, content),) = content.items()
    if not isinstance(content, list):
        raise ValueError(f"{name[:40]!r} without a list")
    if name == "array":
        return _array(*content)
    if name == "number":
        kind, data = content
        return _array(kind, [], "C", data)[()]
    if name == "jobs":
        if jobs is None or len(content) != len(_NAMED):
            raise ValueError("jobs of no case")
        return dataclasses.replace(jobs(), **dict(zip(_NAMED, content, strict=True)))
    values = [_value(entry, jobs) for entry in content]
    if name in {"list", "tuple"}:
        return values if name == "list" else tuple(values)
    if name == "mapping":
        return dict(values)
    made = Workload if name == "workload" else _record(name)
    if len(values) != len(_fields(made)):
        raise ValueError(f"{name[:40]!r} with {len(values)} fields")
    return made(*values)


def is_kept(value: Any, analysis: type) -> bool:
    """Say whether a value is of the type that ``observe`` of an analysis states that it returns, fields and all.

    Parameters
    ----------
    value : object
        What was read.
    analysis : type
        A class of `policyfactory.analyses`.
    """
    return is_of(value, _observed(analysis))


@functools.cache
def _observed(analysis: type) -> Any:
    # These two are imported for the type checker only.
    names = {"Case": object, "Schedule": object}
    return typing.get_type_hints(analysis.observe, localns=names)["return"]  # type: ignore[attr-defined]


@functools.cache
def _types(kind: type) -> Mapping[str, Any]:
    """Return the types of the fields of a record."""
    return typing.get_type_hints(kind)


def is_of(value: Any, kind: Any) -> bool:
    """Say whether a value is of a type; lists, tuples, arrays and records with all that is in them.

    Parameters
    ----------
    value : object
        What was read.
    kind : type
        The type, as an annotation states it. A float may be a whole number, a truth value is no number.

    Raises
    ------
    TypeError
        If the type has no place in the result of a simulation.
    """
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if kind in {int, float}:
        if type(value) is int:
            return abs(value) < _HUGE
        return isinstance(value, np.integer if kind is int else float | np.integer | np.floating)
    if origin in {types.UnionType, typing.Union}:
        return any(is_of(value, one) for one in of)
    if origin is typing.Literal:
        return isinstance(value, str) and value in of
    if origin is np.ndarray:
        (number,) = typing.get_args(of[1])
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, number)
    if origin is list or (origin is tuple and of[-1] is Ellipsis):
        return isinstance(value, origin) and all(is_of(one, of[0]) for one in value)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(of) and all(map(is_of, value, of))
    if not isinstance(kind, type):
        raise TypeError(f"{kind} has no place in the result of a simulation")
    if not isinstance(value, kind):
        return False
    # Jobs check themselves when they are made.
    if kind not in _names():
        return True
    return all(is_of(getattr(value, field), _types(kind)[field]) for field in _fields(kind))


def _array(kind: str, shape: list[int], order: Any, data: str) -> NDArray[Any]:
    """Return an array of its own, checked before anything of its size is made."""
    # Checked as a text: numpy takes more than types for a type, and reads some of it as Python.
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind) or order not in {"C", "F"}:
        raise ValueError("an array of no known type")
    dtype = np.dtype(kind)
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("an array whose bytes cannot be read") from None
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("an array of no shape")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("an array of another size")
    return np.ndarray(tuple(shape), dtype, content, order=order).copy(order="K")
