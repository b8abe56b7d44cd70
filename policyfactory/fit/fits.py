"""`policyfactory.fit`: formulas fitted to a score table, best first, each with its policy, summary and picture."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.files import atomic_write, refuse_earlier, together
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.core.text import facts_html, facts_text, shortened
from policyfactory.fit.model import Examined, build_model, examine, shown_term, sort_key
from policyfactory.fit.regression import Fit
from policyfactory.fit.run import FAMILIES, FitOptions, FitResults, Progress, fit_table, no_progress
from policyfactory.policy.algebra import SHOWN_DIGITS
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, model_to_json, save_model
from policyfactory.trials.table import ScoreTable, read_score_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["RANKING", "Fits", "Fitted", "fit", "models_of", "write_fit"]

_SHOWN = 10


class Fitted:
    """One fitted formula.

    Parameters
    ----------
    fit : Fit
        Terms, coefficients and errors.
    results : FitResults
        The fits among which it is.
    """

    def __init__(self, fit: Fit, results: FitResults) -> None:
        self.fit = fit
        self.results = results

    @property
    def name(self) -> str:
        """Its name: ``LIN``, ... for a polynomial, that of the user's form, else the terms."""
        return self.fit.name

    @property
    def formula(self) -> str:
        """The shortest formula that orders jobs as the fit does; lower runs first."""
        return self.policy.formula

    @property
    def mae(self) -> float:
        """Mean absolute error of the score."""
        return self.fit.mae

    @property
    def rank(self) -> int:
        """Its rank by mean absolute error, from 1."""
        return self.results.rank(self.fit)

    @functools.cached_property
    def examined(self) -> Examined:
        """Standard errors, inflation factors, what resampling found, and what speaks against the formula."""
        results = self.results
        known = (item for item in results.examined if item.fit is self.fit)
        return next(known, None) or examine(self.fit, results.sample, results.resampled.of(self.fit))

    @functools.cached_property
    def policy(self) -> Policy:
        """The policy that sorts by this formula."""
        return self.model().policy

    def model(self, name: str | None = None) -> Model:
        """Return the formula with coefficients, diagnostics and origin: what `policyfactory.save_model` writes."""
        results = self.results
        return build_model(self.examined, results.sample, name=name or self.fit.name[:100], seed=results.options.seed)

    def priority(self, p: ArrayLike, q: ArrayLike, r: ArrayLike | None = None) -> NDArray[np.float64] | float:
        """Return the sort key of a job (or of each job of arrays); lower runs first.

        Parameters
        ----------
        p, q, r : float or array
            Requested seconds, processors, submit seconds since the start of the window; r may be left out where the
            formula has none.

        Raises
        ------
        UsageError
            If the formula has r and none is given.
        """
        if r is None and "r" in self.policy.variables:
            raise UsageError(
                f"the sort key {shortened(self.formula, 60)} has r; give it as well: priority(p, q, r=...), the submit "
                "time in s since the start of the window"
            )
        jobs = p, q, 0.0 if r is None else r
        values = self.policy.scores(*jobs)
        return values if any(map(np.ndim, jobs)) else float(values[0])

    def summary(self) -> str:
        """Return the formula, its errors, coefficients and warnings as text."""
        examined, candidate = self.examined, self.examined.candidate
        facts = self._facts()
        if candidate is not None and len(candidate.mae):
            facts["first of all fits"] = f"in {candidate.first:.0%} of {len(candidate.mae)} resamplings of the tuples"
        errors = zip(self.fit.terms, self.fit.coefficients, examined.inference.stderr, strict=True)
        for term, value, stderr in errors:
            facts[f"{term.coefficient}, of {shown_term(term)}"] = (
                f"{value:.{SHOWN_DIGITS}g} (standard error {stderr:.2g}, {term.unit})"
            )
        for number, warning in enumerate(examined.diagnosis.warnings, start=1):
            facts[f"warning {number}"] = warning
        return facts_text(repr(self)[1:-1], facts)

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture of the order of jobs over p, q and r."""
        from policyfactory.fit.report import draw_priority

        return draw_priority(self.fit, self.results.sample)

    def _facts(self) -> dict[str, str]:
        place = f"{self.rank} of {len(self.results.fits)}"
        return {
            "sort key": sort_key(self.fit, digits=SHOWN_DIGITS),
            "rank": place,
            "mean absolute error": f"{self.mae:.5g}",
        }

    def __repr__(self) -> str:
        return f"<Fitted {self.name}: mean absolute error {self.mae:.4g}, rank {self.rank}>"

    def _repr_html_(self) -> str:
        return facts_html(self.name, self._facts())


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fits(Sequence[Fitted]):
    """All fits of a score table, best mean absolute error first.

    Parameters
    ----------
    results : FitResults
        The rows, the fits, their resampling and diagnoses.
    """

    results: FitResults

    def __len__(self) -> int:
        return len(self.results.fits)

    @overload
    def __getitem__(self, place: int) -> Fitted: ...
    @overload
    def __getitem__(self, place: slice) -> list[Fitted]: ...
    def __getitem__(self, place: int | slice) -> Fitted | list[Fitted]:
        if isinstance(place, slice):
            return [Fitted(fit, self.results) for fit in self.results.fits[place]]
        return Fitted(self.results.fits[place], self.results)

    def summary(self) -> str:
        """Return in sentences what was fitted, what is best, and how certain that is."""
        from policyfactory.fit.report import sentences

        return "\n".join(sentences(self.results))

    def frame(self) -> pd.DataFrame:
        """Return one row a fit: rank, name, family, mean absolute error (also on held-out tuples), formula."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for rank, fit in enumerate(self.results.fits, start=1):
            candidate = self.results.resampled.of(fit)
            held_out = np.nan if candidate is None else candidate.held_out
            rows.append({"rank": rank, "name": fit.name, "family": fit.family, "mae": fit.mae, "held_out": held_out})
            rows[-1]["formula"] = fit.text
        return pd.DataFrame(rows).set_index("rank")

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture of the errors of the best fits."""
        from policyfactory.fit.report import draw_ranking

        return draw_ranking(self.results)

    @keeps_settings
    def save(
        self,
        models: Path | None = None,
        *,
        report: Path | None = None,
        figures: Path | None = None,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write the fits to files; see `policyfactory.fit.fits.write_fit`."""
        return write_fit(self.results, models=models, report=report, figures=figures, overwrite=overwrite)

    def as_dict(self) -> dict[str, Any]:
        """Return the ranking and the models of what was examined as JSON values."""
        results, sample, certainty = self.results, self.results.sample, self.results.certainty
        content: dict[str, Any] = {
            "table": {
                "name": sample.name,
                "rows": len(sample),
                "tuples": sample.tuples,
                "left_out": sample.left_out,
            },
            "ranking": [
                {
                    "rank": place,
                    "name": fit.name,
                    "family": fit.family,
                    "mae": fit.mae,
                    "formula": fit.text,
                    "aliases": list(fit.aliases),
                }
                for place, fit in enumerate(results.fits, start=1)
            ],
            "not_finite": list(results.enumerated.undefined) if results.enumerated else [],
            "models": {item.fit.name: model_to_json(Fitted(item.fit, results).model()) for item in results.examined},
        }
        if certainty is not None:
            content["certainty"] = {
                "tuples": certainty.sizes.tolist(),
                "first": {fit.name: row.tolist() for fit, row in zip(certainty.fits, certainty.first, strict=True)},
                "certain_from": certainty.certain_from(),
            }
        return content

    def __repr__(self) -> str:
        return f"<Fits of {self.results.sample.name}: {len(self)} formulas, best {self.results.fits[0].name}>"

    def _repr_html_(self) -> str:
        best = {f"{item.rank}. {item.name}": f"{item.mae:.5g}" for item in self[:_SHOWN]}
        return facts_html(f"{len(self)} formulas by mean absolute error", best)


def fit(
    scores: ScoreTable | Path | str,
    family: str | Sequence[str] = "forms",
    *,
    top: int = 1,
    bootstrap: int = 200,
    seed: int = 1,
    certainty: bool = False,
    progress: Progress = no_progress,
) -> Fits:
    """Fit formulas to a score table.

    Parameters
    ----------
    scores : ScoreTable, or path of one
        The scores.
    family : str or sequence of str
        ``"forms"`` (the 576 of SC'17), ``"polynomials"``, ``"linear"``, or a formula with named coefficients, such as
        ``"a*p**b*q + c*log10(r)"`` or ``"MINE=a*p*q + b*r"``; or several of these.
    top : int
        How many of the forms are examined at once; the others when they are asked for.
    bootstrap : int
        Resamplings of the tuples; 0 for none.
    seed : int
        Of the resampling and of the starting points of nonlinear forms.
    certainty : bool
        Whether to measure how many tuples it takes until the best form is certain.
    progress : callable
        Called with the title and the number of steps of each longer stage; returns what to call after each step.

    Raises
    ------
    FitError
        If the table cannot determine what was asked for.
    FormulaError
        If a form is outside the grammar.
    InputError, ScoreTableError
        If the file cannot be read, or is no score table.

    Examples
    --------
    >>> import policyfactory as pf
    >>> scores = pf.generate(pf.generate_lublin(256, 500, seed=1), tuples=2, trials=3200)
    >>> len(pf.fit(scores, bootstrap=0))
    360
    """
    if isinstance(scores, Path | str):
        scores = read_score_table(scores)
    if not isinstance(scores, ScoreTable):
        raise UsageError(f"a {type(scores).__name__} has no scores to fit to; generate(workload) makes a score table")
    given = [family] if isinstance(family, str) else list(family)
    for text in given:
        # Any other name is a formula: p is one without coefficients, and is refused as such.
        near = get_close_matches(text, FAMILIES, n=1, cutoff=0.5)
        if near and text.isidentifier() and text not in FAMILIES:
            raise UsageError(
                f"there is no family {text!r}; did you mean {near[0]}? (families: {', '.join(FAMILIES)}; or a formula "
                "with named coefficients, such as 'a*p**b*q + c*log10(r)')"
            )
    families = tuple(name for name in FAMILIES if name in given)
    forms = tuple(text for text in given if text not in FAMILIES)
    options = FitOptions(families, forms, top, bootstrap, seed, certainty)
    return Fits(fit_table(scores, options, progress=progress))


# The files of a fit: a model for each formula, the report, the pictures -----------------------------------------------


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
            from policyfactory.fit.bootstrap import certainty_csv

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
    from policyfactory.fit import report as picture
    from policyfactory.fit.forms import POLYNOMIALS

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
