"""``policyfactory evaluate``: a paper's protocol, or policies on logs, compared case by case."""

from __future__ import annotations

import typer

from policyfactory.cli import evaluate_options as option
from policyfactory.cli.workers_options import BackendOption, JobsOption, SchedulerOption, workers_of
from policyfactory.core.errors import UsageError

__all__ = ["evaluate"]

# What can be said beside a protocol; everything else is in it.
_BESIDE_A_PROTOCOL = frozenset(
    {"sources", "only", "log", "traces", "resamples", "precision", "max_resamples", "output", "overwrite"}
    | {"starts", "jobs", "backend", "scheduler", "seed", "json"}
)


def evaluate(
    context: typer.Context,
    sources: option.Sources = None,
    policies: option.Policies = None,
    formula: option.Formula = None,
    backfill: option.BackfillBy = option.Backfill.easy,
    decide_by: option.Decide = option.DecideBy.request,
    predictions: option.Predictions = None,
    threshold: option.Threshold = "inf",
    ties: option.TiesBy = option.Ties.fifo,
    overrun: option.OverrunBy = option.Overrun.run,
    backfill_order: option.BackfillOrder = None,
    compatibility: option.Compatible = option.Compatibility.none,
    windows: option.Windows = None,
    resamples: option.Resamples = None,
    length: option.Length = None,
    draw: option.DrawFrom = None,
    load: option.Load = 1.0,
    estimates: option.Estimates = "user",
    metrics: option.Metrics = option.DEFAULT_METRICS,
    statistic: option.StatisticOf = option.Statistic.median,
    analyses: option.Analyses = None,
    recorded: option.Recorded = None,
    precision: option.PrecisionOf = None,
    max_resamples: option.MaxResamples = 1_000,
    preset: option.Preset = "default",
    estimate_missing: option.EstimateMissing = "error",
    processors: option.Processors = None,
    only: option.Only = None,
    log: option.Log = None,
    traces: option.Traces = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    starts: option.StartsIn = option.Starts.none,
    jobs: JobsOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    seed: option.Seed = None,
    json: option.Json = False,
) -> None:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Of a protocol (evaluate/*.toml), run its experiments and write a report; docs/protocols.md has its keys.
    """
    from policyfactory.cli.evaluate_run import Request, run_options, run_protocols

    paths = tuple(sources or ())
    request = Request(
        output=output,
        overwrite=overwrite,
        starts=starts.value,
        workers=workers_of(jobs, backend, scheduler),
        seed=seed,
        precision=precision,
        max_resamples=max_resamples,
        as_json=json,
    )
    protocols = [path for path in paths if path.suffix.lower() == ".toml"]
    if protocols:
        _refuse_options(context)
        if len(protocols) < len(paths):
            raise UsageError(f"{protocols[0]} is a protocol, which names its logs itself; give protocols or logs")
        run_protocols(protocols, request, (tuple(only or ()), tuple(log or ()), traces, resamples))
        return
    if only or log or traces is not None:
        raise UsageError("--only, --log and --traces belong to a protocol (a .toml file), and none is given")
    plain = option.Plain(
        sources=paths,
        policies=tuple(policies or ()),
        formula=tuple(formula or ()),
        backfill=backfill.value,
        decide_by=decide_by.value,
        predictions=predictions,
        threshold=threshold,
        ties=ties.value,
        overrun=overrun.value,
        backfill_order=backfill_order,
        compatibility=compatibility.value,
        windows=windows,
        resamples=resamples,
        length=length,
        draw=None if draw is None else draw.value,
        load=load,
        estimates=estimates,
        metrics=metrics,
        statistic=statistic.value,
        analyses=analyses,
        preset=preset,
        estimate_missing=estimate_missing,
        processors=processors,
        recorded=recorded,
    )
    run_options(plain, request)


def _refuse_options(context: typer.Context) -> None:
    """Refuse options that a protocol decides."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in _BESIDE_A_PROTOCOL and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise UsageError(f"{', '.join(given)}: the protocol says this; change it there, or name logs instead of it")
