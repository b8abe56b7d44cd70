"""What typer says of an option that cannot be used, in the words of every other message."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["Commands"]


class Commands(TyperGroup):
    """The commands; a message about an option does not begin with the words of the library that checks it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
