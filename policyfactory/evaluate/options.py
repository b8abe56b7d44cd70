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
    Assumed,
    Beginning,
    ByLogAndPolicy,
    Cases,
    Estimates,
    FileName,
    Length,
    Listed,
    Load,
    LongestRequest,
    Names,
    Number,
    OneOrMore,
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
    lublin: LublinTable | None = key(None, "jobs of the Lublin-Feitelson model instead of a file", "workload-models.md")
    tsafrir: TsafrirTable | None = key(None, "requested times of the Tsafrir model", "workload-models.md")
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

    count: Cases = option(..., "draw so many new logs from each log", "resampling.md", name="resamples")
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
    resample: ResampleTable | None = key(None, "or what is drawn from it", "resampling.md")
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
