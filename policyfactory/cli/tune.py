"""``policyfactory tune``: choose the policy of the next day or week from what the past ones have shown."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli import evaluate_options as option
from policyfactory.cli.workers_options import BackendOption, JobsOption, SchedulerOption, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed

__all__ = ["tune"]

_NAME = "tuning"
_DEFAULT_POLICIES = "FCFS,LCFS,SPF,LPF,SQF,LQF,LEXP,SEXP,SRF,LRF,SAF,LAF"
_DEFAULT_METRICS = "total_wait,mean_wait,mean_bsld,max_wait"
_SHOWN = ("improvement", "choices")


class Backfill(enum.StrEnum):
    """Which jobs may overtake; reservations for all jobs cannot change hands."""

    none = "none"
    easy = "easy"


class DecideBy(enum.StrEnum):
    """Which run time a decision uses."""

    request = "request"
    runtime = "runtime"


class Compatibility(enum.StrEnum):
    """Whose rules hold where they differ."""

    none = "none"
    ocst = "ocst"


Feedback = Annotated[
    str,
    typer.Option(
        help="What is known of the past: simulate, noisy (every policy's wait, simulated), bandit, thompson, ucb (the "
        "waits under the policy in force), random (nothing); several separated by commas."
    ),
]
Period = Annotated[
    str, typer.Option(help="How long a policy stays, for example 1d or 1w; several separated by commas.")
]
Epsilon = Annotated[float, typer.Option(help="bandit: share of the periods given to a policy drawn at random.")]
Discount = Annotated[float, typer.Option(help="Weight of a period relative to the next one: 1 forgets nothing.")]
Noise = Annotated[float, typer.Option(help="noisy: the simulated waits are off by up to this share.")]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        help="Names or model files to choose from, separated by commas; the first is in force until something speaks "
        "for another, and is the baseline (default: the 12 of the catalogue's TPDS'18)."
    ),
]
Threshold = Annotated[
    str, typer.Option(help="Jobs that have waited longer go first, for example 20h; inf: the policies' own.")
]


def tune(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE",
            help="Logs in the Standard Workload Format (.swf, .swf.gz); without any, the embedded Lublin workload.",
        ),
    ] = None,
    feedback: Feedback = "simulate",
    period: Period = "1w",
    epsilon: Epsilon = 0.1,
    discount: Discount = 1.0,
    noise: Noise = 0.2,
    policies: Policies = None,
    formula: option.Formula = None,
    backfill: Annotated[Backfill, typer.Option(help="Which jobs may overtake.")] = Backfill.easy,
    decide_by: Annotated[DecideBy, typer.Option(help="Run times that policy and reservations use.")] = DecideBy.request,
    threshold: Threshold = "40h",
    ties: option.TiesBy = option.Ties.fifo,
    overrun: option.OverrunBy = option.Overrun.run,
    backfill_order: option.BackfillOrder = None,
    compatibility: Annotated[
        Compatibility, typer.Option(help="Rules of another simulator, where they differ from ours (docs/simulator.md).")
    ] = Compatibility.none,
    resamples: option.Resamples = None,
    length: option.Length = None,
    draw: option.DrawFrom = None,
    load: option.Load = 1.0,
    estimates: option.Estimates = "user",
    metrics: option.Metrics = _DEFAULT_METRICS,
    preset: option.Preset = "default",
    estimate_missing: option.EstimateMissing = "error",
    processors: option.Processors = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    jobs: JobsOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    seed: option.Seed = None,
    json: option.Json = False,
) -> None:
    """Choose the policy of the next day or week online, and say what that is worth.

    The tuners run beside each of their policies, of which one is the best in hindsight, and beside a random choice;
    docs/tuning.md says what they know and how they choose.
    """
    from policyfactory.cli.evaluate_run import Request, run_content

    plain = option.Plain(
        sources=tuple(traces or ()),
        policies=tuple(policies or (_DEFAULT_POLICIES,)),
        formula=tuple(formula or ()),
        backfill=backfill.value,
        decide_by=decide_by.value,
        predictions=None,
        threshold=threshold,
        ties=ties.value,
        overrun=overrun.value,
        backfill_order=backfill_order,
        compatibility=compatibility.value,
        windows=None,
        resamples=resamples,
        length=length,
        draw=None if draw is None else draw.value,
        load=load,
        estimates=estimates,
        metrics=metrics,
        statistic="ratio",
        analyses=",".join(_SHOWN),
        preset=preset,
        estimate_missing=estimate_missing,
        processors=processors,
    )
    numbers = {"epsilon": epsilon, "discount": discount, "noise": noise}
    content = option.plain_content(plain, check_seed(seed or 0), written=False)
    content |= {"name": _NAME, "title": "Tuning " + ", ".join(content["logs"])}
    content["experiments"][0] |= {
        "name": _NAME,
        "title": "Tuners, policies and chance",
        "tuners": _tuners(_words("feedback", feedback), _words("period", period), numbers),
    }
    workers = workers_of(jobs, backend, scheduler)
    request = Request(output, overwrite, "none", workers, seed, None, 1, json)
    run_content(content, request, shown=_SHOWN)


def _words(option_name: str, text: str) -> list[str]:
    found = list(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    if not found:
        raise UsageError(f"--{option_name} is empty; the help says what there is")
    return found


def _tuners(feedbacks: list[str], periods: list[str], numbers: dict[str, float]) -> list[dict[str, Any]]:
    """Return the tuners as a protocol has them; a random choice is always among them."""
    return [
        {"name": f"{feedback} {period}", "feedback": feedback, "period": period, **numbers}
        for feedback in dict.fromkeys([*feedbacks, "random"])
        for period in periods
    ]
