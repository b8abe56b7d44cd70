"""The files of a fit: a model for each formula, the report, the pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from policyfactory.core.files import atomic_write, together
from policyfactory.core.outputs import refuse_earlier
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.fit.model import Examined, build_model
from policyfactory.fit.result import Fit
from policyfactory.fit.run import FitResults
from policyfactory.policy.store import Model, save_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RANKING", "models_of", "write_fit"]

RANKING = "ranking.png"  # a picture of every fit


def write_fit(
    run: FitResults,
    *,
    models: Path | None = None,
    report: Path | None = None,
    figures: Path | None = None,
    overwrite: bool = False,
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
    overwrite : bool
        Replace earlier files.

    Returns
    -------
    list of Path
        What was written, in this order.

    Raises
    ------
    OutputError
        If a file is there and must not be replaced, or cannot be written.
    """
    made = {} if models is None else models_of(run, models.stem)
    files = {} if models is None else {models.with_name(f"{name}.json"): model for name, model in made.items()}
    pictures = {} if figures is None else {figures / name: drawn for name, drawn in _pictures(run).items()}
    curve = None if figures is None or run.certainty is None else figures / "certainty.csv"
    refuse_earlier(*files, *pictures, curve, report, overwrite=overwrite)
    with together():
        for path, model in files.items():
            save_model(model, path)
        for path, picture in pictures.items():
            save_picture(keeps_settings(picture.draw)(), path, dpi=picture.dpi)
        if curve is not None and run.certainty is not None:
            from policyfactory.fit.certainty import certainty_csv

            atomic_write(curve, certainty_csv(run.certainty))
        if report is not None:
            from policyfactory.fit.report import to_markdown

            places = {path: Path(os.path.relpath(path, report.parent)).as_posix() for path in pictures}
            atomic_write(report, to_markdown(run, [(one.caption, places[path]) for path, one in pictures.items()]))
    return [*files, *pictures, *([report] if report is not None else [])]


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


class _Picture(NamedTuple):
    """What a picture shows, what draws it, and with how many dots an inch."""

    caption: str
    draw: Callable[[], Figure]
    dpi: int = 150


def _pictures(run: FitResults) -> dict[str, _Picture]:
    """Return the pictures of a fit by the names of their files."""
    from policyfactory.fit import picture
    from policyfactory.fit.polynomials import POLYNOMIALS

    sample, winner = run.sample, run.winner.fit

    def priority(fitted: Fit) -> _Picture:
        drawn = partial(picture.draw_priority, fitted, sample)
        return _Picture(f"Order of jobs under {fitted.name}", drawn, picture.DPI)

    ranking = _Picture("Mean absolute error of the best formulas", partial(picture.draw_ranking, run))
    pictures = {"priority.png": priority(winner), RANKING: ranking}
    for suffix, examined in _suffixes(run):
        if examined.fit is not winner and examined.fit.family != "polynomials":
            pictures[f"priority-{suffix}.png"] = priority(examined.fit)
    polynomials = {examined.fit.name: examined.fit for examined in run.examined if examined.fit.family == "polynomials"}
    if polynomials:
        fits = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
        drawn = partial(picture.draw_polynomials, fits, sample)
        pictures["polynomials.png"] = _Picture("Order of jobs under the polynomials", drawn, picture.DPI)
    if run.certainty is not None:
        drawn = partial(picture.draw_certainty, run.certainty)
        pictures["certainty.png"] = _Picture("How many tuples until the form is certain", drawn)
    return pictures
