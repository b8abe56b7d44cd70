"""What the commands share: options as they are declared, the rule of exit codes, and what is said of the compiler."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.core.errors import UsageError
from policyfactory.core.options import DeclaredOption, declared, options_of
from policyfactory.core.options import option as declared_option
from policyfactory.core.process import announced
from policyfactory.evaluation.options import Declared
from policyfactory.parallel.workers import Backend, Workers
from policyfactory.report.terminal import note
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder for report, CSV, JSON and pictures (protocols: results/NAME)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
EndOption = Annotated[
    str | None, typer.Option("--to", metavar="DATE", help="Up to this time, not included; as --from.")
]
LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="A log (SWF, also .gz).", show_default=False)]


def with_options(
    options: Iterable[Declared | DeclaredOption],
    defaults: Mapping[str, Any] | None = None,
    choices: Mapping[str, Any] | None = None,
    more: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command the options that are declared, in place of its ``**options``.

    Parameters
    ----------
    options : iterable of Declared or DeclaredOption
        The options.
    defaults : mapping of str to object, optional
        Defaults that this command has of its own, by the names of the options.
    choices : mapping of str to type, optional
        Words that this command takes, where it takes fewer.
    more : mapping of str to str, optional
        What else an option means to this command.
    """
    given, defaults_here, choices_here, texts_here = tuple(options), defaults or {}, choices or {}, more or {}

    def give(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        described = []
        for entry in given:
            text = "; ".join([entry.option.text, *filter(None, [texts_here.get(entry.name)])])
            default = defaults_here.get(entry.name, entry.default)
            described.append(_parameter(entry, default, choices_here.get(entry.name, entry.kind), text))
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += described if parameter.kind is parameter.VAR_KEYWORD else [parameter]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return give


def options_given(context: typer.Context, names: Collection[str | None]) -> list[str]:
    """Return which of some options are on the command line, as they are written there."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names
        and getattr(context.get_parameter_source(parameter.name or ""), "name", "") == "COMMANDLINE"
    ]


def _parameter(entry: Declared | DeclaredOption, default: Any, kind: Any, text: str) -> inspect.Parameter:
    option, origin = entry.option, typing.get_origin(kind)
    flags = option.flags or (f"--{entry.name.replace('_', '-')}",)
    listed = origin in {tuple, dict, list} and default == entry.default
    stated = option.stated if default is None or listed else ""
    more = {tuple: "; separated by commas, can be repeated"}.get(origin, "; can be repeated" * (origin in {dict, list}))
    if origin is Literal and not all(word in text for word in typing.get_args(kind)):
        more = f": {', '.join(typing.get_args(kind))}"
    if origin in {tuple, dict, list}:
        # Can be repeated, so that a default would be added to: it is applied when nothing is given.
        kind, stated, default = list[str], stated or ", ".join(default or ()), None
    elif origin is typing.Union:
        kind, flags, stated, default = bool, _both(flags[0]), stated or str(default), None
    elif default is True:
        flags = _both(flags[0])
    if default is None:
        kind = kind | None
    described = typer.Option(
        *flags,
        help=_help(text + more, option.page, stated),
        metavar=option.metavar or None,
        autocompletion=COMPLETERS.get(entry.name),
    )
    return inspect.Parameter(
        entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )


def _both(flag: str) -> tuple[str]:
    return (f"{flag}/--no-{flag.removeprefix('--')}",)


def _help(text: str, page: str, default: str) -> str:
    sentence = f"{text[0].upper()}{text[1:]}".replace("`", "")
    notes = [f"default: {default}"] * bool(default) + [f"docs/{page.partition('#')[0]}"] * bool(page)
    return f"{sentence} ({'; '.join(notes)})." if notes else f"{sentence}."


MissingOption = Annotated[EstimateMissing, typer.Option(help=_help(MISSING_HELP, "workloads.md", ""))]


# The options that say who does the work, shared by the commands that share it out -------------------------------------


@dataclasses.dataclass(frozen=True)
class WorkerOptions:
    """Who does the work.

    Parameters
    ----------
    workers : int or None
        One a core, if not given.
    backend : str or None
        Threads, or Dask if there is a scheduler.
    scheduler : str or None
        Of a Dask cluster.
    """

    workers: int | None = declared_option(None, "workers on this machine; the result is the same", stated="one a core")
    backend: Backend | None = declared_option(
        None,
        "what the workers are: threads of this process (threading, the default), processes of this machine (loky), or "
        "those of a Dask cluster (dask, with `--scheduler`; alone: threads). The result is the same",
    )
    scheduler: str | None = declared_option(
        None,
        "work on the Dask cluster of this scheduler: tcp://HOST:PORT, tls://HOST:PORT, or its scheduler file "
        "(FILE.json). Only on networks that you trust",
        metavar="ADDRESS",
    )


WORKERS = tuple(declared(WorkerOptions).values())


def workers_of(options: dict[str, Any]) -> Workers:
    """Return who does the work, from the options of a command, out of which `WORKERS` are taken.

    Raises
    ------
    UsageError
        If the options contradict each other, the address is none, or the backend is not installed.
    InputError
        If the scheduler file cannot be read.
    """
    given = options_of(WorkerOptions, options)
    workers, backend, scheduler = given.workers, given.backend, given.scheduler
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: give at least 1 worker")
    if scheduler is not None:
        if backend not in {None, "dask"}:
            raise UsageError(f"--scheduler {scheduler} is for --backend dask, not {backend}; leave one of them out")
        if workers is not None:
            raise UsageError(
                f"--workers {workers} with --scheduler {scheduler}: the workers of the cluster do the work, as many as "
                "it has; leave --workers out"
            )
    kind: Backend = backend or ("dask" if scheduler is not None else "threading")
    if kind == "dask":
        from policyfactory.parallel.dask import check_installed, scheduler_address

        check_installed()
        if scheduler is not None:
            # Before hours of reading logs; the file is read again when the work begins.
            scheduler_address(scheduler)
    return Workers(workers or len(os.sched_getaffinity(0)), kind, scheduler)


# The options that `learn`, `train`, `distill` and `judge` share -------------------------------------------------------


# How a log is read, as for an evaluation.
READING = ("processors", "force_processors", "estimate_missing", "preset", "assume")

PastLog = Annotated[Path, typer.Argument(metavar="LOG", help="Log in SWF (workload import makes one).")]
LearningOutput = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything.")]
# What a shell offers where a value is typed: ``policyfactory --install-completion`` -----------------------------------


def _last_of(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return what the last of several values, separated by commas, may become; none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = set(before.split(","))
    return [
        f"{before}{comma}{name}" for name in names if name.casefold().startswith(last.casefold()) and name not in given
    ]


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics that begin so."""
    from policyfactory.simulation.metrics import METRICS

    return _last_of(incomplete, [*METRICS, "all"])


def complete_policies(incomplete: str) -> list[str]:
    """Return the policies of the catalogue that begin so."""
    from policyfactory.policy.store import CATALOGUE

    return _last_of(incomplete, CATALOGUE)


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets of an export that begin so."""
    from policyfactory.exports.content import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


# By the options that are declared for an evaluation.
COMPLETERS: dict[str, Callable[[str], list[str]]] = {
    "metrics": complete_metrics,
    "metric": complete_metrics,
    "policies": complete_policies,
}


# Exit codes: the one rule of the commands that compare a simulated site with a log's record ---------------------------


DESCRIBING = ("evaluate", "tune", "learn", "site check", "site replay", "forecast")
RULE = (
    "Exit code: 0; 1 where the input cannot be used, or the site does not describe the log: its replay is far from "
    "the record, or most jobs do not fit the site; 2 where the command line is wrong."
)


def refuse_idle(*outputs: Path | None, overwrite: bool) -> None:
    """Refuse ``--overwrite`` of a command that writes nothing.

    Raises
    ------
    UsageError
        If it is given without an output.
    """
    if overwrite and not any(outputs):
        raise UsageError("--overwrite is for a file to be written, and none is named: add --output, or leave it out")


def leave(*, describes: bool) -> None:
    """End a command with the exit code that says whether the site describes the log; all results are shown by now."""
    if not describes:
        raise typer.Exit(1)


# What a command says where it has to wait for the compiler: once, and before its progress bar -------------------------


WORDS = (
    "the simulator is compiled for this machine first, once: up to half a minute",
    "Slurm's rules are compiled for this machine first, once: about a minute",
)
_OTHERS, _SLURM = WORDS
_announced: set[str] = set()


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Have any command say that it waits for the compiler, whichever kernel it is that begins to be compiled."""
    _announced.clear()
    with announced(lambda module: _announce(_SLURM if "slurm" in module else _OTHERS)):
        yield


def note_compiling() -> None:
    """Say that Slurm's rules are compiled, if no variant of them is yet for this machine.

    Where a command knows that they hold: its bar begins before them, or other processes compile them.
    """
    from policyfactory.core.jit import is_compiled
    from policyfactory.engine.slurm.passes import slurm

    if not is_compiled(slurm):
        _announce(_SLURM)


def _announce(text: str) -> None:
    if text not in _announced:
        _announced.add(text)
        note(text)
