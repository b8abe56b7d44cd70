"""What typer says of an option that cannot be used, in the words of every other message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from policyfactory.core import inputs

__all__ = ["Commands", "note_arguments"]


class Commands(TyperGroup):
    """The commands; a message about an option does not begin with the words of the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def note_arguments(command: Any) -> Any:
    """Let a command, and all below it, note the files of its arguments as inputs before any work; return it.

    What is written is always named by an option. Files that options name are noted when they are read.
    """
    for sub in getattr(command, "commands", {}).values():
        note_arguments(sub)
    run = command.invoke
    names = [one.name for one in command.params if one.param_type_name == "argument"]

    def invoke(ctx: Any) -> Any:
        for name in names:
            value = ctx.params.get(name)
            for one in value if isinstance(value, list | tuple) else [value]:
                if isinstance(one, str | os.PathLike):
                    inputs.note_input(Path(one))
        return run(ctx)

    if names:
        command.invoke = invoke
    return command
