"""The reference page of all commands, made from the commands themselves: ``python -m policyfactory.cli.reference``."""

from __future__ import annotations

import inspect
import sys
from typing import Any

__all__ = ["render"]

_HEAD = """# Commands

Results go to stdout or to the files that you name, progress and notes to stderr. The exit code is 0 for success, 1 if
the input cannot be used (the message says what to do), and 2 if the command line is wrong. This page is made from the
commands (`make docs/commands.md`), and a test fails when it is out of date.
"""


def render() -> str:
    """Return the page as Markdown."""
    from typer.main import get_command

    from policyfactory.cli.main import build_app

    lines = [_HEAD]
    _describe(get_command(build_app()), "policyfactory", lines)
    return "\n".join(lines)


def _describe(command: Any, path: str, lines: list[str]) -> None:
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        if path != "policyfactory":
            lines += [f"## {path}", "", inspect.cleandoc(command.help or ""), ""]
        for name in subcommands:
            _describe(subcommands[name], f"{path} {name}", lines)
        return
    level = "##" if path.count(" ") == 1 else "###"
    lines += [f"{level} {path}", "", inspect.cleandoc(command.help or ""), ""]
    lines += ["| argument or option | meaning | default |", "|---|---|---|"]
    for parameter in command.params:
        if not getattr(parameter, "hidden", False) and parameter.name != "help":
            lines.append(_row(parameter))
    lines.append("")


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).strip("[].").upper() + ("..." if parameter.nargs == -1 else "")
        name = f"`{name}`" if parameter.required else f"`[{name}]`"
    else:
        name = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    text = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    return f"| {name} | {text} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value is False or callable(value) or value in ((), [], ""):
        return ""
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    sys.stdout.write(render())
