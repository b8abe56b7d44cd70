"""The one rule of exit codes of the commands that compare a simulated site with a log's record."""

from __future__ import annotations

import typer

DESCRIBING = ("evaluate", "tune", "learn", "site check", "site replay", "forecast")
RULE = (
    "Exit code: 0; 1 where the input cannot be used, or the site does not describe the log: its replay is far from "
    "the record, or most jobs do not fit the site; 2 where the command line is wrong."
)


def leave(*, describes: bool) -> None:
    """End a command with the exit code that says whether the site describes the log; all results are shown by now."""
    if not describes:
        raise typer.Exit(1)
