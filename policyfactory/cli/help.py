"""The help of the commands: the options that matter first, then the others by what they are about, and an example."""

from __future__ import annotations

import contextlib
import os
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from policyfactory.cli.exits import DESCRIBING, RULE
from policyfactory.core import inputs
from policyfactory.core.text import visible

__all__ = ["EXAMPLES", "Commands", "arrange", "note_inputs"]

# At most five of each command, in this order.
_FIRST: dict[str, tuple[str, ...]] = {
    "generate": ("output", "tuples", "trials", "workers", "overwrite"),
    "fit": ("output", "family", "form", "report", "figures"),
    "evaluate": ("policies", "metrics", "threshold", "windows", "output"),
    "tune": ("policies", "feedback", "period", "metrics", "output"),
    "learn": ("output", "tuples", "metric", "threshold", "workers"),
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
    "site import": ("output", "scheduler", "sacctmgr", "qos", "events"),
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
        "choosing_windows", "judged_windows", "parts", "part", "replicas", "loads", "decisions", "pairs",
    ),
    "How it is trained": ("window", "every_days", "first_days", "least", "trees", "leaves"),
    "How it searches": ("start", "restarts", "evaluations", "step", "objective", "pull"),
    "The scheduler": (
        "backfill", "site", "decide_by", "threshold", "ties", "overrun", "backfill_order", "compatibility",
    ),
    "What is measured and said": (
        "metrics", "statistic", "recorded", "analyses", "precision", "max_resamples", "seed", "starts", "convergence",
        "repeats", "top", "bootstrap", "certainty", "trace", "bands", "max_p99", "max_longest",
    ),
    "Protocols": ("only", "log", "traces"),
    "How it runs": (
        "workers", "backend", "scheduler", "time_limit", "output", "overwrite", "json", "as_json", "verbose", "report",
        "figures",
    ),
}  # fmt: skip

EXAMPLES: dict[str, str] = {
    "generate": "policyfactory generate site.swf.gz --tuples 1000 --output scores.csv",
    "fit": "policyfactory fit scores.csv --output model.json --report fit.md",
    "evaluate": "policyfactory evaluate site.swf.gz --policies FCFS,SAF,model.json --output results",
    "tune": "policyfactory tune site.swf.gz --policies FCFS,SPF,SAF --period 1w --output tuned",
    "learn": "policyfactory learn site.swf.gz --output learned",
    "predict": "policyfactory predict site.swf.gz --output predicted",
    "train": "policyfactory train site.swf.gz --family linear --output trained",
    "judge": "policyfactory judge site.swf.gz 'p*sqrt(q)' 'ln(e) - ln(s) + 0.4*ln(q)'",
    "distill": "policyfactory distill net.json site.swf.gz --output distilled",
    "export": "policyfactory export learned/policy.json --workload site.swf.gz --output job_submit.lua",
    "history update": "policyfactory history update sacct.txt --state history",
    "shadow": "policyfactory shadow slurmctld.log --accounting sacct.txt --output shadow",
    "review": "policyfactory review --before before.txt --after after.txt --policy policy.json --output review",
    "demo": "policyfactory demo",
    "workload show": "policyfactory workload show site.swf.gz",
    "workload clean": "policyfactory workload clean site.swf.gz --output clean.swf --report cleaned.json",
    "workload window": "policyfactory workload window site.swf.gz --from 2026-03-01 --to 2026-04-01 --output march.swf",
    "workload download": "policyfactory workload download kth",
    "workload import": "policyfactory workload import sacct.txt --output site.swf",
    "workload lublin": "policyfactory workload lublin --processors 256 --jobs 10000 --seed 1 --output lublin.swf",
    "workload estimates": "policyfactory workload estimates lublin.swf --seed 1 --output requests.swf",
    "workload resample": "policyfactory workload resample site.swf.gz --number 10 --output drawn",
    "site import": "policyfactory site import slurm.conf --sacctmgr dump.cfg --qos qos.txt --output site.toml",
    "site show": "policyfactory site show site.toml",
    "site check": "policyfactory site check site.swf.gz site.toml",
    "site replay": "policyfactory site replay site.swf.gz site.toml --output replayed",
    "policy list": "policyfactory policy list",
    "policy show": "policyfactory policy show SAF",
    "policy explain": "policyfactory policy explain F1 --job p=3600,q=16,r=86400",
}

_OTHERS = "Further options"


def arrange(command: Any, path: str = "") -> Any:
    """Put the options of a command and of all below it into groups, and an example at its end; return it.

    Parameters
    ----------
    command : click.Command
        What typer has made of the functions.
    path : str
        Its name, with those of the groups that it is in.
    """
    for name, sub in getattr(command, "commands", {}).items():
        arrange(sub, f"{path} {name}".strip())
    if command.help:
        # Paragraphs as wide as the terminal, whatever the width of the source.
        command.help = "\n\n".join(" ".join(part.split()) for part in command.help.split("\n\n"))
        command.help += f"\n\n{RULE}" if path in DESCRIBING else ""
    if example := EXAMPLES.get(path):
        command.epilog = f"Example: {example}"
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    for one in options:
        one.metavar = one.metavar or _metavar(one)
    first = _FIRST.get(path, ())
    if not first:
        return command
    topics = {name: topic for topic, names in _TOPICS.items() for name in names}
    order = [*_TOPICS, _OTHERS]
    for one in options:
        if one.name not in first:
            one.rich_help_panel = topics.get(one.name, _OTHERS) if len(options) > len(first) + 4 else _OTHERS

    def place(one: Any) -> tuple[int, int]:
        if one.param_type_name != "option" or one.name == "help":
            return (0 if one.param_type_name == "argument" else 3, 0)
        return (1, first.index(one.name)) if one.name in first else (2, order.index(one.rich_help_panel))

    command.params.sort(key=place)
    return command


def _metavar(option: Any) -> str | None:
    """Return what stands for the value of an option: nothing for a flag, one word for many that its text says.

    None leaves it to typer, whose older versions do not show types.
    """
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    kinds = [one for one in typing.get_args(kind) if one is not type(None)]
    if typing.get_origin(kind) is not typing.Literal and len(kinds) == 1:
        kind = kinds[0]
    if typing.get_origin(kind) is typing.Literal:
        words = [str(word) for word in typing.get_args(kind)]
        return "WORD" if all(word in (option.help or "") for word in words) else "|".join(words)
    names: dict[Any, str] = {bool: " ", int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}
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
    names = [one.name for one in command.params if one.name not in _OUTPUTS]

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
        for one in value:
            yield from _paths(one)
    elif isinstance(value, os.PathLike):
        yield Path(value)
    elif isinstance(value, str):
        # As a model file is told from a policy's name.
        names = (name.strip() for name in value.split(","))
        yield from (Path(name) for name in names if "/" in name or name.lower().endswith(".json"))
