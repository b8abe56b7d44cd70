"""Reading a table of a protocol key by key: wrong types, missing and unknown keys are told with their place."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from policyfactory.core.errors import InputError, PolicyfactoryError, UsageError

__all__ = ["MAX_ENTRIES", "MAX_TEXT", "Reader"]

MAX_TEXT = 20_000
MAX_ENTRIES = 1_000
_SHOWN = 60
_LARGEST = 1e300
_REQUIRED: Any = object()


class Reader:
    """A table of a protocol, and where it stands.

    Parameters
    ----------
    content : mapping
        Keys and values, as `tomllib` reads them.
    file : str
        The file, for messages. Empty: the table was made from the options of a command, whose own messages are
        passed on as they are.
    place : str
        The table in it, for example ``[logs.kth]``.
    """

    def __init__(self, content: Mapping[str, Any], file: str, place: str) -> None:
        self.content = content
        self.file = file
        self.place = place
        self._known: set[str] = set()

    # Errors. ----------------------------------------------------------------------------------------------------------

    def error(self, key: str, reason: str) -> PolicyfactoryError:
        """Return the error that the value of ``key`` cannot be used."""
        if not self.file:
            given = f" {_shown(self.content[key])}" if key in self.content else ""
            return UsageError(f"--{key.replace('_', '-')}{given}: {reason}")
        shown = f" = {_shown(self.content[key])}" if key in self.content else ""
        return InputError(f"{self.file}: {self.place} {_visible(key)}{shown}: {reason}")

    @contextlib.contextmanager
    def about(self, key: str) -> Iterator[None]:
        """Name file, table and key in what goes wrong inside."""
        try:
            yield
        except InputError as error:
            if not self.file or str(error).startswith(f"{self.file}: "):
                raise
            raise self.error(key, str(error)) from None
        except PolicyfactoryError as error:
            if not self.file:
                raise
            raise self.error(key, str(error)) from None

    def finish(self) -> None:
        """Refuse keys that nobody asked for.

        Raises
        ------
        InputError
            If there is one; near matches are named.
        """
        for key in self.content:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise self.error(key, f"is no key of this table; {hint}it has {', '.join(sorted(self._known))}")

    # Values. ----------------------------------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        """Return whether there is such a key; it is known from then on."""
        self._known.add(key)
        return key in self.content

    def _take(self, key: str, default: Any, types: tuple[type, ...], expected: str) -> Any:
        if not self.has(key):
            if default is _REQUIRED:
                raise self.error(key, f"is missing; write {expected}")
            return default
        value = self.content[key]
        # In Python a bool is an int; here it is not.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise self.error(key, f"is {_type(value)}; write {expected}")
        return value

    def text(self, key: str, default: Any = _REQUIRED, *, expected: str = "a text in quotes") -> Any:
        """Return a text of at most `MAX_TEXT` characters."""
        value = self._take(key, default, (str,), expected)
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise self.error(key, f"has {len(value):,} characters; write at most {MAX_TEXT:,}")
        return value

    def choice(self, key: str, words: tuple[str, ...], default: Any = _REQUIRED) -> Any:
        """Return one of ``words``."""
        value = self.text(key, default)
        if value is not None and value not in words:
            raise self.error(key, f"is none of {', '.join(words)}; write one of them")
        return value

    def integer(self, key: str, default: Any = _REQUIRED, *, least: int = 0, most: int = 2**63 - 1) -> Any:
        """Return a whole number of ``least`` to ``most``."""
        expected = f"a whole number of {least:,} to {most:,}"
        value = self._take(key, default, (int,), expected)
        if isinstance(value, int) and not least <= value <= most:
            raise self.error(key, f"is out of range; write {expected}")
        return value

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return a finite number."""
        value = self._take(key, default, (int, float), "a number")
        if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
            raise self.error(key, f"is not finite, or beyond {_LARGEST:g}; write a number")
        return value

    def flag(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return true or false."""
        return self._take(key, default, (bool,), "true or false")

    def texts(self, key: str, default: Any = _REQUIRED, *, once: bool = True) -> Any:
        """Return a tuple of texts; each ``once``, or it is an error."""
        found = self._list(key, default, (str,), 'a list of texts, for example ["FCFS", "SPF"]')
        if found is None or found is default:
            return found
        for at, text in enumerate(found):
            if len(text) > MAX_TEXT:
                raise self.error(key, f"has an entry of {len(text):,} characters; write at most {MAX_TEXT:,}")
            if once and text in found[:at]:
                raise self.error(key, f"names {_visible(text)} twice; name it once")
        return found

    def _list(self, key: str, default: Any, types: tuple[type, ...], expected: str) -> Any:
        found = self._take(key, default, (list, tuple), expected)
        if found is default:
            return found
        if len(found) > MAX_ENTRIES:
            raise self.error(key, f"has {len(found):,} entries; write at most {MAX_ENTRIES:,}")
        for entry in found:
            if not isinstance(entry, types) or isinstance(entry, bool):
                raise self.error(key, f"holds {_shown(entry)}, which is {_type(entry)}; write {expected}")
        return tuple(found)

    def integers(self, key: str, default: Any = _REQUIRED) -> Any:
        """Return a tuple of whole numbers."""
        return self._list(key, default, (int,), "a list of whole numbers, for example [1, 8]")

    # Tables inside this one. ------------------------------------------------------------------------------------------

    def table(self, key: str) -> Reader:
        """Return the table at ``key``; without one, an empty table."""
        value = self._take(key, {}, (dict,), f"a table, for example [{self._inside(key)}]")
        return Reader(value, self.file, f"[{self._inside(key)}]")

    def named_tables(self, key: str) -> dict[str, Reader]:
        """Return the tables inside the table at ``key``, by name."""
        outer = self.table(key)
        if len(outer.content) > MAX_ENTRIES:
            raise self.error(key, f"has {len(outer.content):,} entries; write at most {MAX_ENTRIES:,}")
        return {name: outer.table(name) for name in outer.content}

    def tables(self, key: str, *, name: str = "name") -> list[Reader]:
        """Return the list of tables at ``key``; each is called by its ``name`` in messages, or by its number."""
        found = self._list(key, (), (dict,), f"a list of tables, for example [[{self._inside(key)}]]")
        readers = []
        for number, entry in enumerate(found, 1):
            called = entry.get(name)
            label = _shown(called) if isinstance(called, str) else str(number)
            readers.append(Reader(entry, self.file, f"[[{self._inside(key)}]] {label}"))
        return readers

    def entries(self, key: str, default: Any = ()) -> list[str | Reader]:
        """Return a list of texts and tables."""
        found = self._list(key, default, (str, dict), 'a list of names or of tables { name = "..." }')
        place = f"{self.place} {key}"
        return [entry if isinstance(entry, str) else Reader(entry, self.file, place) for entry in found]

    def _inside(self, key: str) -> str:
        outer = self.place.partition("]")[0].strip("[]")
        return f"{outer}.{_visible(key)}" if outer else _visible(key)


def _type(value: Any) -> str:
    names = {bool: "true or false", str: "a text", int: "a whole number", float: "a number", list: "a list"}
    names |= {dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def _visible(text: str) -> str:
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return short if short.isprintable() else ascii(short)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return ascii(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
    try:
        text = str(value)
    except (RecursionError, ValueError):
        return "(a value nested too deeply, or a number of thousands of digits)"
    return _visible(text)
