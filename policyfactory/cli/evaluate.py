"""``policyfactory evaluate``: policies on logs, compared window by window."""

from __future__ import annotations

import enum
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.console import console, note, progress
from policyfactory.core.artefact import Manifest, check_directory, command_line, dump_json, exclusive, sha256_file
from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed
from policyfactory.core.units import parse_duration

if TYPE_CHECKING:
    from policyfactory.evaluate.inputs import Cleaning, Inputs
    from policyfactory.evaluate.report import Report
    from policyfactory.evaluate.simulate import Rules
    from policyfactory.evaluate.starts import StartsWriter
    from policyfactory.policy.policy import Policy
    from policyfactory.workload.windows import WindowSpec

__all__ = ["evaluate"]

_DEFAULT_POLICIES = "FCFS,SPF,SAF,WFP3,UNICEF,F1"
_DEFAULT_METRICS = "mean_bsld,mean_wait,p95_wait,max_wait,utilisation"


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


class Starts(enum.StrEnum):
    """Layout of the files with the start of each job."""

    none = "none"
    csv = "csv"
    batsim = "batsim"


def evaluate(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE",
            help="Logs in the Standard Workload Format (.swf, .swf.gz); without any, the embedded Lublin workload.",
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            help="Names or model files, separated by commas; the first is the baseline "
            f"(default: {_DEFAULT_POLICIES}).",
        ),
    ] = None,
    formula: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPR", help="A policy of your own, for example 'MINE=p*q + 1e5*log10(r)'; can be repeated."
        ),
    ] = None,
    backfill: Annotated[Backfill, typer.Option(help="Which jobs may overtake.")] = Backfill.easy,
    decide_by: Annotated[DecideBy, typer.Option(help="Run times that policy and reservations use.")] = DecideBy.request,
    predictions: Annotated[
        Path | None, typer.Option(help="CSV with the columns job_id and prediction (s), for --decide-by prediction.")
    ] = None,
    threshold: Annotated[
        str, typer.Option(help="Jobs that have waited longer go first, for example 20h; inf: the policy's own.")
    ] = "inf",
    ties: Annotated[Ties, typer.Option(help="Which of two jobs with equal score goes first.")] = Ties.fifo,
    overrun: Annotated[Overrun, typer.Option(help="A job at its requested time runs on or is killed.")] = Overrun.run,
    backfill_order: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Order in which jobs are tried for backfilling (default: the queue's)."),
    ] = None,
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="NxLENGTH",
            help="Cut each log: 10x15d, 15d, 10x5000jobs, sc17:10x15d; without it the whole log is one window.",
        ),
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="Names separated by commas, or all; the first decides who wins.")
    ] = _DEFAULT_METRICS,
    preset: Annotated[
        str, typer.Option("--preset", "--clean", help="Filter for the logs (policyfactory workload clean).")
    ] = "default",
    estimate_missing: Annotated[
        str, typer.Option(help="Jobs without a requested time: error, runtime (as if known exactly), drop.")
    ] = "error",
    processors: Annotated[int | None, typer.Option(help="Processors of the machine, if the log does not say.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for CSV, JSON, manifest and pictures.")
    ] = None,
    starts: Annotated[
        Starts, typer.Option(help="Write the start of each job: our columns or Batsim's jobs.csv.")
    ] = Starts.none,
    jobs: Annotated[int | None, typer.Option(min=1, help="Simulations side by side (default: all processors).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Simulate policies on logs and say which is better, by how much, and how certain that is."""
    from policyfactory.evaluate.inputs import Cleaning
    from policyfactory.evaluate.metrics import METRICS
    from policyfactory.evaluate.report import write_report
    from policyfactory.evaluate.run import check_metrics
    from policyfactory.evaluate.simulate import Rules
    from policyfactory.evaluate.store import listed
    from policyfactory.evaluate.words import rules_in_words
    from policyfactory.policy.catalogue import resolve
    from policyfactory.workload.windows import parse_windows

    check_seed(seed)
    if starts is not Starts.none and output is None:
        raise UsageError(f"--starts {starts.value} writes files; name their folder with --output DIR")
    names = check_metrics(METRICS if metrics.strip().lower() == "all" else metrics.split(","))
    candidates = _candidates(policies or [], formula or [])
    rules = Rules(
        backfill=backfill.value,
        decide_by=decide_by.value,
        threshold=parse_duration(threshold),
        ties=ties.value,
        overrun=overrun.value,
        backfill_policy=None if backfill_order is None else resolve(backfill_order),
    )
    spec = None if windows is None else parse_windows(windows)
    if (decide_by is DecideBy.prediction) != (predictions is not None):
        raise UsageError("--decide-by prediction and --predictions FILE.csv belong together; give both or none")
    inputs = _inputs(traces or [], spec, Cleaning(preset, estimate_missing, processors), predictions)
    inputs.hashes.update(_model_hashes([*(policies or []), backfill_order or ""]))
    for line in inputs.notes:
        note(line)
    note(rules_in_words(rules))
    work = (jobs or len(os.sched_getaffinity(0)), seed)
    if output is None:
        _show(*_run(inputs, candidates, rules, names, work, None), as_json=json)
        return
    check_directory(output)
    with exclusive(output / "results.csv"):
        writer = _starts_writer(output, starts, inputs, candidates)
        report, manifest = _run(inputs, candidates, rules, names, work, writer)
        kept = [writer.path(window, one.name) for window in inputs.windows for one in candidates] if writer else []
        if listed(output):
            note(f"{output}: replaces an earlier evaluation")
        written = write_report(report, output, manifest, kept)
    _show(report, manifest, as_json=json)
    note(f"{output}/: {', '.join(written)}{', starts/' if writer else ''}")


def _candidates(policies: list[str], formulas: list[str]) -> list[Policy]:
    from policyfactory.policy.catalogue import resolve
    from policyfactory.policy.policy import Policy

    specs = [spec.strip() for text in policies for spec in text.split(",") if spec.strip()]
    found = [resolve(spec) for spec in specs or _DEFAULT_POLICIES.split(",")]
    for text in formulas:
        name, equals, expression = text.partition("=")
        if not equals or not name.strip() or not expression.strip():
            raise UsageError(f"--formula {text!r}: write NAME=EXPR, for example 'MINE=p*q + 1e5*log10(r)'")
        found.append(Policy(name=name.strip(), formula=expression.strip(), source="--formula"))
    return found


def _inputs(traces: list[Path], spec: WindowSpec | None, cleaning: Cleaning, predictions: Path | None) -> Inputs:
    from policyfactory.evaluate.inputs import embedded_workload, read_logs

    if traces:
        return read_logs(traces, spec, cleaning, predictions)
    if cleaning.processors is not None or predictions is not None:
        raise UsageError("--processors and --predictions belong to a log, and none is given; name the TRACE")
    return embedded_workload(spec)


def _model_hashes(specs: list[str]) -> dict[str, str]:
    paths = [Path(spec.strip()) for text in specs for spec in text.split(",") if spec.strip()]
    return {str(path): sha256_file(path) for path in paths if path.is_file()}


def _starts_writer(output: Path, starts: Starts, inputs: Inputs, candidates: list[Policy]) -> StartsWriter | None:
    from policyfactory.evaluate.starts import StartsWriter, file_names

    if starts is Starts.none:
        return None
    return StartsWriter(
        output / "starts",
        "batsim" if starts is Starts.batsim else "csv",
        file_names(dict.fromkeys(window.trace for window in inputs.windows)),
        file_names(policy.name for policy in candidates),
    )


def _run(
    inputs: Inputs,
    candidates: list[Policy],
    rules: Rules,
    metrics: tuple[str, ...],
    work: tuple[int, int],
    keep: StartsWriter | None,
) -> tuple[Report, Manifest]:
    from policyfactory.evaluate import run
    from policyfactory.evaluate.report import conclude

    workers, seed = work
    begin = time.perf_counter()
    evaluation = _with_progress(
        lambda tell: run.evaluate(
            inputs.windows, candidates, rules=rules, metrics=metrics, workers=workers, keep=keep, progress=tell
        ),
        len(inputs.windows) * len(candidates),
    )
    seconds = time.perf_counter() - begin
    report = conclude(evaluation, seed=seed, settings=inputs.settings)
    measured = {
        "seconds": round(seconds, 3),
        "jobs_simulated": evaluation.jobs_simulated,
        "jobs_per_second": round(evaluation.jobs_simulated / seconds),
        "workers": workers,
    }
    return report, Manifest("evaluation", command_line(), seed, inputs.hashes, report.protocol, measured)


def _with_progress(work: Any, total: int) -> Any:
    """Run ``work(tell)`` under a progress bar; ``tell`` is called with the jobs of each simulation that is done."""
    from rich.progress import TextColumn

    begin = time.perf_counter()
    jobs = 0
    with progress(TextColumn("{task.fields[speed]}")) as bar:
        task = bar.add_task("window x policy", total=total, speed="")

        def tell(done: int) -> None:
            nonlocal jobs
            jobs += done
            bar.update(task, advance=1, speed=f"{jobs / (time.perf_counter() - begin):,.0f} jobs/s")

        return work(tell)


def _show(report: Report, manifest: Manifest, *, as_json: bool) -> None:
    from policyfactory.cli.evaluation_tables import show_differences, show_medians

    if as_json:
        typer.echo(dump_json({**report.as_dict(), "manifest": manifest.as_dict()}), nl=False)
        return
    for trace in report.evaluation.traces:
        show_medians(report.evaluation, report.summaries, trace)
        show_differences(report.evaluation, report.comparisons, trace)
    for paragraph in report.words:
        console().print(paragraph, markup=False)
