"""The protocol that options make for plain logs: those of a command, or the keywords of a call."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_names
from policyfactory.core.units import duration_text
from policyfactory.evaluate.checking import label, plain_type
from policyfactory.evaluate.declare import Option, OptionTable, key_of
from policyfactory.evaluate.options import (
    ExperimentTable,
    LogTable,
    PrecisionOptions,
    ProtocolTable,
    ResampleTable,
    RulesTable,
    TunerTable,
)

__all__ = ["OPTIONS", "PLAIN_NAME", "RUN_OPTIONS", "TUNER_OPTIONS", "By", "Declared", "of_logs", "plain_content"]

By: TypeAlias = Literal["command", "call"]
PLAIN_NAME = "evaluation"


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """An option, and where it is declared.

    Parameters
    ----------
    name : str
        Its name on the command line (with ``_``) and in a call.
    table : type of OptionTable
        The table that it belongs to.
    key : str
        Its key there.
    field : FieldInfo
        Type, default and limits.
    option : Option
        What is said of it.
    """

    name: str
    table: type[OptionTable]
    key: str
    field: FieldInfo
    option: Option

    @property
    def kind(self) -> Any:
        """The type of what is given: a text where the value is made of one."""
        kind, metadata = plain_type(self.field.annotation)
        return str if any(isinstance(one, BeforeValidator) for one in [*metadata, *self.field.metadata]) else kind

    @property
    def default(self) -> Any:
        """What holds for plain logs if it is not given, as it is written; None: nothing is written."""
        if self.option.plain is not None:
            return self.option.plain
        default = None if self.field.is_required() else self.field.get_default(call_default_factory=True)
        if isinstance(default, tuple):
            return list(default) or None
        return default if isinstance(default, bool | int | float | str) else None if not default else str(default)


def _declared(*tables: type[OptionTable]) -> dict[str, Declared]:
    return {
        declared.name: declared
        for table in tables
        for key, field in table.model_fields.items()
        if isinstance(option := key_of(field), Option)
        for declared in [Declared(option.name or key, table, key, field, option)]
    }


OPTIONS = _declared(ExperimentTable, RulesTable, ResampleTable, LogTable, ProtocolTable)
RUN_OPTIONS = _declared(PrecisionOptions)
TUNER_OPTIONS = _declared(TunerTable)


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
