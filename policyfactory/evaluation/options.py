"""Every option of an evaluation, declared once: its type, its default, its limits and what it means.

The tables of a protocol (TOML) are these classes; the options of ``policyfactory evaluate`` and ``tune``, the keywords
of ``policyfactory.evaluate`` and the tables of docs/protocols.md are made from them; `written` puts what
pydantic says of a wrong value into words.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from policyfactory.core.errors import PolicyfactoryError, UsageError
from policyfactory.core.options import Key, Option
from policyfactory.core.text import WEEK, format_duration, parse_duration
from policyfactory.evaluation.analyses import ANALYSES, make_analysis
from policyfactory.simulation.rules import Backfill, Compatibility, DecideBy, Overrun, Ties
from policyfactory.simulation.tuning.strategies import Feedback
from policyfactory.statistics.intervals import Statistic
from policyfactory.workload.jobs import Workload
from policyfactory.workload.machine import parse_assumptions
from policyfactory.workload.presets import ASSUME_HELP, MISSING_HELP, EstimateMissing, find_preset
from policyfactory.workload.resample import DrawFrom, parse_length
from policyfactory.workload.sensitivity import EstimateRule, parse_estimates
from policyfactory.workload.windows import WindowSpec, parse_windows

MAX_CASES = 100_000
IF_KNOWN = "if-known"  # the recorded schedule is shown where every case has it

_MAX_TEXT = 20_000
_MAX_ENTRIES = 1_000
_LARGEST = 1e300
_LONGEST_PERIOD = 200_000 * WEEK
_TIMES_LONGEST = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*x\s*longest\s*request", re.IGNORECASE)


# What is said of a key. -----------------------------------------------------------------------------------------------


def key(default: Any, text: str, page: str = "", *, kind: str = "", stated: str = "", **limits: Any) -> Any:
    """Declare a key of a table: its default (``...`` where it must be given), what it means (`Key`), and its limits."""
    return Field(default, json_schema_extra=_extra(Key(text, page, kind, stated)), **limits)


def option(default: Any, text: str, page: str = "", **more: Any) -> Any:
    """Declare a key that is also an option; ``more`` are the further fields of `Option`."""
    return Field(default, json_schema_extra=_extra(Option(text, page, **more)))


def _extra(key: Key) -> Any:
    return {"key": key}


def key_of(field: FieldInfo) -> Key:
    """Return what is said of a key."""
    extra: Any = field.json_schema_extra
    declared: Key = extra["key"]
    return declared


# Types. ---------------------------------------------------------------------------------------------------------------


def _refusing(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``parse`` with our errors as pydantic's, which know the place; the error itself goes along."""

    def checked(value: Any) -> Any:
        try:
            return parse(value)
        except PolicyfactoryError as error:
            raise PydanticCustomError("policyfactory", "{error}", {"error": error}) from None

    return checked


def _of_text(parse: Callable[[str], Any]) -> BeforeValidator:
    """Return what makes a value of its text; a value that was made already is left alone."""

    def parsed(value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, bool | int | float | list | dict):
            raise PydanticCustomError("string_type", "no text")
        return value

    return BeforeValidator(_refusing(parsed))


def _windows(text: str) -> WindowSpec:
    windows = parse_windows(text)
    if (windows.count or 0) > MAX_CASES:
        raise UsageError(f"ask for at most {MAX_CASES:,}")
    return windows


def _longest_request(text: str) -> int:
    seconds = parse_duration(text)
    if seconds == float("inf"):
        raise UsageError('the model needs a longest request; write for example "18h"')
    return int(seconds)


def _period(text: str) -> str:
    if not parse_duration(text) <= _LONGEST_PERIOD:
        raise UsageError("is no length of a period; give a duration, for example 1d or 1w")
    return text


@dataclasses.dataclass(frozen=True, slots=True)
class LeadIn:
    """The beginning of a log, which is simulated but not measured.

    Parameters
    ----------
    seconds : int or None
        How long it lasts.
    jobs : int or None
        Or how many jobs it has.
    """

    seconds: int | None
    jobs: int | None = None

    def __str__(self) -> str:
        return f"{self.jobs}jobs" if self.seconds is None else format_duration(self.seconds)

    def rows(self, workload: Workload) -> int:
        """Return how many jobs it has in a workload."""
        if self.seconds is None:
            return self.jobs or 0
        submit = workload.submit
        return int(np.searchsorted(submit, submit[0] + self.seconds * workload.ticks)) if len(submit) else 0


def parse_lead_in(text: str) -> LeadIn:
    """Return the lead-in of a duration, or of a number of jobs: ``30d``, ``5000jobs``.

    Raises
    ------
    UsageError
        If it is neither.
    """
    count, found, rest = text.strip().lower().partition("jobs")
    if found:
        if not count.strip().isdecimal() or rest:
            raise UsageError("is no number of jobs; write for example 5000jobs")
        return LeadIn(None, int(count))
    seconds = parse_duration(text, unit=True)
    if not math.isfinite(seconds):
        raise UsageError("a lead-in ends; write for example 30d or 5000jobs")
    return LeadIn(int(seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """A waiting time after which jobs go first.

    Parameters
    ----------
    seconds : float or None
        The time itself.
    times_longest : float or None
        Or a multiple of the longest request of each log.
    """

    seconds: float | None
    times_longest: float | None = None


def parse_threshold(text: str) -> Threshold:
    """Return the threshold of a duration, or of ``3x longest request``.

    Raises
    ------
    UsageError
        If the text is neither.
    """
    times = _TIMES_LONGEST.fullmatch(text.strip())
    return Threshold(None, float(times.group(1))) if times else Threshold(parse_duration(text, unit=True))


def parse_share(text: str) -> float:
    """Return the share that ``2%`` or ``0.02`` is.

    Raises
    ------
    UsageError
        If the text is no share between 0 and 1.
    """
    clean = text.strip()
    try:
        share = float(clean.removesuffix("%")) / (100 if clean.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"precision {text!r} is no share; write for example 2% or 0.02") from None
    if not 0 < share < 1:
        raise UsageError(f"precision {text!r} is not between 0 and 1; write for example 2%")
    return share


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UsageError(f"names {name[:60]} twice; name it once")
    return names


def _recorded(value: Any) -> bool | str:
    if isinstance(value, bool) or value == IF_KNOWN:
        known: bool | str = value
        return known
    raise UsageError(f'write true, false, or "{IF_KNOWN}" (where every job has a recorded start)')


def _analysis(value: Any) -> Any:
    """Return the analysis of a name, or of a table with a name and options."""
    options = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise UsageError(f'write a list of names or of tables {{ name = "..." }}; there are {", ".join(ANALYSES)}')
    return make_analysis(name, **options)


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UsageError("is no SHA-256; write its 64 hexadecimal digits in lower case")
    return text


def _file_name(value: Any, check: Callable[[Any], str]) -> str:
    if isinstance(value, str):
        check(value.encode(errors="replace").decode())
        return value
    return check(value)


def _in_list(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


Entry = TypeVar("Entry")
Listed = Annotated[tuple[Entry, ...], Field(strict=False, max_length=_MAX_ENTRIES)]
OneOrMore = Annotated[Listed[Entry], BeforeValidator(_in_list)]

Text = Annotated[str, Field(max_length=_MAX_TEXT)]
# pydantic takes no text for one that is no UTF-8, as names of files may be.
FileName = Annotated[Text, WrapValidator(_file_name)]
Names = Annotated[Listed[Text], AfterValidator(_refusing(_once))]
Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Load = Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Cases = Annotated[int, Field(ge=1, le=MAX_CASES)]
Sha256 = Annotated[str, AfterValidator(_refusing(_sha256))]
ByLogAndPolicy = dict[str, dict[str, Entry]]

Assumed = Annotated[str, AfterValidator(_refusing(lambda text: ",".join(map(str, parse_assumptions(text)))))]
PresetName = Annotated[str, AfterValidator(_refusing(lambda name: find_preset(name).name))]
Period = Annotated[str, AfterValidator(_refusing(_period))]
LongestRequest = Annotated[int, _of_text(_longest_request)]
Windows = Annotated[WindowSpec, _of_text(_windows)]
Beginning = Annotated[LeadIn, _of_text(parse_lead_in)]
Length = Annotated[int | None, _of_text(parse_length)]
Estimates = Annotated[EstimateRule, _of_text(parse_estimates)]
Waiting = Annotated[Threshold, _of_text(parse_threshold)]
Precise = Annotated[float, _of_text(parse_share)]
Recorded = Annotated[bool | Literal["if-known"], PlainValidator(_refusing(_recorded))]
AnalysisOf = Annotated[Any, PlainValidator(_refusing(_analysis))]


class OptionTable(BaseModel):
    """A table of a protocol: no other keys, no conversion between types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


# Names are statistic and value, as median_wait: `policyfactory.simulation.metrics` composes them.
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
        "default", "the filter that cleans the log", "workloads.md", flags=("--preset", "--clean"), metavar="NAME"
    )
    machine: Annotated[int, Field(ge=1, le=2**31)] | None = option(
        None, "processors of the machine, where the log does not say", name="processors"
    )
    force_machine: bool = option(
        False, "use that size also where the log's header has another", name="force_processors"
    )
    estimate_missing: EstimateMissing = option(
        "error",
        MISSING_HELP,
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
        metavar="TIME",
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
        None,
        "length of a drawn log: `2y`, `26w`, or `log` for as long as the log",
        kind="a length",
        stated="log",
        metavar="TIME",
    )
    draw: DrawFrom = option(
        "log", "a user's weeks are drawn from all weeks of the log (`log`), or from those of the user's jobs (`active`)"
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
    logs: Names | None = key(None, "names of logs", stated="all")
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
        metavar="TIME|JOBS",
    )
    resample: ResampleTable | None = key(None, "or what is drawn from it", "workloads.md#resampled-logs")
    skip: dict[str, Listed[int]] = key({}, "numbers of windows that are left out: `{ curie = [1, 8] }`")
    load: Load = option(
        1.0,
        "the times between arrivals are divided by this: 1.1 is 10 % more load",
        kind="a number of 0.01 to 100",
    )
    estimates: Estimates = option(
        EstimateRule(), "requested times: `user`, `exact`, `noisy:0.2` (up to 20 % more), `tsafrir`", stated="user"
    )
    policies: Listed[FileName] = option(
        (),
        "names of the catalogue or `formulas`, model files (beside the protocol or in the current folder); the first "
        "is the baseline",
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
        DEFAULT_METRICS,
        "metrics, or `all`; the first decides who wins",
        flags=("--metric",),
        metavar="NAME",
        stated=f"{', '.join(DEFAULT_METRICS)}; with preemption also preempted, lost_node_hours",
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
        metavar="NAME",
    )
    rules: RulesTable = key(RulesTable(), "the scheduler", "simulator.md")
    reference: OneOrMore[ReferenceTable] = key((), "published values", kind="table, or list of tables")


class ClaimTable(OptionTable):
    """A sentence of a paper that policies can be tested on: every one of ``better`` against every one of ``than``."""

    text: Text = key(..., "the sentence, in your own words")
    better: Names = key(..., "names of policies that shall be better")
    than: Names = key(..., "than these")
    metric: Text = key(..., "one that each of its experiments measures")
    experiments: Names = key((), "where it is judged", stated="all")
    logs: Names = key((), "on which logs", stated="all")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs, (better, than)."""
        return [(policy, other) for policy in self.better for other in self.than]


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


# The options of commands, of calls ------------------------------------------------------------------------------------


def plain_type(kind: Any) -> tuple[Any, list[Any]]:
    """Return a type without ``None`` and without annotations, and these."""
    metadata: list[Any] = []
    while True:
        origin, of = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            kind = of[0]
            for entry in of[1:]:
                metadata += entry.metadata if isinstance(entry, FieldInfo) else [entry]
        elif origin in {types.UnionType, typing.Union} and type(None) in of and len(of) == 2:
            kind = next(member for member in of if member is not type(None))
        else:
            return kind, metadata


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
        return str if any(isinstance(entry, BeforeValidator) for entry in [*metadata, *self.field.metadata]) else kind

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
