"""What typer says of an option that cannot be used, in the words of every other message."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from policyfactory.core import inputs
from policyfactory.core.text import visible

__all__ = ["Commands", "note_inputs"]

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
