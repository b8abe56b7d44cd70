"""``policyfactory tune``: choose the policy of the next day or week from what the past ones have shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.cli import evaluate_options as option
from policyfactory.cli.workers_options import BackendOption, SchedulerOption, WorkersOption, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.evaluate.plain import OPTIONS, TUNER_OPTIONS, plain_content

__all__ = ["tune"]

_NAME = "tuning"
_SHOWN = ("improvement", "choices")
# The cases are whole or resampled logs: a tuner learns from the past of its log.
_FIXED = {"windows", "predictions", "statistic", "analyses", "recorded"}
_DEFAULTS = {
    "policies": ["FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF"],
    "metrics": ["total_wait", "mean_wait", "mean_bsld", "max_wait"],
    "threshold": "40h",
}
_MORE = {"policies": "the tuners also use it until past periods favour another policy"}
# Reservations for all jobs cannot change hands, nor do predictions belong to resampled logs.
_CHOICES = {
    "backfill": Literal["none", "easy", "slurm"],
    "decide_by": Literal["request", "runtime"],
    "compatibility": Literal["none", "ocst"],
}

Logs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="LOG",
        help="Logs in the Standard Workload Format (.swf, .swf.gz); without any, the embedded Lublin workload.",
    ),
]
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


@option.with_options(
    [*TUNER_OPTIONS.values(), *(one for name, one in OPTIONS.items() if name not in _FIXED)], _DEFAULTS, _CHOICES, _MORE
)
def tune(
    traces: Logs = None,
    *,
    feedback: Feedback = "simulate",
    period: Period = "1w",
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Choose the policy of the next day or week online, and say what that is worth.

    The tuners run beside each of their policies, of which one is the best in hindsight, and beside a random choice;
    docs/tuning.md says what they know and how they choose.
    """
    from policyfactory.cli.evaluate_run import Request, log_tables, run_content

    numbers = {name: options.pop(name) for name in TUNER_OPTIONS}
    given = {**_DEFAULTS, **{name: value for name, value in options.items() if value is not None}}
    fixed = {"statistic": "ratio", "analyses": list(_SHOWN), "recorded": False}
    content = plain_content({**given, **fixed}, log_tables(traces or ()), "command")
    content |= {"name": _NAME, "title": "Tuning " + ", ".join(content["logs"])}
    content["experiments"][0] |= {
        "name": _NAME,
        "title": "Tuners, policies and chance",
        "tuners": _tuners(_words("feedback", feedback), _words("period", period), numbers),
    }
    none = {"precision": None, "max_resamples": 1}
    run_content(
        content, Request(output, overwrite, "none", workers_of(workers, backend, scheduler), none, json, _SHOWN)
    )


def _words(option_name: str, text: str) -> list[str]:
    words = list(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    if not words:
        raise UsageError(f"--{option_name} is empty; the help says what there is")
    return words


def _tuners(feedbacks: list[str], periods: list[str], numbers: dict[str, float]) -> list[dict[str, Any]]:
    """Return the tuners as a protocol has them; a random choice is always among them."""
    return [
        {"name": f"{feedback} {period}", "feedback": feedback, "period": period, **numbers}
        for feedback in dict.fromkeys([*feedbacks, "random"])
        for period in periods
    ]
