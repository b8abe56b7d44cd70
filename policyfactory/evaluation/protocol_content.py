"""What somebody wrote, as options or as a file: the protocol that options make for plain logs, and its checks.

`ProtocolContent` puts what pydantic says of a wrong value into words that name file, table, key, value and cure.
"""

from __future__ import annotations

import contextlib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policyfactory.core.errors import InputError, PolicyfactoryError, UsageError
from policyfactory.core.options import Key, Option, check_names
from policyfactory.core.text import duration_text, unknown_key
from policyfactory.evaluation.options import (
    OPTIONS,
    PLAIN_NAME,
    RUN_OPTIONS,
    By,
    Declared,
    ExperimentTable,
    LogTable,
    OptionTable,
    ProtocolTable,
    ResampleTable,
    RulesTable,
    key_of,
    plain_type,
)


def plain_content(options: Mapping[str, Any], logs: Mapping[str, Mapping[str, Any]], by: By) -> dict[str, Any]:
    """Return the protocol that options make of plain logs, as `tomllib` would read it.

    Parameters
    ----------
    options : mapping
        Options of `OPTIONS` by their names; what is None or absent has its default.
    logs : mapping of str to mapping
        The tables of the logs; options about logs are added to those that are files.
    by : {"command", "call"}
        Where the options are from, for messages.

    Raises
    ------
    UsageError
        If there is no such option, or two contradict each other.
    """
    given = {name: value for name, value in options.items() if value is not None}
    check_names(given, sorted({*OPTIONS, *RUN_OPTIONS}))
    _check_pairs({name: value for name, value in given.items() if value != OPTIONS[name].default}, logs, by)
    values: dict[type[OptionTable], dict[str, Any]] = {}
    for name, declared in OPTIONS.items():
        value = _written(declared, given[name], by) if name in given else declared.default
        if value is not None:
            values.setdefault(declared.table, {})[declared.key] = value
    experiment = {"name": PLAIN_NAME, "title": "Policies compared", **values[ExperimentTable]}
    if "resamples" in given:
        experiment["resample"] = values[ResampleTable]
    rules = values.get(RulesTable, {})
    rules = {"backfill": "slurm" if "site" in rules else "easy", **rules}
    if "site" in rules and "metrics" not in given:
        del experiment["metrics"]  # the default is the site's
    cleaning = {key: value for key, value in values[LogTable].items() if value is not False}
    # The jobs of a model are not cleaned, but say as little about memory.
    of_all = {key: value for key, value in cleaning.items() if key == "assume"}
    return {
        "schema_version": 1,
        "name": PLAIN_NAME,
        "title": "Policies on " + ", ".join(logs),
        **values[ProtocolTable],
        "logs": {name: {**log, **(cleaning if "file" in log else of_all)} for name, log in logs.items()},
        "experiments": [_ordered({**experiment, "rules": rules})],
    }


def _ordered(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of an experiment in the order of their declaration; empty ones that say nothing are left out."""
    kept = {key: experiment[key] for key in ExperimentTable.model_fields if key in experiment}
    return {key: value for key, value in kept.items() if not (key == "formulas" and not value) and value is not False}


def of_logs(names: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of logs by their names.

    Raises
    ------
    UsageError
        If two logs have one name.
    """
    logs: dict[str, Mapping[str, Any]] = {}
    for name, table in names:
        if name in logs:
            raise UsageError(f"two logs are called {name}; name each log once, or rename one file")
        logs[name] = table
    return logs


def _check_pairs(given: Mapping[str, Any], logs: Mapping[str, Mapping[str, Any]], by: By) -> None:
    """Refuse options that belong together and are apart, or exclude each other."""

    def of(*names: str) -> str:
        return " and ".join(label(name, by) for name in names)

    if (given.get("decide_by") == "prediction") != ("predictions" in given):
        raise UsageError(
            f"{label('decide_by', by)} prediction and {label('predictions', by)} FILE.csv belong together; give both "
            "or none"
        )
    if "resamples" not in given and {"length", "draw"} & set(given):
        raise UsageError(f"{of('length', 'draw')} belong to resampled logs; add {label('resamples', by)} N")
    if "resamples" in given and "windows" in given:
        raise UsageError(f"{of('windows', 'resamples')} exclude each other; give one of them")
    files = [name for name, log in logs.items() if "file" in log]
    if not files and {"processors", "force_processors", "predictions"} & set(given):
        raise UsageError(f"{of('processors', 'predictions')} belong to a log, and none is given; name the LOG")
    if "predictions" in given and len(logs) != 1:
        raise UsageError(f"{of('predictions')} belongs to one log, {len(logs)} are given; evaluate one at a time")


def _written(declared: Declared, value: Any, by: By) -> Any:
    """Return a value as a protocol has it: lists of texts with commas as lists, NAME=EXPR as tables."""
    kind, _ = plain_type(declared.field.annotation)
    if by == "call" and declared.name == "threshold" and type(value) in {int, float}:
        return duration_text("threshold", value)
    texts = [value] if isinstance(value, str) else value
    if typing.get_origin(kind) is tuple:
        if not isinstance(texts, list | tuple):
            return value
        words = [word.strip() for text in texts for word in (text.split(",") if isinstance(text, str) else [text])]
        return [word for word in words if word and (word != "none" or declared.name != "analyses")]
    if typing.get_origin(kind) is dict and isinstance(texts, list | tuple):
        return _formulas(texts, label(declared.name, by))
    return value


def _formulas(texts: Iterable[str], option: str) -> dict[str, str]:
    formulas: dict[str, str] = {}
    for text in texts:
        name, equals, expression = (part.strip() for part in text.partition("="))
        if not (name and equals and expression):
            raise UsageError(f"{option} {text!r}: write NAME=EXPR, for example 'MINE=p*q + 1e5*log10(r)'")
        if name in formulas:
            raise UsageError(f"{option}: two formulas are called {name}; give each a name of its own")
        formulas[name] = expression
    return formulas


# Checking what somebody wrote against the declared options ------------------------------------------------------------


T = TypeVar("T", bound=OptionTable)

# Where something stands: names of tables and keys, and numbers of entries of lists from 0.
Path: TypeAlias = tuple[str | int, ...]

_SHOWN = 60
_LONGEST_REASON = 1500
_NAMES = ("name", "text", "source")  # what an entry of a list of tables is called by
_TYPES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number", list: "a list"}
_ABSENT: Any = object()


class ProtocolContent(Generic[T]):
    """The content of a protocol, and who wrote it.

    Parameters
    ----------
    kind : type of OptionTable
        What the content must be.
    content : mapping
        Keys and values, as `tomllib` reads them.
    file : str
        The file, for messages.
    by : {"file", "command", "call"}
        Who wrote it: keys of a file are named with their table, options of a command as ``--option``, keywords of a
        call by themselves.
    """

    def __init__(
        self,
        kind: type[T],
        content: Mapping[str, Any],
        file: str = "",
        by: Literal["file", "command", "call"] = "file",
    ) -> None:
        self.content = content
        self.file = file
        self.by = by
        self.kind = kind

    def checked(self) -> T:
        """Return the content as a table of its kind.

        Raises
        ------
        InputError, UsageError
            If a key is unknown or missing, or a value is not what it must be.
        """
        try:
            return self.kind.model_validate(self.content)
        except ValidationError as wrong:
            # A key with a slip of the pen is missing under its right name, too.
            first = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
            raise self.error(first["loc"], self._reason(first)) from None

    def error(self, path: Path, reason: str) -> PolicyfactoryError:
        """Return the error that the value at ``path`` cannot be used."""
        tables, key = _split(path)
        value = _value(self.content, (*tables, key))
        # What parses a text names it, and this names it again.
        for named in (f"{key} {_shown(value)}", _shown(value)):
            reason = reason.removeprefix(named).lstrip(":, ")
        if len(reason) > _LONGEST_REASON:
            # It can have names of the file in it, several times, and those that are there to choose from.
            reason = f"{reason[: _LONGEST_REASON * 2 // 3]}…{reason[-_LONGEST_REASON // 3 :]}"
        if self.by != "file":
            name = label(_option_name(self.kind, path, key), self.by)
            given = "" if value is _ABSENT or (isinstance(value, list) and not value) else f" {_shown(value)}"
            return UsageError(f"{name}{given}: {reason}")
        shown = "" if value is _ABSENT else f" = {_shown(value)}"
        heading = _heading(tables, self.content)
        return InputError(f"{self.file}: {f'{heading} ' if heading else ''}{_visible(key)}{shown}: {reason}")

    @contextlib.contextmanager
    def about(self, *path: str | int) -> Iterator[None]:
        """Name file, table and key in what goes wrong inside; errors about an option say themselves what they mean."""
        try:
            yield
        except PolicyfactoryError as error:
            if self.by != "file" or str(error).startswith(f"{self.file}: "):
                raise
            raise self.error(path, str(error)) from None

    def example(self, key: str, *words: str) -> str:
        """Return a list of words in the form in which the content was written."""
        if self.by == "command":
            return f"{label(key, self.by)} {','.join(words)}"
        return f"{key}{'=' if self.by == 'call' else ' = '}{json.dumps(words)}"

    def _reason(self, error: ErrorDetails) -> str:
        """Return why a value cannot be used, and the cure."""
        path, given = error["loc"], error["input"]
        context: dict[str, Any] = error.get("ctx", {})
        match error["type"]:
            case "policyfactory":
                return str(context["error"])
            case "extra_forbidden":
                return unknown_key(str(path[-1]), _kind(self.kind, path[:-1])[0].model_fields)
            case "missing":
                return f"is missing; write {self._expected(path)}"
            case "literal_error":
                return f"is none of {', '.join(typing.get_args(_kind(self.kind, path)[0]))}; write one of them"
            case "greater_than_equal" | "less_than_equal":
                return f"is out of range; write {self._expected(path)}"
            case "finite_number":
                return "is not finite; write a number"
            case "string_too_long":
                return f"has {len(given):,} characters; write at most {context['max_length']:,}"
            case "too_long":
                return f"has {len(given):,} entries; write at most {context['max_length']:,}"
        if isinstance(path[-1], int) and isinstance(_value(self.content, path[:-1]), Sequence):
            return f"holds {_shown(given)}, which is {_type(given)}; write {self._expected(path[:-1])}"
        return f"is {_type(given)}; write {self._expected(path)}"

    def _expected(self, path: Path) -> str:
        """Return what must be written at ``path``."""
        kind, metadata = _kind(self.kind, path)
        kind_text = next((entry.kind for entry in metadata if isinstance(entry, Key)), "")
        if kind_text:
            return kind_text
        if kind in {int, float}:
            return f"a {'whole ' if kind is int else ''}number{span(metadata)}"
        if kind in {str, bool}:
            return "a text in quotes" if kind is str else "true or false"
        if isinstance(kind, type) and not issubclass(kind, OptionTable):
            return "a text in quotes"
        if typing.get_origin(kind) is not tuple:
            return f"a table, for example [{_dotted(path)}]"
        of, _ = plain_type(typing.get_args(kind)[0])
        examples = {str: 'texts, for example ["FCFS", "SPF"]', int: "whole numbers, for example [1, 8]"}
        return f"a list of {examples.get(of, f'tables, for example [[{_dotted(path)}]]')}"


def label(name: str, by: str) -> str:
    """Return how an option is called in a message: ``--name`` to who typed a command."""
    return f"--{name.replace('_', '-')}" if by == "command" else name


# Where. ---------------------------------------------------------------------------------------------------------------


def _split(path: Path) -> tuple[Path, str]:
    """Return the tables that a key is in, and the key: of an entry of a list, that of the list."""
    last = max(index for index, part in enumerate(path) if isinstance(part, str))
    return path[:last], str(path[last])


def _value(content: Any, path: Path) -> Any:
    for part in path:
        if isinstance(content, Mapping):
            content = content if isinstance(part, int) else content.get(part, _ABSENT)
        elif isinstance(content, Sequence) and isinstance(part, int):
            content = content[part]
    return content


def _heading(tables: Path, content: Mapping[str, Any]) -> str:
    """Return the heading of a table, as in the file; an entry of a list with its name or number."""
    if not tables:
        return ""
    name = _dotted(tables)
    entry = _value(content, tables)
    if not isinstance(tables[-1], int) or not isinstance(_value(content, tables[:-1]), Sequence):
        return f"[{name}]"
    called = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), None)
    return f"[[{name}]] {tables[-1] + 1 if called is None else _shown(called)}"


def _dotted(path: Path) -> str:
    return ".".join(_visible(part) for part in path if isinstance(part, str))


def _kind(kind: Any, path: Path) -> tuple[Any, list[Any]]:
    """Return the declared type of what stands at ``path`` in a table, and what else is declared of it."""
    metadata: list[Any] = []
    for part in path:
        kind, _ = plain_type(kind)
        if isinstance(kind, type) and issubclass(kind, OptionTable):
            field = kind.model_fields[str(part)]
            kind, metadata = field.annotation, [*field.metadata, key_of(field)]
        else:
            kind, metadata = typing.get_args(kind)[0 if isinstance(part, int) else 1], []
    kind, more = plain_type(kind)
    return kind, [*metadata, *more]


def _option_name(table: type[OptionTable], path: Path, key: str) -> str:
    _, metadata = _kind(table, path)
    return next((option.name for option in metadata if isinstance(option, Option) and option.name), key)


# Words. ---------------------------------------------------------------------------------------------------------------


def span(metadata: Sequence[Any], most: float = 1e299) -> str:
    """Return the limits of a number in words; nothing if it has none, or none that people may meet (``most``)."""
    limits = [
        getattr(limit, name) for name in ("ge", "le") for limit in metadata if getattr(limit, name, None) is not None
    ]
    return " of {:,} to {:,}".format(*limits) if len(limits) == 2 and max(map(abs, limits)) <= most else ""


def _type(value: Any) -> str:
    return "a table" if isinstance(value, Mapping) else _TYPES.get(type(value), f"a {type(value).__name__}")


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
