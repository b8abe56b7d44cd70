"""Options of a verb: what is said of each, once for library, commands and files, and keywords in place of some."""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.text import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    D = TypeVar("D", bound=DataclassInstance)


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """What a key of a file means.

    Parameters
    ----------
    text : str
        Its meaning; what is code stands between backticks.
    page : str
        The page below docs/ that has more.
    kind : str
        What is written, where it does not follow from the type: ``a duration``.
    stated : str
        What holds without it, where that is no value.
    """

    text: str
    page: str = ""
    kind: str = ""
    stated: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Option(Key):
    """What an option of a command means, which is also a keyword of the library.

    Parameters
    ----------
    name : str
        Its name there, if it is another than that of its field or key.
    flags : tuple of str
        Its names on the command line, if ``--name`` is not the only one.
    metavar : str
        What its value is called in the help.
    plain : object
        What holds for a command where it is not given, if that is not the default of its field or key.
    limits : tuple
        The least and the greatest value; None: no limit.
    parse : callable, optional
        Makes the value of the text of a command line.
    """

    name: str = ""
    flags: tuple[str, ...] = ()
    metavar: str = ""
    plain: Any = None
    limits: tuple[float | None, float | None] = (None, None)
    parse: Callable[[str], Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredOption:
    """A field of a dataclass of options.

    Parameters
    ----------
    name : str
        Its name on the command line (with ``_``).
    field : str
        Its name in the dataclass.
    kind : type
        Of what a command line has: a text where the value is made of one.
    default : object
        What holds if it is not given, as it is written.
    option : Option
        What is said of it.
    """

    name: str
    field: str
    kind: Any
    default: Any
    option: Option


def option(default: Any, text: str | Option, page: str = "", **more: Any) -> Any:
    """Declare a field of a dataclass of options.

    Parameters
    ----------
    default : object
        Its default.
    text : str or Option
        What it means, or what is said of the same option elsewhere.
    page : str
        The page below docs/ that has more.
    **more
        Further fields of `Option`.
    """
    meaning = Option(text, page, **more) if isinstance(text, str) else dataclasses.replace(text, **more)
    return dataclasses.field(default=default, metadata={"option": meaning})


def same_option(elsewhere: Any, **more: Any) -> Any:
    """Declare a field as the option is declared elsewhere, with its default; ``more`` is said otherwise here."""
    return option(elsewhere.default, elsewhere.option, **more)


def options_of(kind: type[D], given: dict[str, Any], **more: Any) -> D:
    """Return the options that a command was given, which are taken out of ``given``.

    Parameters
    ----------
    kind : type
        A dataclass of options.
    given : dict
        What stands on the command line, by the names there; None: the default.
    **more
        Fields that are given by other ways.
    """
    for name, entry in declared(kind).items():
        value = given.pop(name, None)
        if value is not None and entry.field not in more:
            value = entry.option.parse(value) if entry.option.parse and isinstance(value, str) else value
            more[entry.field] = tuple(value) if isinstance(value, list) else value
    return kind(**more)


def declared(options: type[DataclassInstance]) -> dict[str, DeclaredOption]:
    """Return the options that the fields of a dataclass declare, by their names on the command line."""
    kinds = typing.get_type_hints(options)
    found = {}
    for field in dataclasses.fields(options):
        meaning = field.metadata.get("option")
        if meaning is not None:
            default = field.default if meaning.plain is None else meaning.plain
            kind = str if meaning.parse else _of_text(kinds[field.name])
            name = meaning.name or field.name
            found[name] = DeclaredOption(name, field.name, kind, default, meaning)
    return found


def _of_text(kind: Any) -> Any:
    """Return the type of what a command line has for a field: without None, and a path or a text where that will do."""
    parts = [part for part in _parts(kind) if part is not type(None)]
    if typing.get_origin(parts[0]) is tuple:
        return list[str]
    return next((kind for kind in (Path, str) if kind in parts), parts[0])


def _parts(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in {types.UnionType, typing.Union} else (kind,)


_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}


def check_values(options: DataclassInstance) -> None:
    """Check types and limits of all fields of a frozen dataclass of options.

    Numbers and arrays of numpy become Python's, lists tuples, paths of any kind a Path.

    Raises
    ------
    UsageError
        If a value is of a wrong type, or outside its limits.
    """
    kinds = typing.get_type_hints(type(options))
    for field in dataclasses.fields(options):
        given = plain_value(getattr(options, field.name))
        if isinstance(given, os.PathLike):
            given = Path(given)
        value = tuple(given) if isinstance(given, list) else given
        parts, meaning = _parts(kinds[field.name]), field.metadata.get("option", Option(""))
        least, most = meaning.limits
        number = isinstance(value, int | float)
        inside = not number or ((least is None or value >= least) and (most is None or value <= most))
        if not inside or not any(_fits(value, part) for part in parts):
            name = (meaning.name or field.name).replace("_", "-")
            raise UsageError(f"--{name} {ascii(given)[:60]}: expected {_expected(parts, meaning)}")
        object.__setattr__(options, field.name, value)


def _fits(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is Literal:
        return any(value is word or value == word for word in typing.get_args(kind))
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float)
    return kind is Any or isinstance(value, typing.get_origin(kind) or kind)


def _words(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, typing.get_args(kind)))
    return _WORDS.get(kind, "a tuple")


def _expected(parts: Sequence[Any], meaning: Option) -> str:
    """Return what a value must be, in words."""
    words = [meaning.kind] if meaning.kind else [_words(kind) for kind in parts if kind is not type(None)]
    least, most = meaning.limits
    if least is not None and most is not None:
        words.append(f"{least:,} to {most:,}")
    elif least is not None or most is not None:
        words.append(f"at least {least:,}" if least is not None else f"at most {most:,}")
    return ", ".join(words) + (", or None" if type(None) in parts else "")


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
            raise UsageError(f"there is no option {name!r}; {did_you_mean(name, known)}there are {', '.join(known)}")


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
Mask = NDArray[np.bool_]
