"""``policyfactory fit``: from a score table to formulas."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.core.errors import UsageError
from policyfactory.core.files import check_directory, check_output, exclusive, refuse_earlier
from policyfactory.core.random import check_seed
from policyfactory.report.terminal import note, print_json, progress, say, show_section, warn

if TYPE_CHECKING:
    from policyfactory.fitting.fits import Fits


class FormFamily(enum.StrEnum):
    """What can be fitted."""

    forms = "forms"
    polynomials = "polynomials"
    linear = "linear"
    all = "all"


def fit(
    context: typer.Context,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Score table: the CSV file of policyfactory generate.")
    ],
    family: Annotated[
        list[FormFamily] | None,
        typer.Option(
            help="forms: the 576 of the SC'17 paper; polynomials: LIN to SEX; linear: p, q, r, p*q; can be repeated "
            "(default: forms, or none with --form).",
        ),
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]EXPR",
            help="A form of your own with named coefficients, such as 'a*p**b*q + c*log10(r)'; can be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="NAME.json",
            help="Model file of the winner by MAE; of several formulas each also goes to its own: NAME-lin.json, "
            "NAME-f1.json (the best of the 576), ...",
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(min=1, help="How many of the 576 forms to show in full and write: NAME-f1.json, ..."),
    ] = 1,
    report: Annotated[Path | None, typer.Option(metavar="FILE.md", help="Write the report as Markdown.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the pictures into this folder.")] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, max=100_000, help="Resamplings of the tuples for ranks and intervals; 0 for none.")
    ] = 200,
    certainty: Annotated[
        bool, typer.Option("--certainty", help="Also measure how many tuples it takes until the form is certain.")
    ] = False,
    overwrite: option.Overwrite = False,
    seed: Annotated[int, typer.Option(help="Seed of the resampling and of the starts of nonlinear forms.")] = 1,
    json: option.Json = False,
) -> None:
    """Fit formulas to a score table, rank them, and say how far to trust them.

    Example: policyfactory fit scores.csv --output model.json --report fit.md
    """
    from policyfactory.fitting import fits as library
    from policyfactory.fitting.fits import RANKING
    from policyfactory.trials.table import read_score_table

    check_seed(seed)
    families = _families(family, form)
    if "forms" not in families and option.options_given(context, {"top"}):
        raise UsageError("--top is for the 576 forms, which are not fitted; leave it out, or add --family forms")
    _check_outputs(output, report, figures)
    scores = read_score_table(table)
    with exclusive(output, report, None if figures is None else figures / "pictures"):
        # What else is written is known when it is fitted.
        refuse_earlier(output, report, None if figures is None else figures / RANKING, overwrite=overwrite)
        with progress() as bar:
            fits = library.fit(
                scores,
                [*families, *(form or ())],
                top=top,
                bootstrap=bootstrap,
                seed=seed,
                certainty=certainty,
                progress=_stages(bar),
            )
        if not bootstrap and option.options_given(context, {"seed"}) and all(item.fit.is_linear for item in fits):
            raise UsageError("--seed is for --bootstrap and for nonlinear forms, and there is neither; leave it out")
        files = fits.save(output, report=report, figures=figures, overwrite=overwrite)
        show_fit(fits, as_json=json)
    for text in form or ():
        if names := _named_as_variables(text):
            note(f"{text}: {names} are coefficients here; elsewhere formulas have variables of these names")
    if files:
        note("written: " + ", ".join(str(path) for path in files))


def _named_as_variables(text: str) -> str:
    """Return the coefficients of a form that have the name of a variable, but for c, which many use as one."""
    from policyfactory.fitting.forms import split_name
    from policyfactory.fitting.sample import parse_form
    from policyfactory.policy.expression import VARIABLES

    return ", ".join(sorted(set(parse_form(split_name(text, "")[1]).coefficients) & set(VARIABLES) - {"c"}))


def _families(given: list[FormFamily] | None, forms: list[str] | None) -> tuple[str, ...]:
    from policyfactory.fitting.fits import FAMILIES

    if given is None:
        return () if forms else ("forms",)
    chosen = {member.value for member in given}
    return tuple(family for family in FAMILIES if "all" in chosen or family in chosen)


def _check_outputs(output: Path | None, report: Path | None, figures: Path | None) -> None:
    """Refuse what could not be written before any work is done."""
    from policyfactory.policy.policy import Policy

    if output is not None:
        if output.suffix != ".json":
            raise UsageError(
                f"{output}: a model file ends in .json; write for example --output {output.with_suffix('.json')}"
            )
        check_output(output)
        # The stem becomes the policy's name.
        Policy(output.stem, "p")
    if report is not None:
        check_output(report)
    if figures is not None:
        check_directory(figures)


def _stages(bar: Any) -> Callable[[str, int], Callable[[], None]]:
    """Return what shows each stage of a fit as a line of the bar."""

    def begin(title: str, total: int) -> Callable[[], None]:
        task = bar.add_task(title, total=total)
        return lambda: bar.advance(task)

    return begin


def show_fit(fits: Fits, *, as_json: bool) -> None:
    """Print the formulas and how far to trust them."""
    from policyfactory.fitting.fits import report_tables, sentences
    from policyfactory.report.sections import Section

    if as_json:
        print_json(fits.as_dict())
    else:
        show_section(Section("fit", "Fit", tables=tuple(report_tables(fits))))
        for line in sentences(fits):
            say(line)
    for line in fits.winner.diagnosis.warnings:
        warn(f"{fits.winner.fit.name}: {line}")
    others = sum(bool(examined.diagnosis.warnings) for examined in fits.examined[1:])
    if others:
        note(
            f"other formulas shown that have warnings: {others} of {len(fits.examined) - 1}; "
            "--report FILE.md has them all"
        )
