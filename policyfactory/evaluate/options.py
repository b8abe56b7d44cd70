"""Every option of an evaluation, declared once: its type, its default, its limits and what it means.

The tables of a protocol (TOML) are these classes; the options of ``policyfactory evaluate`` and ``tune``, the keywords
of ``policyfactory.evaluate`` and the tables of docs/protocols.md are made from them. `checking` puts what pydantic says
of a wrong value into words.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from policyfactory.evaluate.declare import (
    IF_KNOWN,
    AnalysisOf,
    ByLogAndPolicy,
    Cases,
    Estimates,
    Key,
    Length,
    Listed,
    Load,
    LongestRequest,
    Names,
    Number,
    OneOrMore,
    Option,
    Period,
    Precise,
    PresetName,
    Recorded,
    Seed,
    Sha256,
    Share,
    Table,
    Text,
    Waiting,
    Windows,
)
from policyfactory.simulate.rules import Backfill, Compatibility, DecideBy, Overrun, Ties
from policyfactory.statistics.intervals import Statistic
from policyfactory.tuning.strategies import Feedback
from policyfactory.workload.presets import EstimateMissing
from policyfactory.workload.resample import DrawFrom
from policyfactory.workload.sensitivity import EstimateRule

__all__ = [
    "DEFAULT_MAX_RESAMPLES",
    "DEFAULT_METRICS",
    "ClaimTable",
    "ExperimentTable",
    "LogTable",
    "LublinTable",
    "PrecisionOptions",
    "ProtocolTable",
    "ReferenceTable",
    "ResampleTable",
    "RulesTable",
    "TsafrirTable",
    "TunerTable",
]

DEFAULT_METRICS = ("mean_bsld", "mean_wait", "p95_wait", "max_wait", "utilisation")
DEFAULT_MAX_RESAMPLES = 1_000
DEFAULT_POLICIES = ["FCFS", "SPF", "SAF", "WFP3", "UNICEF", "F1"]  # of plain logs
DEFAULT_ANALYSES = ["groups", "fairness", "starvation", "load", "gantt"]  # of plain logs, for a report

Stream = Literal["numpy", "drand48"]


# Logs. ----------------------------------------------------------------------------------------------------------------


class LublinTable(Table):
    """Jobs of the Lublin-Feitelson model; see `policyfactory.workload.models.lublin.generate_lublin`."""

    processors: Annotated[int, Field(ge=1, le=2**30), Key("processors of the machine")]
    jobs: Annotated[int, Field(ge=1, le=10_000_000), Key("how many jobs")]
    seed: Annotated[Seed, Key("seed of the model")]
    stream: Annotated[Stream, Key("where random numbers come from")] = "numpy"
    typed: Annotated[bool, Key("interactive and batch jobs apart")] = False
    load: Annotated[Number | None, Key("offered load", default="the model's")] = None
    uhi: Annotated[Number | None, Key("log2 of the largest job", default="the machine's")] = None
    umed: Annotated[Number | None, Key("log2 of the size where the distribution bends", default="the model's")] = None
    ulow: Annotated[Number | None, Key("log2 of the smallest parallel job", default="the model's")] = None
    uprob: Annotated[Number | None, Key("share of jobs below the bend", default="the model's")] = None


class TsafrirTable(Table):
    """Requested times of the Tsafrir model; see `policyfactory.workload.models.tsafrir.tsafrir_estimates`."""

    seed: Annotated[Seed, Key("seed of the model")]
    max_estimate: Annotated[LongestRequest, Key("the longest request", kind="a duration", default="18h")] = 64_800
    stream: Annotated[Stream, Key("where random numbers come from")] = "numpy"


class LogTable(Table):
    """Where the jobs of a log are from, and how they are cleaned."""

    file: Annotated[Text | None, Key("a log in the Standard Workload Format")] = None
    sha256: Annotated[
        Sha256 | None,
        Key("digest that the file must have; another version of the log is refused", kind="64 hexadecimal digits"),
    ] = None
    preset: Annotated[
        PresetName,
        Option("the filter that cleans the log", "workloads.md", flags=("--preset", "--clean")),
    ] = "default"
    machine: Annotated[
        Annotated[int, Field(ge=1, le=2**31)] | None,
        Option("processors of the machine, where the log does not say", name="processors"),
    ] = None
    estimate_missing: Annotated[
        EstimateMissing,
        Option("jobs without a requested time are refused, get their run time as if known, or are left out"),
    ] = "error"
    predictions: Annotated[
        Text | None,
        Option(
            "CSV with the columns `job_id` and `prediction` (s); `decide_by` must be `prediction` then", metavar="FILE"
        ),
    ] = None
    lublin: Annotated[
        LublinTable | None, Key("jobs of the Lublin-Feitelson model instead of a file", "workload-models.md")
    ] = None
    tsafrir: Annotated[TsafrirTable | None, Key("requested times of the Tsafrir model", "workload-models.md")] = None
    embedded: Annotated[bool, Key("the workload that is used where no log is given")] = False


# Experiments. ---------------------------------------------------------------------------------------------------------


class RulesTable(Table):
    """The rules of the scheduler."""

    backfill: Annotated[Backfill, Option("which jobs may overtake")] = "easy"
    decide_by: Annotated[DecideBy, Option("run times that policy and reservations use")] = "request"
    threshold: Annotated[
        Waiting | None,
        Option(
            "jobs that have waited longer go first, for example `20h` or `3x longest request` (of each log, after "
            "cleaning); `inf`: the policy's own",
            kind='a duration ("40h") or a multiple of the longest request ("3x longest request")',
            default="inf",
        ),
    ] = None
    ties: Annotated[Ties, Option("which of two jobs with equal score goes first")] = "fifo"
    overrun: Annotated[Overrun, Option("a job at its requested time runs on or is killed")] = "run"
    backfill_policy: Annotated[
        Text | None,
        Option(
            "the policy by which jobs are tried for backfilling",
            default="the queue's order",
            name="backfill_order",
            metavar="POLICY",
        ),
    ] = None
    compatibility: Annotated[
        Compatibility, Option("rules of another simulator, where they differ from ours", "simulator.md")
    ] = "none"


class ResampleTable(Table):
    """How many logs are drawn from each log, and how."""

    count: Annotated[
        Cases,
        Option("draw so many new logs from each log", "resampling.md", name="resamples"),
    ]
    length: Annotated[
        Length,
        Option("length of a drawn log: `2y`, `26w`, or `log` for as long as the log", kind="a length", default="log"),
    ] = None
    draw: Annotated[
        DrawFrom,
        Option("a user's weeks are drawn from all weeks of the log, or from those in which the user was active"),
    ] = "log"


class TunerTable(Table):
    """A policy that chooses among the others as it goes."""

    name: Annotated[Text | None, Key("its name", default="feedback and period")] = None
    feedback: Annotated[Feedback, Key("what is known of the past")] = "simulate"
    period: Annotated[Period, Key("how long a policy stays", kind="a duration")] = "1w"
    epsilon: Annotated[Share, Option("for `bandit`: share of the periods given to a policy drawn at random")] = 0.1
    discount: Annotated[Share, Option("weight of a period relative to the next one: 1 forgets nothing")] = 1.0
    noise: Annotated[Share, Option("for `noisy`: the simulated waits are off by up to this share")] = 0.2
    policies: Annotated[Names | None, Key("names of those it chooses from", default="all")] = None


class ReferenceTable(Table):
    """Published values, shown beside ours."""

    source: Annotated[Text, Key("where they are printed: `table 4`")]
    metric: Annotated[Text, Key("one of the experiment's metrics")]
    statistic: Annotated[Statistic, Key("what they are; `ratio` in %")] = "median"
    digits: Annotated[
        int, Field(ge=-9, le=9), Key("decimals that are printed; negative for tens (-1), hundreds (-2)")
    ] = 2
    cut: Annotated[bool, Key("further decimals were cut off, not rounded")] = False
    values: Annotated[ByLogAndPolicy[Number], Key("by log and policy: `values.kth = { FCFS = 299.83 }`")]
    first: Annotated[Cases | None, Key("only so many of the first cases of a log", default="all")] = None
    drop: Annotated[
        ByLogAndPolicy[Seed],
        Key("how many of a policy's largest values the paper left out: `drop.kth = { FCFS = 1 }`"),
    ] = Field(default_factory=dict)


class ExperimentTable(Table):
    """What is simulated, and what is asked of it."""

    name: Annotated[Text, Key("stem of its folder, as that of the protocol")]
    title: Annotated[Text, Key("heading", default="the name")] = ""
    logs: Annotated[Names, Key("names of logs", default="all")] = ()
    windows: Annotated[
        Windows | None,
        Option(
            "how each log is cut: `10x15d`, `15d`, `10x5000jobs`, `sc17:10x15d`; without it the whole log is one case",
            metavar="NxLENGTH",
        ),
    ] = None
    resample: Annotated[ResampleTable | None, Key("or what is drawn from it", "resampling.md")] = None
    skip: Annotated[dict[str, Listed[int]], Key("numbers of windows that are left out: `{ curie = [1, 8] }`")] = Field(
        default_factory=dict
    )
    load: Annotated[
        Load,
        Option(
            "the times between arrivals are divided by this: 1.1 is 10 % more load",
            kind="a number of 0.01 to 100 (1.1 brings 10 % more load)",
        ),
    ] = 1.0
    estimates: Annotated[
        Estimates,
        Option("requested times: `user`, `exact`, `noisy:0.2` (up to 20 % more), `tsafrir`", default="user"),
    ] = EstimateRule()
    policies: Annotated[
        Listed[Text],
        Option(
            "names of the catalogue, model files (beside the protocol or in the current folder), or names of "
            "`formulas`; the first is the baseline",
            metavar="NAME,...",
            plain=DEFAULT_POLICIES,
        ),
    ] = ()
    formulas: Annotated[
        dict[str, Text],
        Option(
            "policies of your own, for example `MINE=p*q + 1e5*log10(r)`; those not named in `policies` come last",
            name="formula",
            metavar="NAME=EXPR",
        ),
    ] = Field(default_factory=dict)
    tuners: Annotated[
        Listed[TunerTable],
        Key("policies that choose among the others as they go", "tuning.md"),
    ] = ()
    metrics: Annotated[Listed[Text], Option("names of metrics, or `all`; the first decides who wins")] = DEFAULT_METRICS
    statistic: Annotated[
        Statistic,
        Option("what stands for a policy: the median or mean over the cases, or the ratio of sums", "statistics.md"),
    ] = "median"
    recorded: Annotated[
        Recorded,
        Option(
            "show the recorded schedule beside the policies; `if-known`: only where every job of every case has a "
            "recorded start",
            "evaluate.md#the-recorded-schedule",
            kind="true, false or text",
            plain=IF_KNOWN,
        ),
    ] = False
    analyses: Annotated[
        Listed[AnalysisOf],
        Option(
            'looks beyond the metrics, by name; in a protocol also as `{ name = "gantt", ... }` with options',
            kind="list",
            default=f"none; of plain logs, with a report, {','.join(DEFAULT_ANALYSES)}",
            plain=DEFAULT_ANALYSES,
        ),
    ] = ()
    rules: Annotated[RulesTable, Key("the scheduler", "simulator.md")] = RulesTable()
    reference: Annotated[
        OneOrMore[ReferenceTable],
        Key("published values", kind="table, or list of tables"),
    ] = ()


class ClaimTable(Table):
    """A sentence of a paper that policies can be tested on."""

    text: Annotated[Text, Key("the sentence, in your own words")]
    better: Annotated[Names, Key("names of policies that shall be better")]
    than: Annotated[Names, Key("than these")]
    metric: Annotated[Text, Key("one that each of its experiments measures")]
    experiments: Annotated[Names, Key("where it is judged", default="all")] = ()
    logs: Annotated[Names, Key("on which logs", default="all")] = ()


class ProtocolTable(Table):
    """A whole protocol."""

    schema_version: Annotated[int, Field(ge=0), Key("1")]
    name: Annotated[
        Text | None, Key("stem of files: at most 60 lower-case letters, digits, `-`, `_`", default="the file's")
    ] = None
    title: Annotated[Text, Key("heading of the report", default="the name")] = ""
    source: Annotated[Text, Key("the paper, as a citation")] = ""
    about: Annotated[Text, Key("what is done, in paragraphs (a blank line between two)")] = ""
    seed: Annotated[
        Seed, Option("seed of everything random: resampled logs, requests, tuners, bootstrap", default="0")
    ] = 0
    logs: Annotated[
        Annotated[dict[str, LogTable], Field(max_length=1_000)], Key("the logs, by the names that are shown")
    ] = Field(default_factory=dict)
    experiments: Annotated[Listed[ExperimentTable], Key("the experiments")] = ()
    claims: Annotated[Listed[ClaimTable], Key("what the paper concludes")] = ()


class PrecisionOptions(Table):
    """How narrow the intervals shall be; an option of the run, not of the protocol."""

    precision: Annotated[
        Precise | None,
        Option(
            "draw more resampled logs until each interval has at most this half-width, relative to the baseline: `2%`",
            "evaluate.md#narrower-intervals",
            metavar="SHARE",
        ),
    ] = None
    max_resamples: Annotated[Cases, Option("with a precision, no more resampled logs than this for a log")] = (
        DEFAULT_MAX_RESAMPLES
    )
