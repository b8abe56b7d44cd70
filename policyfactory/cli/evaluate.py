"""``policyfactory evaluate``: a paper's protocol, or policies on logs, compared case by case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policyfactory.cli import evaluate_options as option
from policyfactory.cli.workers_options import BackendOption, SchedulerOption, WorkersOption, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.evaluate.plain import OPTIONS, RUN_OPTIONS

__all__ = ["evaluate"]

# What can be said beside a protocol; the other declared options are in it.
_BESIDE_A_PROTOCOL = {
    "resamples": "beside a protocol, instead of its own number",
    "seed": "beside a protocol, instead of its own",
}


@option.with_options([*OPTIONS.values(), *RUN_OPTIONS.values()], defaults={"seed": None}, more=_BESIDE_A_PROTOCOL)
def evaluate(
    context: typer.Context,
    sources: option.Sources = None,
    *,
    only: option.Only = None,
    log: option.Log = None,
    traces: option.Traces = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    starts: option.StartsIn = "none",
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    verbose: option.Verbose = False,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Of a protocol (evaluate/*.toml), run its experiments and write a report; docs/protocols.md has its keys.
    """
    from policyfactory.cli.evaluate_run import Request, run_options, run_protocols

    paths = tuple(sources or ())
    protocols = [path for path in paths if path.suffix.lower() == ".toml"]
    request = Request(
        output=output,
        overwrite=overwrite,
        starts=starts,
        workers=workers_of(workers, backend, scheduler),
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
