"""The help of the commands in two levels: ``--help`` fits on a screen, ``--help-all`` has all options by topic."""

from __future__ import annotations

import contextlib
import enum
import os
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from policyfactory.cli.options import DESCRIBING, RULE
from policyfactory.core import inputs
from policyfactory.core.text import visible

# At most five of each command, in this order.
_FIRST: dict[str, tuple[str, ...]] = {
    "generate": ("output", "tuples", "trials", "workers", "overwrite"),
    "fit": ("output", "family", "form", "report", "figures"),
    "evaluate": ("policies", "metrics", "backfill", "windows", "output"),
    "tune": ("feedback", "period", "metrics", "output"),
    "learn": ("output", "metric", "site", "predictions", "threshold"),
    "forecast": ("site", "queue", "log", "submit", "backtest"),
    "predict": ("output", "policy", "model", "overwrite"),
    "train": ("output", "goal", "learner", "family", "mode"),
    "judge": ("candidates", "output", "held_out", "replicas", "ledger"),
    "distill": ("output", "family", "goal", "margin", "overwrite"),
    "export": ("to", "output", "workload", "begin", "preview"),
    "shadow": ("accounting", "policy", "output", "overwrite"),
    "review": ("before", "after", "policy", "output", "overwrite"),
    "workload show": ("output", "json"),
    "workload clean": ("output", "preset", "estimate_missing", "overwrite"),
    "workload window": ("output", "windows", "start", "end", "jobs"),
    "workload import": ("output", "start", "end", "processors", "unlimited"),
    "workload lublin": ("processors", "jobs", "seed", "load", "output"),
    "workload estimates": ("max_estimate", "seed", "output"),
    "workload resample": ("weeks", "length", "number", "seed", "output"),
    "workload download": ("listing", "output", "base_url", "sha256"),
    "policy explain": ("job", "workload", "job_id", "history", "predictor"),
    "site import": ("output", "sacctmgr", "qos", "events"),
    "site check": ("json",),
    "site replay": ("output", "start", "end", "json", "overwrite"),
}

_TOPICS: dict[str, tuple[str, ...]] = {
    "How logs are read": (
        "preset", "processors", "force_processors", "estimate_missing", "predictions", "zero_run",
        "longest_request", "form", "partition", "leave_out", "unit", "time_zone", "nodes", "computer", "installation",
        "requeued", "keep_unstarted", "unlimited", "partition_limit", "default_limit", "defaults", "anonymize",
        "user_names", "assume",
    ),
    "Predictions": ("predictor", "state", "stale"),
    "What is simulated": (
        "windows", "lead_in", "resamples", "length", "draw", "load", "estimates", "formula", "epsilon", "discount",
        "noise", "state_size", "queue_size", "estimator", "tuples", "trials", "window_jobs", "training_windows",
        "choosing_windows", "judged_windows", "parts", "part", "minutes", "replicas", "loads", "decisions", "pairs",
    ),
    "How it is trained": ("window", "every_days", "first_days", "least", "trees", "leaves"),
    "How it searches": ("start", "restarts", "evaluations", "step", "objective", "pull"),
    "The scheduler": (
        "backfill", "site", "decide_by", "threshold", "ties", "overrun", "backfill_order", "compatibility",
    ),
    "What is measured and said": (
        "metrics", "statistic", "recorded", "analyses", "precision", "max_resamples", "seed", "starts", "convergence",
        "repeats", "top", "bootstrap", "certainty", "trace", "bands", "max_p99", "max_longest", "max_area",
    ),
    "Protocols": ("only", "log", "traces"),
    "How it runs": (
        "workers", "backend", "scheduler", "time_limit", "output", "overwrite", "json", "as_json", "verbose", "report",
        "figures",
    ),
}  # fmt: skip

_OTHERS = "Further options"
_ALL = "policyfactory.all_options"  # key of a context's notes


def arrange(command: Any, path: str = "", all_options: Any = None) -> Any:
    """Give a command, and all below it, their two levels of help; return it.

    The options are put into groups, those of `_FIRST` before the others. The last paragraph of a docstring that begins
    with ``Example:`` stands at the end of both.

    Parameters
    ----------
    command : click.Command
        What typer has made of the functions.
    path : str
        Its name, with those of the groups that it is in.
    all_options : click.Option, optional
        ``--help-all`` of the whole command, which all others get too.
    """
    all_options = all_options or next(param for param in command.params if param.name == "help_all")
    for name, sub in getattr(command, "commands", {}).items():
        arrange(sub, f"{path} {name}".strip(), all_options)
    # Paragraphs as wide as the terminal, whatever the width of the source.
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    if paragraphs[-1].startswith("Example: "):
        command.epilog = paragraphs.pop()
    command.help = "\n\n".join([*paragraphs, *([RULE] if path in DESCRIBING else [])])
    for param in command.params:
        if param.param_type_name == "option":
            param.metavar = param.metavar or _metavar(param)
    options = [param for param in command.params if param.param_type_name == "option" and param is not all_options]
    _by_topic(command, options, _FIRST.get(path, ()))
    if path:
        command.params.append(all_options)
    in_full = command.format_help

    def format_help(ctx: Any, formatter: Any) -> None:
        if ctx.meta.get(_ALL):
            in_full(ctx, formatter)
            return
        # Printed as the whole help is: what is left in the formatter goes nowhere where no command is named.
        brief = ctx.make_formatter()
        _in_brief(command, ctx, brief)
        typer.echo(brief.getvalue())

    command.format_help = format_help
    return command


def _by_topic(command: Any, options: list[Any], first: tuple[str, ...]) -> None:
    """Put the options that matter first, the others into groups."""
    if not first:
        return
    topics = {name: topic for topic, names in _TOPICS.items() for name in names}
    order = [*_TOPICS, _OTHERS]
    for param in options:
        if param.name not in first:
            param.rich_help_panel = topics.get(param.name, _OTHERS) if len(options) > len(first) + 4 else _OTHERS

    def position(param: Any) -> tuple[int, int]:
        if param.param_type_name != "option":
            return (0, 0)
        return (1, first.index(param.name)) if param.name in first else (2, order.index(param.rich_help_panel))

    command.params.sort(key=position)


def show_all(ctx: typer.Context, *, value: bool) -> None:
    """Print the whole help of a command, and end."""
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def _in_brief(command: Any, ctx: Any, formatter: Any) -> None:
    """Write what a command does, its arguments and main options, and its example."""
    command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(_summary(command))
    for title, rows in _sections(command, ctx).items():
        with formatter.section(title):
            formatter.write_dl(rows, col_max=24)
    closing = [*getattr(command, "closing", ()), *filter(None, [command.epilog])]
    if any(getattr(param, "rich_help_panel", None) for param in command.params):
        closing.append(f"All options: {ctx.command_path} --help-all")
    elif hasattr(command, "commands"):
        closing.append(f"What a command does: {ctx.command_path} COMMAND --help; all its options: --help-all")
    formatter.write("\n" + "\n".join(closing))


def _summary(command: Any) -> str:
    """Return the first paragraph of what a command says of itself."""
    return str(command.help).partition("\n\n")[0]


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return what the short help lists, by headings."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, sub in getattr(command, "commands", {}).items():
        found.setdefault(getattr(sub, "rich_help_panel", None) or "Commands", []).append((name, _summary(sub)))
    for param in command.params:
        if param.param_type_name == "argument":
            found.setdefault("Arguments", []).append((param.metavar, param.help or ""))
        elif not (param.hidden or param.rich_help_panel or param.name == "help_all"):
            found.setdefault("Options", []).append(param.get_help_record(ctx))
    return found


def _metavar(option: Any) -> str | None:
    """Return what stands for the value of an option that declares nothing: what its type says, nothing for a flag.

    Of words there is one for all where the text says them. None leaves it to typer, whose older versions do not show
    types.
    """
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    kinds = [member for member in typing.get_args(kind) if member is not type(None)]
    if typing.get_origin(kind) is not typing.Literal and len(kinds) == 1:
        kind = kinds[0]
    words: list[str] = []
    if typing.get_origin(kind) is typing.Literal:
        words = [str(word) for word in typing.get_args(kind)]
    elif isinstance(kind, type) and issubclass(kind, enum.Enum):
        words = [str(member.value) for member in kind]
    if words:
        return "WORD" if all(word in (option.help or "") for word in words) else "|".join(words)
    names: dict[Any, str] = {bool: " ", int: "N", float: "NUMBER", Path: "FILE", str: "TEXT"}
    return names.get(kind)


# What typer says of an option that cannot be used, in the words of every other message --------------------------------


# Parameters that name what is written.
_OUTPUTS = {"output", "report", "figures", "ledger"}


class Commands(TyperGroup):
    """The commands; a message about an option does not begin with the words of the library that checks it."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read what stands before the command."""
        with _in_plain_text():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with _in_plain_text():
            return super().invoke(ctx)


@contextlib.contextmanager
def _in_plain_text() -> Iterator[None]:
    """Have an error of typer's say what was typed, or a file's name, without anything that would hide."""
    try:
        yield
    except Exception as error:
        if isinstance(error, typer.BadParameter):
            error.message = _in_our_words(error)
        if hasattr(error, "format_message"):
            text = visible(error.format_message())
            error.format_message = lambda: text
        raise


def _in_our_words(error: typer.BadParameter) -> str:
    """Return what is wrong with the value of an option: the value, and what is to be written."""
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    if not details or not isinstance(details[0], dict) or details[0]["type"] == "value_error":
        return error.message.removeprefix("Value error, ")
    kind, limits = str(details[0]["type"]), details[0].get("ctx", {})
    given = details[0]["input"]
    shown = repr(given) if isinstance(given, str) else str(given)
    for name, words in _LIMITS.items():
        if name in limits:
            return f"{shown} is out of range; write a number {words} {limits[name]:,}"
    expected = next((words for name, words in _KINDS.items() if kind.startswith(name)), "what --help says")
    return f"{shown} cannot be read; write {expected}"


_LIMITS = {"ge": "of at least", "gt": "above", "le": "of at most", "lt": "below"}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number that is finite",
    "bool": "true or false",
    "path": "the name of a file",
}


def note_inputs(command: Any) -> Any:
    """Let a command, and all below it, compare the files of its inputs and outputs before any work; return it.

    Whatever names a file, and is no output, is an input: also an option that turns out to have no effect.
    """
    for sub in getattr(command, "commands", {}).values():
        note_inputs(sub)
    run = command.invoke
    names = [parameter.name for parameter in command.params if parameter.name not in _OUTPUTS]

    def invoke(ctx: Any) -> Any:
        for name in names:
            for path in _paths(ctx.params.get(name)):
                inputs.note_input(path)
        for name in _OUTPUTS:
            for path in _paths(ctx.params.get(name)):
                inputs.refuse_input(path)
        return run(ctx)

    command.invoke = invoke
    return command


def _paths(value: Any) -> Iterator[Path]:
    """Give what may be the name of a file in the value of a parameter."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _paths(entry)
    elif isinstance(value, os.PathLike):
        yield Path(value)
    elif isinstance(value, str):
        # As a model file is told from a policy's name.
        names = (name.strip() for name in value.split(","))
        yield from (Path(name) for name in names if "/" in name or name.lower().endswith(".json"))
