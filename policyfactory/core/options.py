"""Options of a verb: a frozen dataclass of them, and keywords in place of some."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    D = TypeVar("D", bound=DataclassInstance)

__all__ = [
    "Float32Array",
    "FloatArray",
    "Int32Array",
    "Int64Array",
    "UInt8Array",
    "UInt64Array",
    "changed",
    "check_names",
    "plain_value",
]


def plain_value(value: Any) -> Any:
    """Return a number or an array of numpy as Python's own number or list; any other value is returned as it is."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is none of the known options; near matches are named.

    Raises
    ------
    UsageError
        If there is no such option.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"there is no option {name!r}; {hint}there are {', '.join(known)}")


def changed(options: D, changes: Mapping[str, Any]) -> D:
    """Return ``options`` with ``changes`` in place of what they have.

    Raises
    ------
    UsageError
        If there is no such option (near matches are named), or what is given in place of a number is none. What else
        a value must be, the options check themselves.
    """
    check_names(changes, [field.name for field in dataclasses.fields(options)])
    plain = {name: plain_value(value) for name, value in changes.items()}
    for name, value in plain.items():
        # A text in place of a number is a mistake; comparing the two would raise a TypeError.
        if type(getattr(options, name)) in {int, float} and (isinstance(value, bool | str) or value is None):
            raise UsageError(f"{name} {value!r}: give a number")
    return dataclasses.replace(options, **plain)


# Names of the types of arrays that are everywhere ---------------------------------------------------------------------


FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt8Array = NDArray[np.uint8]
UInt64Array = NDArray[np.uint64]
