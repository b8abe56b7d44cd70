"""The files of a fit: a model for each formula, the report, the pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.artefact import atomic_write
from policyfactory.core.picture import save_picture
from policyfactory.fit.model import Examined, build_model
from policyfactory.fit.run import FitResults
from policyfactory.policy.store import Model, save_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["models_of", "write_fit"]


def write_fit(
    run: FitResults, *, models: Path | None = None, report: Path | None = None, figures: Path | None = None
) -> list[Path]:
    """Write a fit to files.

    Parameters
    ----------
    run : FitResults
        The fit.
    models : Path, optional
        Model file of the winner by MAE, ``NAME.json``; each of several formulas also goes to its own: ``NAME-f1.json``
        (the best form), ``NAME-lin.json``, ...
    report : Path, optional
        The report as Markdown.
    figures : Path, optional
        An existing folder for the pictures.

    Returns
    -------
    list of Path
        What was written, in this order.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    written = []
    if models is not None:
        for name, model in models_of(run, models.stem).items():
            written.append(models.with_name(f"{name}.json"))
            save_model(model, written[-1])
    pictures = _draw(run, figures) if figures is not None else []
    written += [path for _, path in pictures]
    if report is not None:
        from policyfactory.fit.report import to_markdown

        links = [(caption, Path(os.path.relpath(path, report.parent)).as_posix()) for caption, path in pictures]
        atomic_write(report, to_markdown(run, links))
        written.append(report)
    return written


def models_of(run: FitResults, name: str) -> dict[str, Model]:
    """Return the models of a fit by name: the winner as ``name``, each of several formulas by a name of its own.

    Parameters
    ----------
    run : FitResults
        The fit.
    name : str
        Of the winner; the others are called ``name-f1`` (the best form), ``name-lin``, ...
    """
    named = [(name, run.winner)]
    if len(run.examined) > 1:
        named += [(f"{name}-{suffix}", examined) for suffix, examined in _suffixes(run)]
    return {own: build_model(examined, run.sample, name=own, seed=run.options.seed) for own, examined in named}


def _suffixes(run: FitResults) -> Iterator[tuple[str, Examined]]:
    """Yield each formula with what follows the name in its file: f1 for the best form, else its own name."""
    place = 0
    for examined in run.examined:
        place += examined.fit.family == "forms"
        own = re.sub(r"[^a-z0-9.]+", "-", examined.fit.name.lower()).strip("-") or "form"
        yield f"f{place}" if examined.fit.family == "forms" else own, examined


def _draw(run: FitResults, folder: Path) -> list[tuple[str, Path]]:
    """Draw the pictures; return the caption and the file of each."""
    from policyfactory.fit import picture
    from policyfactory.fit.certainty import certainty_csv
    from policyfactory.fit.polynomials import POLYNOMIALS

    def _save(figure: Figure, path: Path) -> Path:
        return save_picture(figure, path, dpi=picture.DPI)

    sample, winner = run.sample, run.winner.fit
    drawn = [
        (f"Order of jobs under {winner.name}", _save(picture.draw_priority(winner, sample), folder / "priority.png")),
        ("Mean absolute error of the best formulas", save_picture(picture.draw_ranking(run), folder / "ranking.png")),
    ]
    for suffix, examined in _suffixes(run):
        fitted = examined.fit
        if fitted is not winner and fitted.family != "polynomials":
            path = _save(picture.draw_priority(fitted, sample), folder / f"priority-{suffix}.png")
            drawn.append((f"Order of jobs under {fitted.name}", path))
    polynomials = {examined.fit.name: examined.fit for examined in run.examined if examined.fit.family == "polynomials"}
    if polynomials:
        fits = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
        path = _save(picture.draw_polynomials(fits, sample), folder / "polynomials.png")
        drawn.append(("Order of jobs under the polynomials", path))
    if run.certainty is not None:
        path = save_picture(picture.draw_certainty(run.certainty), folder / "certainty.png")
        drawn.append(("How many tuples until the form is certain", path))
        atomic_write(folder / "certainty.csv", certainty_csv(run.certainty))
    return drawn
