"""The options of ``policyfactory evaluate`` and ``tune``: those of an evaluation as they are declared, and our own."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from policyfactory.cli.completion import COMPLETERS
from policyfactory.evaluate.plain import Declared

__all__ = [
    "Json",
    "Log",
    "Only",
    "Output",
    "Overwrite",
    "Sources",
    "Starts",
    "StartsIn",
    "Traces",
    "Verbose",
    "with_options",
]

Starts = Literal["none", "csv", "batsim", "trace"]

Sources = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="LOG",
        help="Logs in the Standard Workload Format (.swf, .swf.gz), or protocols (.toml); "
        "without any, the embedded Lublin workload.",
    ),
]
Only = Annotated[
    list[str] | None, typer.Option(metavar="EXPERIMENT", help="Of a protocol, this experiment; can be repeated.")
]
Log = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Of a protocol, this log; can be repeated.")]
Traces = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of a protocol's logs (default: traces, then the protocol's folder)."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder for report, CSV, JSON and pictures (protocols: results/NAME)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier evaluation in the folder.")]
StartsIn = Annotated[
    Starts,
    typer.Option(
        metavar="WORD",
        help="Write the start of each job: our columns (csv), Batsim's jobs.csv (batsim), for Perfetto (trace).",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Of a protocol, print all tables and not one screen.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def with_options(
    declared: Iterable[Declared],
    defaults: Mapping[str, Any] | None = None,
    choices: Mapping[str, Any] | None = None,
    more: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command the options that are declared, in place of its ``**options``.

    Parameters
    ----------
    declared : iterable of Declared
        The options.
    defaults : mapping of str to object, optional
        Defaults that this command has of its own, by the names of the options.
    choices : mapping of str to type, optional
        Words that this command takes, where it takes fewer.
    more : mapping of str to str, optional
        What else an option means to this command.
    """
    own_defaults, own_choices, own_texts = defaults or {}, choices or {}, more or {}

    def give(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        made = []
        for one in declared:
            text = "; ".join([one.option.text, *filter(None, [own_texts.get(one.name)])])
            default = own_defaults.get(one.name, one.default)
            made.append(_parameter(one, default, own_choices.get(one.name, one.kind), text))
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += made if parameter.kind is parameter.VAR_KEYWORD else [parameter]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return give


def _parameter(declared: Declared, default: Any, kind: Any, text: str) -> inspect.Parameter:
    option, origin = declared.option, typing.get_origin(kind)
    flags = option.flags or (f"--{declared.name.replace('_', '-')}",)
    stated = option.stated if default is None or origin in {tuple, dict} else ""
    more = {tuple: "; separated by commas, can be repeated", dict: "; can be repeated"}.get(origin, "")
    if origin is Literal:
        more = f": {', '.join(typing.get_args(kind))}"
    if origin in {tuple, dict}:
        # Can be repeated, so that a default would be added to: it is applied when nothing is given.
        kind, stated, default = list[str], stated or ", ".join(default or ()), None
    elif origin is typing.Union:
        kind, flags, stated, default = bool, _both(flags[0]), stated or str(default), None
    if default is None:
        kind = kind | None
    made = typer.Option(
        *flags,
        help=_help(text + more, option.page, stated),
        metavar=option.metavar or None,
        autocompletion=COMPLETERS.get(declared.name),
    )
    return inspect.Parameter(
        declared.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, made]
    )


def _both(flag: str) -> tuple[str]:
    return (f"{flag}/--no-{flag.removeprefix('--')}",)


def _help(text: str, page: str, default: str) -> str:
    sentence = f"{text[0].upper()}{text[1:]}".replace("`", "")
    notes = [f"default: {default}"] * bool(default) + [f"docs/{page.partition('#')[0]}"] * bool(page)
    return f"{sentence} ({'; '.join(notes)})." if notes else f"{sentence}."
