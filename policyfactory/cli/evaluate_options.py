"""The options of ``policyfactory evaluate``, and the protocol that they make for a plain log."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.core.errors import UsageError
from policyfactory.core.units import parse_duration

__all__ = ["PLAIN_NAME", "Plain", "plain_content"]

PLAIN_NAME = "evaluation"
DEFAULT_POLICIES = "FCFS,SPF,SAF,WFP3,UNICEF,F1"
DEFAULT_METRICS = "mean_bsld,mean_wait,p95_wait,max_wait,utilisation"
_DEFAULT_ANALYSES = "groups,fairness,starvation,load,gantt"


class Backfill(enum.StrEnum):
    """Which jobs may overtake."""

    none = "none"
    easy = "easy"
    conservative = "conservative"


class DecideBy(enum.StrEnum):
    """Which run time a decision uses."""

    request = "request"
    runtime = "runtime"
    prediction = "prediction"


class Ties(enum.StrEnum):
    """Which of two equal jobs goes first."""

    fifo = "fifo"
    lifo = "lifo"


class Overrun(enum.StrEnum):
    """What happens to a job at its requested time."""

    run = "run"
    kill = "kill"


class Compatibility(enum.StrEnum):
    """Whose rules hold where they differ."""

    none = "none"
    ocst = "ocst"
    sc17 = "sc17"


class Draw(enum.StrEnum):
    """Which weeks a user's are drawn from."""

    log = "log"
    active = "active"


class Statistic(enum.StrEnum):
    """What stands for a policy over the cases."""

    median = "median"
    mean = "mean"
    ratio = "ratio"


class Starts(enum.StrEnum):
    """Layout of the files with the start of each job."""

    none = "none"
    csv = "csv"
    batsim = "batsim"


# What is simulated. ---------------------------------------------------------------------------------------------------

Sources = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TRACE",
        help="Logs in the Standard Workload Format (.swf, .swf.gz), or protocols (.toml); "
        "without any, the embedded Lublin workload.",
    ),
]
Only = Annotated[
    list[str] | None, typer.Option(metavar="EXPERIMENT", help="Of a protocol, this experiment; can be repeated.")
]
Log = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Of a protocol, this log; can be repeated.")]
Traces = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of a protocol's logs (default: traces, then the protocol's folder)."),
]
Preset = Annotated[str, typer.Option("--preset", "--clean", help="Filter for the logs (policyfactory workload clean).")]
EstimateMissing = Annotated[
    str, typer.Option(help="Jobs without a requested time: error, runtime (as if known exactly), drop.")
]
Processors = Annotated[int | None, typer.Option(help="Processors of the machine, if the log does not say.")]
Windows = Annotated[
    str | None,
    typer.Option(
        metavar="NxLENGTH",
        help="Cut each log: 10x15d, 15d, 10x5000jobs, sc17:10x15d; without it the whole log is one case.",
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Draw so many new logs from each (policyfactory workload resample); of a protocol: instead of its own.",
    ),
]
Length = Annotated[
    str | None, typer.Option(help="Length of a resampled log: 2y, 26w, log (as long as the log; the default).")
]
DrawFrom = Annotated[
    Draw | None, typer.Option(help="A user's weeks are drawn from all weeks of the log (the default), or active ones.")
]
Load = Annotated[float, typer.Option(help="Divide the times between arrivals by this: 1.1 is 10 % more load.")]
Estimates = Annotated[str, typer.Option(help="Requested times: user, exact, noisy:0.2 (up to 20 % more), tsafrir.")]

# Who competes, under which rules. -------------------------------------------------------------------------------------

Policies = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Names or model files, separated by commas; the first is the baseline (default: {DEFAULT_POLICIES})."
    ),
]
Formula = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=EXPR", help="A policy of your own, for example 'MINE=p*q + 1e5*log10(r)'; can be repeated."
    ),
]
BackfillBy = Annotated[Backfill, typer.Option(help="Which jobs may overtake.")]
Decide = Annotated[DecideBy, typer.Option(help="Run times that policy and reservations use.")]
Predictions = Annotated[
    Path | None, typer.Option(help="CSV with the columns job_id and prediction (s), for --decide-by prediction.")
]
Threshold = Annotated[
    str,
    typer.Option(
        help="Jobs that have waited longer go first, for example 20h or '3x longest request'; inf: the policy's own."
    ),
]
TiesBy = Annotated[Ties, typer.Option(help="Which of two jobs with equal score goes first.")]
OverrunBy = Annotated[Overrun, typer.Option(help="A job at its requested time runs on or is killed.")]
BackfillOrder = Annotated[
    str | None,
    typer.Option(metavar="POLICY", help="Order in which jobs are tried for backfilling (default: the queue's)."),
]
Compatible = Annotated[
    Compatibility, typer.Option(help="Rules of another simulator, where they differ from ours (docs/simulator.md).")
]

# What is asked. -------------------------------------------------------------------------------------------------------

Metrics = Annotated[str, typer.Option(help="Names separated by commas, or all; the first decides who wins.")]
StatisticOf = Annotated[
    Statistic, typer.Option(help="What stands for a policy: the median over the cases, the mean, or the ratio of sums.")
]
Analyses = Annotated[
    str | None,
    typer.Option(
        help=f"Looks beyond the metrics, separated by commas, or none (default: {_DEFAULT_ANALYSES} with --output)."
    ),
]
Recorded = Annotated[
    bool | None,
    typer.Option(
        "--recorded/--no-recorded",
        help="Show the recorded schedule beside the policies (default: where every job has its recorded start).",
    ),
]
PrecisionOf = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Draw more resampled logs until each interval has at most this half-width, relative to the baseline: 2%.",
    ),
]
MaxResamples = Annotated[int, typer.Option(min=1, max=100_000, help="With --precision, no more than this for a log.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder for report, CSV, JSON and pictures (protocols: results/NAME)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier evaluation in the folder.")]
StartsIn = Annotated[Starts, typer.Option(help="Write the start of each job: our columns or Batsim's jobs.csv.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random (default: the protocol's, or 0).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """The options that say what one experiment on plain logs is; the names are those of the command."""

    sources: tuple[Path, ...]
    policies: tuple[str, ...]
    formula: tuple[str, ...]
    backfill: str
    decide_by: str
    predictions: Path | None
    threshold: str
    ties: str
    overrun: str
    backfill_order: str | None
    compatibility: str
    windows: str | None
    resamples: int | None
    length: str | None
    draw: str | None
    load: float
    estimates: str
    metrics: str
    statistic: str
    analyses: str | None
    preset: str
    estimate_missing: str
    processors: int | None
    recorded: bool | None = False


def plain_content(plain: Plain, seed: int, *, written: bool) -> dict[str, Any]:
    """Return the protocol that the options make, as `tomllib` would read it.

    Parameters
    ----------
    plain : Plain
        The options.
    seed : int
        Seed of everything random.
    written : bool
        Whether there will be a report: then the analyses are made that nobody asked for.

    Raises
    ------
    UsageError
        If two options contradict each other.
    """
    from policyfactory.evaluate.plan import IF_KNOWN

    if (plain.decide_by == "prediction") != (plain.predictions is not None):
        raise UsageError("--decide-by prediction and --predictions FILE.csv belong together; give both or none")
    logs = _logs(plain)
    names = [spec.strip() for text in plain.policies for spec in text.split(",") if spec.strip()]
    formulas = _formulas(plain.formula)
    analyses = plain.analyses if plain.analyses is not None else _DEFAULT_ANALYSES if written else "none"
    threshold = plain.threshold
    experiment = {
        "name": PLAIN_NAME,
        "title": "Policies compared",
        "windows": plain.windows,
        "resample": _resample(plain),
        "load": plain.load,
        "estimates": plain.estimates,
        "policies": names or DEFAULT_POLICIES.split(","),
        "formulas": formulas or None,
        "metrics": [name.strip() for name in plain.metrics.split(",") if name.strip()],
        "statistic": plain.statistic,
        # None is left out, and leaves the record out.
        "recorded": IF_KNOWN if plain.recorded is None else plain.recorded or None,
        "analyses": [name.strip() for name in analyses.split(",") if name.strip() and name.strip() != "none"],
        "rules": {
            "backfill": plain.backfill,
            "decide_by": plain.decide_by,
            # The default of the rules themselves depends on the compatibility.
            "threshold": None if _is_default(threshold) else threshold,
            "ties": plain.ties,
            "overrun": plain.overrun,
            "backfill_policy": plain.backfill_order,
            "compatibility": plain.compatibility,
        },
    }
    title = "Policies on " + ", ".join(logs)
    content = {"schema_version": 1, "name": PLAIN_NAME, "title": title, "seed": seed, "logs": logs}
    found: dict[str, Any] = _without_none({**content, "experiments": [experiment]})
    return found


def _is_default(threshold: str) -> bool:
    return threshold.strip().lower() in {"inf", "none"} and parse_duration(threshold) > 0


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return [_without_none(entry) for entry in value] if isinstance(value, list) else value


def _logs(plain: Plain) -> dict[str, Any]:
    if not plain.sources:
        if plain.processors is not None or plain.predictions is not None:
            raise UsageError("--processors and --predictions belong to a log, and none is given; name the TRACE")
        return {"lublin-256": {"embedded": True}}
    if plain.processors is not None and plain.processors < 1:
        raise UsageError(f"--processors {plain.processors}: a machine has at least 1 processor")
    if plain.predictions is not None and len(plain.sources) != 1:
        raise UsageError(f"--predictions belongs to one log, {len(plain.sources)} are given; evaluate one at a time")
    found: dict[str, Any] = {}
    for path in plain.sources:
        name = _log_name(path)
        if name in found:
            raise UsageError(f"two logs are called {name}; name each log once, or rename one file")
        found[name] = {
            "file": str(path),
            "preset": plain.preset,
            "machine": plain.processors,
            "estimate_missing": plain.estimate_missing,
            "predictions": None if plain.predictions is None else str(plain.predictions),
        }
    return found


def _log_name(path: Path) -> str:
    from policyfactory.workload.swf.files import log_name

    return log_name(path)


def _resample(plain: Plain) -> dict[str, Any] | None:
    if plain.resamples is None:
        if plain.length is not None or plain.draw is not None:
            raise UsageError("--length and --draw belong to resampled logs; add --resamples N")
        return None
    if plain.windows is not None:
        raise UsageError("--windows and --resamples exclude each other; give one of them")
    return {"count": plain.resamples, "length": plain.length or "log", "draw": plain.draw or "log"}


def _formulas(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, expression in map(_formula, texts):
        if name in found:
            raise UsageError(f"--formula: two formulas are called {name}; give each a name of its own")
        found[name] = expression
    return found


def _formula(text: str) -> tuple[str, str]:
    name, equals, expression = text.partition("=")
    if not equals or not name.strip() or not expression.strip():
        raise UsageError(f"--formula {text!r}: write NAME=EXPR, for example 'MINE=p*q + 1e5*log10(r)'")
    return name.strip(), expression.strip()
