"""Every option of an evaluation, declared once: its type, its default, its limits and what it means.

The tables of a protocol (TOML) are these classes; the options of ``policyfactory evaluate`` and ``tune``, the keywords
of ``policyfactory.evaluate`` and the tables of docs/protocols.md are made from them. `checking` puts what pydantic says
of a wrong value into words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from policyfactory.core.errors import InputError, PolicyfactoryError, UsageError
from policyfactory.core.options import check_names
from policyfactory.core.text import duration_text
from policyfactory.evaluate.declare import (
    IF_KNOWN,
    AnalysisOf,
    Assumed,
    Beginning,
    ByLogAndPolicy,
    Cases,
    Estimates,
    FileName,
    Key,
    Length,
    Listed,
    Load,
    LongestRequest,
    Names,
    Number,
    OneOrMore,
    Option,
    OptionTable,
    Period,
    Precise,
    PresetName,
    Recorded,
    Seed,
    Sha256,
    Share,
    Text,
    Waiting,
    Windows,
    key,
    key_of,
    option,
)
from policyfactory.simulate.rules import Backfill, Compatibility, DecideBy, Overrun, Ties
from policyfactory.simulate.tuning.strategies import Feedback
from policyfactory.statistics.intervals import Statistic
from policyfactory.workload.presets import ASSUME_HELP, MISSING_HELP, EstimateMissing
from policyfactory.workload.resample import DrawFrom
from policyfactory.workload.sensitivity import EstimateRule

__all__ = [
    "DEFAULT_MAX_RESAMPLES",
    "DEFAULT_METRICS",
    "OPTIONS",
    "PLAIN_NAME",
    "RUN_OPTIONS",
    "TUNER_OPTIONS",
    "By",
    "ClaimTable",
    "Declared",
    "ExperimentTable",
    "LogTable",
    "LublinTable",
    "Path",
    "PrecisionOptions",
    "ProtocolTable",
    "ReferenceTable",
    "ResampleTable",
    "RulesTable",
    "TsafrirTable",
    "TunerTable",
    "WrittenOptions",
    "label",
    "of_logs",
    "plain_content",
    "plain_type",
    "span",
]

DEFAULT_METRICS = ("mean_bsld", "mean_wait", "p95_wait", "max_wait", "utilisation")
DEFAULT_MAX_RESAMPLES = 1_000
DEFAULT_POLICIES = ["FCFS", "SPF", "SAF", "WFP3", "UNICEF", "F1"]  # of plain logs
DEFAULT_ANALYSES = ["groups", "fairness", "starvation", "load", "gantt"]  # of plain logs, for a report

Stream = Literal["numpy", "drand48"]


# Logs. ----------------------------------------------------------------------------------------------------------------


class LublinTable(OptionTable):
    """Jobs of the Lublin-Feitelson model; see `policyfactory.workload.models.lublin.generate_lublin`."""

    processors: int = key(..., "processors of the machine", ge=1, le=2**30)
    jobs: int = key(..., "how many jobs", ge=1, le=10_000_000)
    seed: Seed = key(..., "seed of the model")
    stream: Stream = key("numpy", "where random numbers come from")
    typed: bool = key(False, "interactive and batch jobs apart")
    load: Number | None = key(None, "offered load", stated="the model's")
    uhi: Number | None = key(None, "log2 of the largest job", stated="the machine's")
    umed: Number | None = key(None, "log2 of the size where the distribution bends", stated="the model's")
    ulow: Number | None = key(None, "log2 of the smallest parallel job", stated="the model's")
    uprob: Number | None = key(None, "share of jobs below the bend", stated="the model's")


class TsafrirTable(OptionTable):
    """Requested times of the Tsafrir model; see `policyfactory.workload.models.tsafrir.tsafrir_estimates`."""

    seed: Seed = key(..., "seed of the model")
    max_estimate: LongestRequest = key(64_800, "the longest request", kind="a duration", stated="18h")
    stream: Stream = key("numpy", "where random numbers come from")


class LogTable(OptionTable):
    """Where the jobs of a log are from, and how they are cleaned."""

    file: FileName | None = key(None, "a log in the Standard Workload Format")
    sha256: Sha256 | None = key(
        None, "digest that the file must have; another version of the log is refused", kind="64 hexadecimal digits"
    )
    preset: PresetName = option(
        "default", "the filter that cleans the log", "workloads.md", flags=("--preset", "--clean")
    )
    machine: Annotated[int, Field(ge=1, le=2**31)] | None = option(
        None, "processors of the machine, where the log does not say", name="processors"
    )
    force_machine: bool = option(
        False, "use that size also where the log's header has another", name="force_processors"
    )
    estimate_missing: EstimateMissing = option(
        "error",
        MISSING_HELP[0].lower() + MISSING_HELP[1:-1],
        "workloads.md#clean-it",
    )
    assume: Assumed | None = option(
        None,
        ASSUME_HELP[0].lower() + ASSUME_HELP[1:-1],
        "policies.md#nodes-memory-and-gpus",
        kind="assumptions separated by commas",
        stated="nothing",
        metavar="TERMS",
    )
    predictions: FileName | None = option(
        None,
        "CSV with the columns `job_id` and `prediction` (s), for decisions by prediction (with which it must be given)",
        metavar="FILE",
    )
    lublin: LublinTable | None = key(
        None, "jobs of the Lublin-Feitelson model instead of a file", "workloads.md#workload-models"
    )
    tsafrir: TsafrirTable | None = key(None, "requested times of the Tsafrir model", "workloads.md#workload-models")
    embedded: bool = key(False, "the workload that is used where no log is given")


# Experiments. ---------------------------------------------------------------------------------------------------------


class RulesTable(OptionTable):
    """The rules of the scheduler."""

    backfill: Backfill | None = option(
        None,
        "which jobs may overtake",
        "simulator.md#slurms-own-rules",
        stated="easy; with a site slurm",
    )
    site: FileName | None = option(
        None,
        "site file of the cluster whose Slurm is simulated",
        "site.md",
        stated="with slurm, what is assumed of the log",
        metavar="FILE",
    )
    decide_by: DecideBy = option("request", "run times that policy and reservations use")
    threshold: Waiting | None = option(
        None,
        "jobs that have waited longer go first, for example `20h` or `3x longest request` (of each log, after "
        "cleaning); `inf`: the policy's own",
        kind='a duration ("40h") or a multiple of the longest request ("3x longest request")',
        stated="inf",
    )
    ties: Ties = option("fifo", "which of two jobs with equal score goes first")
    overrun: Overrun = option("run", "a job at its requested time runs on or is killed")
    backfill_policy: FileName | None = option(
        None,
        "the policy by which jobs are tried for backfilling",
        stated="the queue's order",
        name="backfill_order",
        metavar="POLICY",
    )
    compatibility: Compatibility = option(
        "none", "rules of another simulator, where they differ from ours", "simulator.md"
    )


class ResampleTable(OptionTable):
    """How many logs are drawn from each log, and how."""

    count: Cases = option(..., "draw so many new logs from each log", "workloads.md#resampled-logs", name="resamples")
    length: Length = option(
        None, "length of a drawn log: `2y`, `26w`, or `log` for as long as the log", kind="a length", stated="log"
    )
    draw: DrawFrom = option(
        "log", "a user's weeks are drawn from all weeks of the log, or from those in which the user was active"
    )


class TunerTable(OptionTable):
    """A policy that chooses among the others as it goes."""

    name: Text | None = key(None, "its name", stated="feedback and period")
    feedback: Feedback = key("simulate", "what is known of the past")
    period: Period = key("1w", "how long a policy stays", kind="a duration")
    epsilon: Share = option(0.1, "for `bandit`: share of the periods given to a policy drawn at random")
    discount: Share = option(1.0, "weight of a period relative to the next one: 1 forgets nothing")
    noise: Share = option(0.2, "for `noisy`: the simulated waits are off by up to this share")
    policies: Names | None = key(None, "names of those it chooses from", stated="all")


class ReferenceTable(OptionTable):
    """Published values, shown beside ours."""

    source: Text = key(..., "where they are printed: `table 4`")
    metric: Text = key(..., "one of the experiment's metrics")
    statistic: Statistic = key("median", "what they are; `ratio` in %")
    digits: int = key(2, "decimals that are printed; negative for tens (-1), hundreds (-2)", ge=-9, le=9)
    cut: bool = key(False, "further decimals were cut off, not rounded")
    significant: Annotated[int, Field(ge=1, le=15)] | None = key(
        None, "no number has more significant figures than this", stated="no bound"
    )
    rounded_first: Annotated[int, Field(ge=0, le=9)] | None = key(
        None, "decimals to which a number was rounded before it was rounded to those that are printed", stated="none"
    )
    values: ByLogAndPolicy[Number] = key(..., "by log and policy: `values.kth = { FCFS = 299.83 }`")
    first: Cases | None = key(None, "only so many of the first cases of a log", stated="all")
    drop: ByLogAndPolicy[Seed] = key(
        {}, "how many of a policy's largest values the paper left out: `drop.kth = { FCFS = 1 }`"
    )


class ExperimentTable(OptionTable):
    """What is simulated, and what is asked of it."""

    name: Text = key(..., "stem of its folder, as that of the protocol")
    title: Text = key("", "heading", stated="the name")
    logs: Names = key((), "names of logs", stated="all")
    windows: Windows | None = option(
        None,
        "how each log is cut: `10x15d`, `15d`, `10x5000jobs`, `sc17:10x15d`, `rlscheduler:10x1024jobs:1`; without it "
        "the whole log is one case",
        metavar="NxLENGTH",
    )
    lead_in: Beginning | None = option(
        None,
        "the beginning of each log that is simulated but not measured: `30d`, `5000jobs`; for whole logs",
        "evaluate.md#whole-logs",
        kind='a duration ("30d") or a number of jobs ("5000jobs")',
        stated="none",
    )
    resample: ResampleTable | None = key(None, "or what is drawn from it", "workloads.md#resampled-logs")
    skip: dict[str, Listed[int]] = key({}, "numbers of windows that are left out: `{ curie = [1, 8] }`")
    load: Load = option(
        1.0,
        "the times between arrivals are divided by this: 1.1 is 10 % more load",
        kind="a number of 0.01 to 100 (1.1 brings 10 % more load)",
    )
    estimates: Estimates = option(
        EstimateRule(), "requested times: `user`, `exact`, `noisy:0.2` (up to 20 % more), `tsafrir`", stated="user"
    )
    policies: Listed[FileName] = option(
        (),
        "names of the catalogue, model files (beside the protocol or in the current folder), or names of "
        "`formulas`; the first is the baseline",
        metavar="NAME,...",
        plain=DEFAULT_POLICIES,
    )
    formulas: dict[str, Text] = option(
        {},
        "policies of your own, for example `MINE=p*q + 1e5*log10(r)`; those not named in `policies` come last",
        name="formula",
        metavar="NAME=EXPR",
    )
    tuners: Listed[TunerTable] = key((), "policies that choose among the others as they go", "tuning.md")
    metrics: Listed[Text] = option(
        DEFAULT_METRICS, "names of metrics, or `all`; the first decides who wins", flags=("--metric",), metavar="NAME"
    )
    statistic: Statistic = option(
        "median", "what stands for a policy: the median or mean over the cases, or the ratio of sums", "statistics.md"
    )
    recorded: Recorded = option(
        False,
        "show the recorded schedule beside the policies; `if-known`: only where every job of every case has a "
        "recorded start",
        "evaluate.md#the-recorded-schedule",
        kind="true, false or text",
        plain=IF_KNOWN,
    )
    analyses: Listed[AnalysisOf] = option(
        (),
        'looks beyond the metrics, by name; in a protocol also as `{ name = "gantt", ... }` with options',
        kind="list",
        stated=f"none; of plain logs, with a report, {', '.join(DEFAULT_ANALYSES)}",
        plain=DEFAULT_ANALYSES,
    )
    rules: RulesTable = key(RulesTable(), "the scheduler", "simulator.md")
    reference: OneOrMore[ReferenceTable] = key((), "published values", kind="table, or list of tables")


class ClaimTable(OptionTable):
    """A sentence of a paper that policies can be tested on."""

    text: Text = key(..., "the sentence, in your own words")
    better: Names = key(..., "names of policies that shall be better")
    than: Names = key(..., "than these")
    metric: Text = key(..., "one that each of its experiments measures")
    experiments: Names = key((), "where it is judged", stated="all")
    logs: Names = key((), "on which logs", stated="all")


class ProtocolTable(OptionTable):
    """A whole protocol."""

    schema_version: int = key(..., "1", ge=0)
    name: Text | None = key(None, "stem of files: at most 60 lower-case letters, digits, `-`, `_`", stated="the file's")
    title: Text = key("", "heading of the report", stated="the name")
    source: Text = key("", "the paper, as a citation")
    about: Text = key("", "what is done, in paragraphs (a blank line between two)")
    seed: Seed = option(0, "seed of everything random: resampled logs, requests, tuners, bootstrap", stated="0")
    logs: Annotated[dict[str, LogTable], Field(max_length=1_000)] = key({}, "the logs, by the names that are shown")
    experiments: Listed[ExperimentTable] = key((), "the experiments")
    claims: Listed[ClaimTable] = key((), "what the paper concludes")


class PrecisionOptions(OptionTable):
    """How narrow the intervals shall be; an option of the run, not of the protocol."""

    precision: Precise | None = option(
        None,
        "draw more resampled logs until each interval has at most this half-width, relative to the baseline: `2%`",
        "evaluate.md#narrower-intervals",
        metavar="SHARE",
    )
    max_resamples: Cases = option(DEFAULT_MAX_RESAMPLES, "with a precision, no more resampled logs than this for a log")


# The protocol that options make for plain logs ------------------------------------------------------------------------

# Those of a command, or the keywords of a call.


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


# Checking what somebody wrote against the declared options ------------------------------------------------------------

# Checking what somebody wrote against the declared options, and naming file, table and key of what is wrong.


T = TypeVar("T", bound=OptionTable)

# Where something stands: names of tables and keys, and numbers of entries of lists from 0.
Path: TypeAlias = tuple[str | int, ...]

_SHOWN = 60
_LONGEST_REASON = 1500
_NAMES = ("name", "text", "source")  # what an entry of a list of tables is called by
_TYPES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number", list: "a list"}
_ABSENT: Any = object()


class WrittenOptions(Generic[T]):
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
        place = _place(tables, self.content)
        return InputError(f"{self.file}: {f'{place} ' if place else ''}{_visible(key)}{shown}: {reason}")

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
                return self._unknown(path)
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

    def _unknown(self, path: Path) -> str:
        table, _ = _kind(self.kind, path[:-1])
        near = difflib.get_close_matches(str(path[-1]), table.model_fields, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"is no key of this table; {hint}it has {', '.join(table.model_fields)}"

    def _expected(self, path: Path) -> str:
        """Return what must be written at ``path``."""
        kind, metadata = _kind(self.kind, path)
        said = next((one.kind for one in metadata if isinstance(one, Key)), "")
        if said:
            return said
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
    last = max(at for at, part in enumerate(path) if isinstance(part, str))
    return path[:last], str(path[last])


def _value(content: Any, path: Path) -> Any:
    for part in path:
        if isinstance(content, Mapping):
            content = content if isinstance(part, int) else content.get(part, _ABSENT)
        elif isinstance(content, Sequence) and isinstance(part, int):
            content = content[part]
    return content


def _place(tables: Path, content: Mapping[str, Any]) -> str:
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


def plain_type(kind: Any) -> tuple[Any, list[Any]]:
    """Return a type without ``None`` and without annotations, and these."""
    metadata: list[Any] = []
    while True:
        origin, of = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            kind = of[0]
            for one in of[1:]:
                metadata += one.metadata if isinstance(one, FieldInfo) else [one]
        elif origin in {types.UnionType, typing.Union} and type(None) in of and len(of) == 2:
            kind = next(one for one in of if one is not type(None))
        else:
            return kind, metadata


def _option_name(table: type[OptionTable], path: Path, key: str) -> str:
    _, metadata = _kind(table, path)
    return next((one.name for one in metadata if isinstance(one, Option) and one.name), key)


# Words. ---------------------------------------------------------------------------------------------------------------


def span(metadata: Sequence[Any], most: float = 1e299) -> str:
    """Return the limits of a number in words; nothing if it has none, or none that people may meet (``most``)."""
    limits = [getattr(one, name) for name in ("ge", "le") for one in metadata if getattr(one, name, None) is not None]
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
