"""The reference pages, made from what they describe: ``python -m policyfactory.cli.reference [PAGE]``.

Without a page, docs/commands.md is printed, made from the commands. With one (docs/protocols.md), the page is printed
with the lists of keys that its marks ask for, made from the declared options.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

_MARK = re.compile(r"(<!-- keys: (\w+) -->\n\n)(?:- `[^\n]*\n)*")

_HEAD = """# Commands

Results go to stdout or to the files that you name, progress and notes to stderr. The exit code is 0 for success, 1 if
the input cannot be used (the message says what to do), and 2 if the command line is wrong. `evaluate`, `tune`, `learn`,
`forecast`, `site check` and `site replay` also end with 1 where a site does not describe the log: its replay is far
from the record, or most jobs do not fit the site. A default stands in brackets at the end of a line, an argument that
may be left out in square brackets. This page is made from the commands (`make docs/commands.md`), and a test fails when
it is out of date.
"""


# An option that this many commands have in the same words stands once, before all of them; what they write does not.
_MANY = 4
# So many options that an earlier command has in the same words are named only, with a link to that command.
_LIKE = 4


def render() -> str:
    """Return the page as Markdown."""
    from policyfactory.cli.main import build_command

    command = build_command()
    counted = Counter(pair for rows in _tables(command) for pair in rows if pair[0].startswith("- `-"))
    common: dict[str, str] = {}
    for (row, default), many in counted.most_common():
        if many >= _MANY and not row.startswith("- `--output "):
            common.setdefault(row, default)
    lines = [_HEAD, "## Options of many commands\n", *(row + default for row, default in common.items()), ""]
    _describe(command, "policyfactory", common, {}, lines)
    return "\n".join(lines)


def _tables(command: Any) -> Iterator[list[tuple[str, str]]]:
    for sub in getattr(command, "commands", {}).values():
        yield from _tables(sub)
    yield _rows(command)


def _rows(command: Any) -> list[tuple[str, str]]:
    """Return the line of each parameter, and its default in brackets."""
    shown = [option for option in command.params if not getattr(option, "hidden", False) and option.name != "help_all"]
    return [(_row(parameter), _default(parameter)) for parameter in shown]


def _describe(
    command: Any, path: str, common: dict[str, str], known: dict[str, dict[str, str]], lines: list[str]
) -> None:
    """Append a command's section; ``known`` has the lines of each command before it, with their defaults."""
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        if path != "policyfactory":
            lines += [f"## {path}", "", inspect.cleandoc(command.help or ""), ""]
        for name in subcommands:
            _describe(subcommands[name], f"{path} {name}", common, known, lines)
        return
    level = "##" if path.count(" ") == 1 else "###"
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    lines += [f"{level} {path}", "", "\n\n".join(text for text in paragraphs if not text.startswith("Exit code:")), ""]
    lines += [f"Example: `{command.epilog.removeprefix('Example: ')}`", ""]
    rows = dict(_rows(command))
    alone = {row: default for row, default in rows.items() if row not in common}
    likest = max(known, key=lambda name: len(known[name].items() & alone.items()), default="")
    like = known.get(likest, {}).items() & alone.items()
    like = like if len(like) >= _LIKE else set()
    if told := [row + default for row, default in alone.items() if (row, default) not in like]:
        lines += [*told, ""]
    if like:
        names = "; ".join(_name(row) for row, default in alone.items() if (row, default) in like)
        lines += [f"As in [{likest}](#{likest.replace(' ', '-')}): {names}.", ""]
    if also := [_name(row) + default * (default != common[row]) for row, default in rows.items() if row in common]:
        lines += [f"As in [many commands](#options-of-many-commands): {'; '.join(also)}.", ""]
    known[path] = rows


def _name(row: str) -> str:
    return row.removeprefix("- ").split(": ")[0]


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).strip("[].").upper() + ("..." if parameter.nargs == -1 else "")
        name = f"`{name}`" if parameter.required else f"`[{name}]`"
    else:
        taken = (parameter.metavar or "").strip()
        name = ", ".join(
            f"`{option} {taken}`".replace(" `", "`") for option in (*parameter.opts, *parameter.secondary_opts)
        )
    return f"- {name}: " + " ".join((getattr(parameter, "help", None) or "").split())


def _default(parameter: Any) -> str:
    if parameter.required:
        return "" if parameter.param_type_name == "argument" else " (required)"
    value = parameter.default
    if value is None or value is False or callable(value) or value in ((), [], ""):
        return ""
    return f" (`{parameter.opts[0] if value is True else getattr(value, 'value', value)}`)"


# Lists of keys. -------------------------------------------------------------------------------------------------------


def with_tables(page: str) -> str:
    """Return a page with the list of keys behind each of its marks, ``<!-- keys: CLASS -->``, as declared today."""
    from policyfactory.evaluation import options

    return _MARK.sub(lambda mark: mark[1] + "".join(_keys(getattr(options, mark[2]))), page)


def _keys(table: Any) -> list[str]:
    from policyfactory.evaluation.options import key_of

    rows = []
    for name, field in table.model_fields.items():
        key = key_of(field)
        page = f" ([more]({key.page}))" if key.page else ""
        default = key.stated or _written(field)
        default = f"; {'default: ' * (not field.is_required())}{default}" * bool(default)
        kind = key.kind or _kind(field.annotation, field.metadata)
        rows.append(f"- `{name}` ({kind}): {key.text}{page}{default}\n")
    return rows


def _kind(annotation: Any, declared: Sequence[Any] = ()) -> str:
    """Return in words what is written for a type, with its limits."""
    from policyfactory.evaluation.options import OptionTable, plain_type
    from policyfactory.evaluation.protocol_content import span

    kind, metadata = plain_type(annotation)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in of)
    if origin is dict or (isinstance(kind, type) and issubclass(kind, OptionTable)):
        return "tables" if origin is dict and _kind(of[1]) != "text" else "table"
    if origin is tuple:
        return f"list of {_kind(of[0]).removesuffix('s')}s"
    return names.get(kind, "text") + span([*declared, *metadata], most=2**31)


def _written(field: Any) -> str:
    """Return the default of a key as it is written; empty where nothing is."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, tuple):
        return ", ".join(f"`{entry}`" for entry in default)
    if default is None or default == "" or not isinstance(default, bool | int | float | str):
        return ""
    return f"`{str(default).lower()}`"


if __name__ == "__main__":
    sys.stdout.write(with_tables(Path(sys.argv[1]).read_text(encoding="utf-8")) if sys.argv[1:] else render())
