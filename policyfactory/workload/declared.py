"""Tables of TOML whose keys are the fields of a class: each field says with its kind how it is read and written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from policyfactory.core.errors import InputError
from policyfactory.core.text import enumerated, shortened, unknown_key

LONGEST_TEXT = 10_000
MOST_NAMES = 100_000
LARGEST = 2**53  # beyond, a float is no longer exact
_MOST_ROWS = 200_000
# What stands for a table in a message.
_NAMED = ("name", "names", "account")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    Parameters
    ----------
    read : function of a value of TOML
        Returns the value of the model; a ValueError says what was expected instead.
    write : function of a value of the model
        Returns the value for TOML.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


class WrongValueError(ValueError):
    """Says what is wrong with a value, and not what was expected."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise ValueError(f"a text of at most {LONGEST_TEXT:,} printable characters")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_NAMES:
        raise ValueError(f'a list of at most {MOST_NAMES:,} texts, for example ["normal", "long"]')
    return tuple(_text(name) for name in value)


def _any_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError(f"a text of at most {LONGEST_TEXT:,} characters")
    return value


def _cells(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    good = (type(cell) is str or (type(cell) is int and abs(cell) <= LARGEST) for cell in values)
    if len(values) > MOST_NAMES or not all(good):
        raise ValueError(f"a text, a whole number, or a list of at most {MOST_NAMES:,} of them")
    return tuple(_any_text(str(cell)) for cell in values)


def count(low: int = 0, high: int = LARGEST) -> Kind:
    """Return the kind of whole numbers from ``low`` to ``high``."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number from {low:,} to {high:,}")
        return value

    return Kind(read, int)


def choice(*words: str) -> Kind:
    """Return the kind of one of several words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return Kind(read)


TEXT = Kind(_text)
ANY_TEXT = Kind(_any_text)
FLAG = Kind(_flag)
NAMES = Kind(_names, list)
CELLS = Kind(_cells, list)


def kept(kind: Kind | type, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """Declare a field of a class: ``kind`` reads and writes it, or it is a table of a class.

    Without a default it must be given; a class in place of one makes it (``dict``). ``key`` is what the file calls the
    field, if not by its name; what else is given stays with the field.
    """
    metadata = {"kind": kind, **more}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def rows(kind: type) -> Any:
    """Declare a field that is a list of tables of a class; none of them where it is not given."""
    return dataclasses.field(default=(), metadata={"rows": kind})


_KEYS: dict[type, dict[str, dataclasses.Field[Any]]] = {}  # of the classes that were asked for


def _keys(kind: type) -> dict[str, dataclasses.Field[Any]]:
    if kind not in _KEYS:
        fields = (field for field in dataclasses.fields(kind) if field.metadata)
        _KEYS[kind] = {field.metadata.get("key", field.name): field for field in fields}
    return _KEYS[kind]


@dataclasses.dataclass(frozen=True, slots=True)
class TableReading:
    """Reads the tables of a file.

    Parameters
    ----------
    error : type of InputError
        What is raised.
    page : str
        The page of the documentation that shows the layout.
    """

    error: type[InputError]
    page: str

    def value(self, kind: Kind, value: Any, where: str) -> Any:
        """Return a value of the model; ``where`` is its file, table and key.

        Raises
        ------
        InputError
            As `error`, if it is not of that kind.
        """
        try:
            return kind.read(value)
        except WrongValueError as error:
            raise self.error(f"{where}: {error}") from None
        except ValueError as error:
            raise self.error(f"{where} is {shortened(repr(value), 60)}; expected {error}; {self.page}") from None

    def check_keys(self, content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        """Refuse a key that is none of some; the nearest of them is named.

        Raises
        ------
        InputError
            As `error`.
        """
        for key in content:
            if key not in known:
                raise self.error(f"{where}: {shortened(key, 40)} {unknown_key(key, known)}")

    def mapping(self, content: Any, where: str) -> Mapping[str, Any]:
        """Return what must be a table, whatever its keys.

        Raises
        ------
        InputError
            As `error`.
        """
        if not isinstance(content, Mapping):
            raise self.error(f"{where} is {shortened(repr(content), 60)}; expected a table; {self.page}")
        return content

    def values(self, kinds: Mapping[str, Kind], content: Any, where: str) -> dict[str, Any]:
        """Return the values of a table by keys that need not be there; errors are those of `table`."""
        self.check_keys(self.mapping(content, where), list(kinds), where)
        return {key: self.value(kinds[key], value, f"{where}: {key}") for key, value in content.items()}

    def table(self, kind: type[T], content: Any, where: str) -> T:
        """Return a table as an object of its class.

        Raises
        ------
        InputError
            As `error`, if a key is unknown or missing, or a value is not of its kind.
        """
        fields = _keys(kind)
        self.check_keys(self.mapping(content, where), list(fields), where)
        needed = [key for key, field in fields.items() if field.default is field.default_factory is dataclasses.MISSING]
        if missing := [key for key in needed if key not in content]:
            verb = "is" if len(missing) == 1 else "are"
            raise self.error(f"{where}: {enumerated(missing)} {verb} not given; {self.page}")
        given = {key: self._field(fields[key], value, f"{where}: {key}") for key, value in content.items()}
        return kind(**{fields[key].name: value for key, value in given.items()})

    def _field(self, field: dataclasses.Field[Any], value: Any, where: str) -> Any:
        if "rows" in field.metadata:
            return self.rows(field.metadata["rows"], value, where)
        kind = field.metadata["kind"]
        return self.value(kind, value, where) if isinstance(kind, Kind) else self.table(kind, value, where)

    def rows(self, kind: type[T], value: Any, where: str) -> tuple[T, ...]:
        """Return a list of tables, which messages name; errors are those of `table`."""
        if not isinstance(value, list) or len(value) > _MOST_ROWS:
            raise self.error(f"{where} is no list of at most {_MOST_ROWS:,} tables; {self.page}")
        places = (f"{where}[{number}]{_named(content)}" for number, content in enumerate(value, 1))
        return tuple(self.table(kind, content, location) for content, location in zip(value, places, strict=True))


def _named(content: Any) -> str:
    names = [content[key] for key in _NAMED if key in content] if isinstance(content, Mapping) else []
    return f" ({shortened(names[0], 40)})" if names and isinstance(names[0], str) else ""


def written_values(entry: Any, *, every: bool = False) -> dict[str, Any]:
    """Return the plain values of an object as TOML has them, without tables inside it.

    Parameters
    ----------
    entry : object
        Of a class with declared fields.
    every : bool
        Also those that are the defaults.
    """
    values = {}
    for key, field in _keys(type(entry)).items():
        kind, value = field.metadata.get("kind"), getattr(entry, field.name)
        usual = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if isinstance(kind, Kind) and (every or value != usual):
            values[key] = kind.write(value)
    return values


def written_table(entry: Any) -> dict[str, Any]:
    """Return an object as a table, read as an equal one: its values, then its tables, then its lists of tables."""
    tables, lists = {}, {}
    for key, field in _keys(type(entry)).items():
        value = getattr(entry, field.name)
        if "rows" in field.metadata:
            lists[key] = [written_table(part) for part in value]
        elif not isinstance(field.metadata["kind"], Kind):
            tables[key] = written_table(value)
    return {**written_values(entry), **{key: inside for key, inside in (tables | lists).items() if inside}}
