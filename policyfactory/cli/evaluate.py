"""``policyfactory evaluate``: a paper's protocol, or policies on logs, compared case by case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import WORKERS, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.evaluation.options import OPTIONS, RUN_OPTIONS, TUNER_OPTIONS
from policyfactory.evaluation.protocol_content import plain_content
from policyfactory.report.terminal import note

# What can be said beside a protocol; the other declared options are in it.
_BESIDE_A_PROTOCOL = {
    "resamples": "beside a protocol, instead of its own number",
    "seed": "beside a protocol, instead of its own",
}


@option.with_options(
    [*OPTIONS.values(), *RUN_OPTIONS.values(), *WORKERS], defaults={"seed": None}, more=_BESIDE_A_PROTOCOL
)
def evaluate(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG",
            help="Logs in the Standard Workload Format (.swf, .swf.gz), or protocols (.toml); "
            "without any, the embedded Lublin workload.",
        ),
    ] = None,
    *,
    only: Annotated[
        list[str] | None, typer.Option(metavar="EXPERIMENT", help="Of a protocol, this experiment; can be repeated.")
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a protocol, this log; can be repeated.")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a protocol's logs (default: traces, then the protocol's folder)."),
    ] = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    starts: Annotated[
        Literal["none", "csv", "batsim", "trace"],
        typer.Option(
            metavar="WORD",
            help="Write the start of each job: our columns (csv), Batsim's jobs.csv (batsim), for Perfetto (trace).",
        ),
    ] = "none",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Of a protocol, print all tables and not one screen.")
    ] = False,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Of a protocol (evaluate/*.toml), run its experiments and write a report; docs/protocols.md has its keys.

    Example: policyfactory evaluate site.swf.gz --policies FCFS,SAF --output results
    """
    from policyfactory.cli.evaluate_run import Request, run_options, run_protocols

    paths = tuple(sources or ())
    protocols = [path for path in paths if path.suffix.lower() == ".toml"]
    request = Request(
        output=output,
        overwrite=overwrite,
        starts=starts,
        workers=workers_of(options),
        options={name: options.pop(name) for name in RUN_OPTIONS},
        as_json=json,
        folders=(traces or Path("traces"),) if protocols else (),
        in_brief=bool(protocols) and not verbose,
    )
    if not protocols:
        if only or log or traces is not None:
            raise UsageError("--only, --log and --traces belong to a protocol (a .toml file), and none is given")
        run_options(paths, options, request)
        return
    _refuse_options(context)
    if len(protocols) < len(paths):
        raise UsageError(f"{protocols[0]} is a protocol, which names its logs itself; give protocols or logs")
    changes = {name: options[name] for name in _BESIDE_A_PROTOCOL}
    run_protocols(protocols, request, (tuple(only or ()), tuple(log or ())), changes)


def _refuse_options(context: typer.Context) -> None:
    """Refuse options that a protocol decides."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in OPTIONS
        if name not in _BESIDE_A_PROTOCOL and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise UsageError(f"{', '.join(given)}: the protocol says this; change it there, or name logs instead of it")


# ``policyfactory tune`` -----------------------------------------------------------------------------------------------

# Choose the policy of the next day or week from what the past ones have shown.


_NAME = "tuning"
_SHOWN = ("improvement", "choices")
# The cases are whole or resampled logs: a tuner learns from the past of its log.
_FIXED = {"windows", "predictions", "statistic", "analyses", "recorded"}
_DEFAULTS = {
    "policies": ["FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF"],
    "metrics": ["total_wait", "mean_wait", "mean_bsld", "max_wait"],
    "threshold": "40h",
}
# The feedbacks that a number is for.
_NEEDING = {
    "epsilon": {"bandit"},
    "noise": {"noisy"},
    "discount": {"simulate", "noisy", "bandit", "thompson", "ucb"},
}
_MORE = {"policies": "the tuners also use it until past periods favour another policy"}
# Reservations for all jobs cannot change hands, nor do predictions belong to resampled logs.
_CHOICES = {
    "backfill": Literal["none", "easy", "slurm"],
    "decide_by": Literal["request", "runtime"],
    "compatibility": Literal["none", "ocst"],
}


@option.with_options(
    [*TUNER_OPTIONS.values(), *(option for name, option in OPTIONS.items() if name not in _FIXED), *WORKERS],
    _DEFAULTS,
    _CHOICES,
    _MORE,
)
def tune(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG",
            help="Logs in the Standard Workload Format (.swf, .swf.gz); without any, the embedded Lublin workload.",
        ),
    ] = None,
    *,
    feedback: Annotated[
        str,
        typer.Option(
            help="What is known of the past: simulate, noisy (every policy's wait, simulated), bandit, thompson, ucb "
            "(the waits under the policy in force), random (nothing); several separated by commas."
        ),
    ] = "simulate",
    period: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="How long a policy stays, for example 1d or 1w; several separated by commas."
        ),
    ] = "1w",
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Choose the policy of the next day or week online, and say what that is worth.

    The tuners run beside each of their policies, of which one is the best in hindsight, and beside a random choice;
    docs/tuning.md says what they know and how they choose.

    Example: policyfactory tune site.swf.gz --policies FCFS,SPF,SAF --period 1w --output tuned
    """
    from policyfactory.cli.evaluate_run import Request, log_tables, run_content

    numbers = {name: options.pop(name) for name in TUNER_OPTIONS}
    who = workers_of(options)
    given = {**_DEFAULTS, **{name: value for name, value in options.items() if value is not None}}
    fixed = {"statistic": "ratio", "analyses": list(_SHOWN), "recorded": False}
    feedbacks = _words("feedback", feedback)
    for name, needing in _NEEDING.items():
        if numbers[name] != TUNER_OPTIONS[name].default and needing.isdisjoint(feedbacks):
            note(f"without effect: --{name}, which is for --feedback {' or '.join(sorted(needing))}")
    content = plain_content({**given, **fixed}, log_tables(traces or ()), "command")
    content |= {"name": _NAME, "title": "Tuning " + ", ".join(content["logs"])}
    content["experiments"][0] |= {
        "name": _NAME,
        "title": "Tuners, policies and chance",
        "tuners": _tuners(feedbacks, _words("period", period), numbers),
    }
    none = {"precision": None, "max_resamples": None}
    run_content(
        content,
        Request(
            output=output, overwrite=overwrite, starts="none", workers=who, options=none, as_json=json, shown=_SHOWN
        ),
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
