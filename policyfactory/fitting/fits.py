"""`policyfactory.fit`: formulas fitted to a score table, best first, each with its policy, summary and picture."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from policyfactory.core.errors import FitError, UsageError
from policyfactory.core.files import atomic_write, refuse_earlier, together
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.core.text import did_you_mean, facts_html, markdown_text, power_of_ten
from policyfactory.fitting.bootstrap import (
    CERTAIN,
    Bootstrap,
    Certainty,
    ResampledFit,
    certainty_csv,
    interval,
    measure_certainty,
)
from policyfactory.fitting.bootstrap import bootstrap as resample
from policyfactory.fitting.forms import (
    POLYNOMIALS,
    FormsResult,
    fit_all_forms,
    fit_all_polynomials,
    fit_mixture,
    fit_user_form,
    monomials,
    split_name,
)
from policyfactory.fitting.model import (
    DPI,
    VIF_LIMIT,
    FitPicture,
    Fitted,
    draw_certainty,
    draw_polynomials,
    draw_priority,
    draw_ranking,
    order_share,
)
from policyfactory.fitting.regression import Fit, shown_term, sort_key
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.algebra import SHOWN_DIGITS
from policyfactory.policy.store import Model, model_to_json, save_model
from policyfactory.report.files import bullets_markdown, table_markdown
from policyfactory.report.sections import Cell, Column, Table, number_cell
from policyfactory.statistics.intervals import Interval
from policyfactory.trials.table import SAME_SCORE, ScoreTable, read_score_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FAMILIES = ("forms", "polynomials", "linear")
RANKING = "ranking.png"  # a picture of every fit

_SHOWN = 10  # formulas of a table
_DRAWN = 12
_LONGEST_KEY = 64
_DASH = "-"
_BUDGET = 500_000_000  # residuals that the bootstrap may compute: a few seconds
_FEWEST_CANDIDATES = 12
_FEWEST_REPLICATES = 40  # for an interval of 95 %
_CERTAINTY_CANDIDATES = 12

Progress = Callable[[str, int], Callable[[], None]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fits(Sequence[Fitted]):
    """All fits of a score table, best mean absolute error first.

    Parameters
    ----------
    sample : Sample
        The rows.
    ranking : tuple of Fitted
        All fits, best mean absolute error first.
    examined : tuple of Fitted
        The winner, the best ``top`` forms, and everything that has a name: what is reported and written in full.
    enumerated : FormsResult or None
        The family of forms, if it was fitted.
    resampled : Bootstrap
        Ranks, coefficients and held-out errors of the candidates.
    certainty : Certainty or None
        How many tuples are needed, if it was asked for.
    failures : dict of str to str
        Polynomials and mixture that the table does not determine, and why.
    """

    sample: Sample
    ranking: tuple[Fitted, ...]
    examined: tuple[Fitted, ...]
    enumerated: FormsResult | None
    resampled: Bootstrap
    certainty: Certainty | None
    failures: dict[str, str]

    @property
    def winner(self) -> Fitted:
        """The fit with the smallest mean absolute error."""
        return self.ranking[0]

    def __len__(self) -> int:
        return len(self.ranking)

    @overload
    def __getitem__(self, index: int) -> Fitted: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fitted]: ...
    def __getitem__(self, index: int | slice) -> Fitted | list[Fitted]:
        return list(self.ranking[index]) if isinstance(index, slice) else self.ranking[index]

    def summary(self) -> str:
        """Return in sentences what was fitted, what is best, and how certain that is."""
        return "\n".join(sentences(self))

    def frame(self) -> pd.DataFrame:
        """Return one row a fit: rank, name, family, mean absolute error (also on held-out tuples), formula."""
        import pandas as pd

        rows = [
            {
                "rank": item.rank,
                "name": item.name,
                "family": item.fit.family,
                "mae": item.mae,
                "held_out": np.nan if item.candidate is None else item.candidate.held_out,
                "formula": item.fit.text,
            }
            for item in self
        ]
        return pd.DataFrame(rows).set_index("rank")

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture of the errors of the best fits."""
        best = {id(item.fit) for item in self[:_DRAWN]}
        return draw_ranking([item for item in self.resampled.candidates if id(item.fit) in best], self.sample)

    def models(self, name: str) -> dict[str, Model]:
        """Return the models by name: the winner as ``name``, each of several formulas by a name of its own.

        Parameters
        ----------
        name : str
            Of the winner; the others are called ``name-f1`` (the best form), ``name-lin``, ...
        """
        named = [(name, self.winner)]
        if len(self.examined) > 1:
            named += [(f"{name}-{suffix}", item) for suffix, item in self.suffixes()]
        return {unique: item.model(unique) for unique, item in named}

    def suffixes(self) -> Iterator[tuple[str, Fitted]]:
        """Give each examined formula with what follows the name in its file: f1 for the best form, else its own."""
        forms = 0
        for item in self.examined:
            is_form = item.fit.family == "forms"
            forms += is_form
            yield f"f{forms}" if is_form else _suffix(item.name), item

    @keeps_settings
    def save(
        self,
        models: Path | None = None,
        *,
        report: Path | None = None,
        figures: Path | None = None,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write the fits to files.

        Parameters
        ----------
        models : Path, optional
            Model file of the winner by MAE, ``NAME.json``; each of several formulas also goes to its own:
            ``NAME-f1.json`` (the best form), ``NAME-lin.json``, ...
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
        known = {} if models is None else self.models(models.stem)
        files = {} if models is None else {models.with_name(f"{name}.json"): model for name, model in known.items()}
        pictures = {} if figures is None else {figures / name: drawn for name, drawn in pictures_of(self).items()}
        curve = None if figures is None or self.certainty is None else figures / "certainty.csv"
        others = [path for path in (curve, report) if path is not None]
        refuse_earlier(*files, *pictures, *others, overwrite=overwrite)
        with together():
            for path, model in files.items():
                save_model(model, path)
            for path, picture in pictures.items():
                save_picture(keeps_settings(picture.draw)(), path, dpi=picture.dpi)
            if curve is not None and self.certainty is not None:
                atomic_write(curve, certainty_csv(self.certainty))
            if report is not None:
                links = {path: Path(os.path.relpath(path, report.parent)).as_posix() for path in pictures}
                shown = [(picture.caption, links[path]) for path, picture in pictures.items()]
                atomic_write(report, to_markdown(self, shown))
        return [*files, *pictures, *others]

    def as_dict(self) -> dict[str, Any]:
        """Return the ranking and the models of what was examined as JSON values."""
        sample, certainty = self.sample, self.certainty
        content: dict[str, Any] = {
            "table": {
                "name": sample.name,
                "rows": len(sample),
                "tuples": sample.tuples,
                "left_out": sample.left_out,
            },
            "ranking": [
                {
                    "rank": item.rank,
                    "name": item.name,
                    "family": item.fit.family,
                    "mae": item.mae,
                    "formula": item.fit.text,
                    "aliases": list(item.fit.aliases),
                }
                for item in self
            ],
            "not_finite": list(self.enumerated.undefined) if self.enumerated else [],
            "models": {item.name: model_to_json(item.model()) for item in self.examined},
        }
        if certainty is not None:
            content["certainty"] = {
                "tuples": certainty.sizes.tolist(),
                "first": {fit.name: row.tolist() for fit, row in zip(certainty.fits, certainty.first, strict=True)},
                "certain_from": certainty.certain_from(),
            }
        return content

    def __repr__(self) -> str:
        return f"<Fits of {self.sample.name}: {len(self)} formulas, best {self.winner.name}>"

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
    progress: Progress = lambda _title, _total: lambda: None,
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
    families, forms = _asked(family, top)
    if top < 1 or bootstrap < 0:
        raise UsageError(f"top {top} and bootstrap {bootstrap}: expected at least 1 and at least 0")
    if certainty and bootstrap < 1:
        raise UsageError("certainty is measured by resampling; give --bootstrap 1 or more (200 is usual)")
    sample = prepare(scores)
    highest, lowest = (extreme.reduceat(sample.score, sample.starts) for extreme in (np.maximum, np.minimum))
    if np.max(highest - lowest) < SAME_SCORE:
        raise FitError(
            f"{sample.name}: the scores of each tuple are equal, so no order is better than another and there is "
            "nothing to learn; generate scores from a workload whose jobs differ and wait"
        )
    fits, enumerated, failures = _fitted(sample, families, forms, seed)
    # A form costs its rows in each replicate, and in each of the five parts of the held-out error.
    allowed = max(_FEWEST_CANDIDATES, top, _BUDGET // (len(sample) * max(bootstrap, 5)))
    candidates = _with_best_forms(fits, allowed)
    advance = progress("resampling tuples", len(candidates))
    resampled = resample(candidates, sample, replicates=bootstrap, seed=seed, advance=advance)
    known = {id(candidate.fit): candidate for candidate in resampled.candidates}
    ranking = tuple(
        Fitted(item, sample, known.get(id(item)), rank, len(fits), seed) for rank, item in enumerate(fits, start=1)
    )
    shown = _with_best_forms(fits, top)
    examined = tuple(item for item in ranking if item.fit in shown)
    advance = progress("diagnosing", len(shown))
    for item in examined:
        item.diagnosis  # noqa: B018 (found now, while its progress is shown)
        advance()
    measured = None
    candidates = _with_best_forms([item for item in fits if item.name not in resampled.refused], _CERTAINTY_CANDIDATES)
    if certainty and candidates:
        advance = progress("tables of growing size", len(candidates))
        measured = measure_certainty(candidates, sample, replicates=bootstrap, seed=seed, advance=advance)
    return Fits(
        sample=sample,
        ranking=ranking,
        examined=examined,
        enumerated=enumerated,
        resampled=resampled,
        certainty=measured,
        failures=failures,
    )


def _asked(family: str | Sequence[str], top: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the families, and the name and text of each form of the user."""
    given = [family] if isinstance(family, str) else list(family)
    if not given:
        raise UsageError("nothing to fit; give a family or a form")
    for text in given:
        # Any other name is a formula: p is one without coefficients, and is refused as such.
        hint = did_you_mean(text, FAMILIES, cutoff=0.5)
        if hint and text.isidentifier() and text not in FAMILIES:
            raise UsageError(
                f"there is no family {text!r}; {hint}(families: {', '.join(FAMILIES)}; or a formula "
                "with named coefficients, such as 'a*p**b*q + c*log10(r)')"
            )
    forms = [text for text in given if text not in FAMILIES]
    named = [split_name(text, f"form{number}") for number, text in enumerate(forms, start=1)]
    taken = {f"f{number}": f"form {number} of the 576" for number in range(1, top + 1) if "forms" in given}
    taken |= {name.lower(): name for name in POLYNOMIALS if "polynomials" in given}
    taken |= {"mix": "MIX"} if "linear" in given else {}
    for name, _ in named:
        if (suffix := _suffix(name)) in taken:
            raise UsageError(
                f"the forms {name!r} and {taken[suffix]!r} would have the same file, NAME-{suffix}.json; give each a "
                "name of its own, NAME=FORMULA"
            )
        taken[suffix] = name
    return [name for name in FAMILIES if name in given], named


def _suffix(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "form"


def _fitted(
    sample: Sample, families: Sequence[str], forms: Sequence[tuple[str, str]], seed: int
) -> tuple[list[Fit], FormsResult | None, dict[str, str]]:
    """Return all fits, best first; the family of forms; what could not be fitted, and why."""
    enumerated = fit_all_forms(sample) if "forms" in families else None
    fits = list(enumerated.fits) if enumerated else []
    failures: dict[str, str] = {}
    if "polynomials" in families:
        polynomials, failures = fit_all_polynomials(sample)
        fits += polynomials
    if "linear" in families:
        try:
            fits.append(fit_mixture(sample))
        except FitError as error:
            failures["MIX"] = str(error)
    fits += [fit_user_form(sample, text, name=name, seed=seed) for name, text in forms]
    if not fits:
        name, reason = next(iter(failures.items()))
        raise FitError(f"{sample.name}: nothing could be fitted; {name}: {reason}")
    return sorted(fits, key=lambda item: (item.mae, item.name)), enumerated, failures


def _with_best_forms(fits: list[Fit], count: int) -> list[Fit]:
    """Return everything with a name, and so many of the best forms, in the order of ``fits``."""
    best = [item for item in fits if item.family == "forms"][:count]
    return [item for item in fits if item.family != "forms" or item in best]


# The report: the same tables for the terminal and for Markdown --------------------------------------------------------


def sentences(run: Fits) -> list[str]:
    """Return what was done and what came out, in words."""
    sample = run.sample
    lines = [f"{sample.name}: {len(sample):,} jobs in {sample.tuples:,} tuples."]
    if sample.left_out:
        lines.append(f"{sample.left_out:,} rows with p = 0 or r = 0 are left out (log10 and 1/x have no value there).")
    if run.enumerated is not None:
        different = len(run.enumerated.fits) + len(run.enumerated.undefined)
        lines.append(
            f"{run.enumerated.forms} forms are {different} different functions; {len(run.enumerated.undefined)} of "
            "them have no value for some jobs here (such as 1/log10(q) where q = 1) and are not ranked."
        )
    lines.extend(f"Not fitted: {name}: {reason}." for name, reason in run.failures.items())
    lines.extend(f"Not resampled: {name}: {reason}." for name, reason in run.resampled.refused.items())
    if sample.noise_mae is not None:
        lines.append(
            f"The scores' own noise is worth a mean absolute error of {sample.noise_mae:.2g}: a perfect formula would "
            "show about that."
        )
        if run.winner.mae < sample.noise_mae:
            lines.append("The best is below that, so it follows the noise (overfitted): generate more tuples.")
    if sample.tuples < 5:
        lines.append("With fewer than 5 tuples none is held out, so no error shows what is overfitted.")
    lines.append(
        f"The weight p*q is concentrated: the {sample.tuples:,} tuples count like {sample.effective_tuples:,.0f} of "
        "equal weight."
    )
    winner = run.winner
    lines.append(
        f"Best by mean absolute error: {_label(winner.fit)}, {winner.fit.mae:.5g} "
        f"(giving every job of a queue the same score: {sample.level_mae:.5g})."
    )
    if winner.fit.mae > sample.level_mae:
        lines.append(
            "That error is larger than no formula's: as a prediction of scores it is no good. A sort key only has to "
            "order jobs: see the column 'pairs', and let policyfactory evaluate decide."
        )
    lines.extend(_sure(run))
    return lines


def report_tables(run: Fits, *, wide: bool = False) -> list[Table]:
    """Return the tables of the report: ranking, coefficients, variance inflation, certainty.

    Parameters
    ----------
    run : Fits
        What was found.
    wide : bool
        Whether coefficients and inflation factors of the polynomials share one table, as in the paper.
    """
    tables = [_ranking(run)]
    # The polynomials share tables, but for the winner and the linear one.
    in_full = (its for its in run.examined if its is run.winner or its.fit.family != "polynomials" or its.name == "LIN")
    for number, examined in enumerate(in_full, 1):
        tables += _coefficients(examined, number)
    polynomials = {item.fit.name: item for item in run.examined if item.fit.family == "polynomials"}
    if polynomials:
        tables += [_inflation(polynomials, part) for part in (["both"] if wide else ["left", "right"])]
    if run.certainty is not None:
        tables.append(_certainty(run.certainty, wide=wide))
    return tables


def to_markdown(run: Fits, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    run : Fits
        What was found.
    figures : sequence of (str, str)
        Caption and path of each picture, as the report should link it.
    """
    parts = [f"# Fit of {markdown_text(run.sample.name)}", "", " ".join(map(markdown_text, sentences(run))), ""]
    for table in report_tables(run, wide=True):
        parts += table_markdown(table)
    parts += ["## When not to trust these fits", ""]
    warned = [item for item in run.examined if item.diagnosis.warnings]
    for item in warned:
        parts += bullets_markdown(_label(item.fit), item.diagnosis.warnings)
    parts += [] if warned else ["No check found anything.", ""]
    if figures:
        parts += ["## Pictures", ""]
        for caption, path in figures:
            parts += [f"![{markdown_text(caption)}]({path})", "", markdown_text(caption), ""]
    return "\n".join(parts).rstrip() + "\n"


def _certainty(certainty: Certainty, *, wide: bool = False) -> Table:
    """Return how often each form is first, and the ratio of the best form's coefficients, by number of tuples.

    Parameters
    ----------
    certainty : Certainty
        What was measured.
    wide : bool
        Whether to give the shares among disjoint tables too.
    """
    often = [k for k in range(len(certainty.fits)) if k == 0 or (certainty.first[k] >= 0.05).any()]
    sizes = range(len(certainty.sizes))
    rows = [
        (
            certainty.fits[k].name,
            *(_share(certainty.first[k, s], certainty.disjoint[k, s] if wide else math.nan) for s in sizes),
        )
        for k in often
    ]
    rows.append(("all others", *(f"{1 - certainty.first[often, s].sum():.0%}" for s in sizes)))
    fit = certainty.fits[0]
    ratio = f"{fit.terms[fit.last].text} over {fit.terms[fit.base].text}"
    for number, what in enumerate(("2.5 %", "median", "97.5 %")):
        rows.append((f"{ratio}, {what}", *(_compact(certainty.ratio[0, s, number]) for s in sizes)))
    needed = certainty.certain_from()
    verdict = (
        f"{fit.name} is first in at least {CERTAIN:.0%} of the tables from {needed:,} tuples on."
        if needed is not None
        else f"{fit.name} reaches {CERTAIN:.0%} at no size: more tuples are needed."
    )
    return Table(
        "certainty",
        "How many tuples until the form is certain: share of tables of a size in which it is first",
        (Column("tuples"), *(Column(f"{size:,}") for size in certainty.sizes)),
        _texts(rows),
        f"{certainty.replicates} tables a size, drawn with replacement, seed {certainty.seed}"
        + ("; in parentheses the share among disjoint tables of that size, where there are at least 8" if wide else "")
        + f". Last rows: ratio of coefficients of {fit.name}. {verdict}",
        names=1,
    )


def _label(fit: Fit) -> str:
    key = sort_key(fit, digits=SHOWN_DIGITS)
    name = fit.name if fit.family != "forms" else ""
    if len(key) > _LONGEST_KEY:
        return f"{name} ({len(fit.terms)} terms)"
    return f"{name}: {key}" if name else key


def _sure(run: Fits) -> list[str]:
    candidate = run.winner.candidate
    if candidate is None or len(candidate.mae) < _FEWEST_REPLICATES or len(run.resampled.candidates) == 1:
        return []
    firsts = sum(item.first > 0 for item in run.resampled.candidates)
    low, high = interval(candidate.rank.astype(np.float64))
    text = (
        f"It is first in {candidate.first:.0%} of {len(candidate.mae)} bootstrap replicates over the "
        f"{run.sample.tuples:,} tuples (rank {low:.0f} to {high:.0f} in 95 % of them)"
    )
    if candidate.first >= CERTAIN:
        return [text + "."]
    return [f"{text}; {firsts} formulas are first at least once, so with this many tuples the winner is not certain."]


def _ranking(run: Fits) -> Table:
    shown = [item for item in run if item.rank <= _SHOWN or item.fit.family != "forms"]
    resampled = run.resampled
    nonlinear = any(not item.fit.is_linear for item in resampled.candidates)
    linearised = " (nonlinear forms: linearised at their minimum)" if nonlinear else ""
    columns = (
        Column("sort key (lower runs first)"),
        Column("rank"),
        Column("MAE", digits=5),
        Column("held out", digits=5),
        Column("rank 95 %"),
        Column("first", "%"),
        Column("pairs", "%", decimals=1),
    )
    return Table(
        "ranking",
        f"Ranking by mean absolute error (MAE) of the score, {len(run)} formulas",
        columns,
        tuple(map(_ranked, shown)),
        "Held out: MAE on tuples that were not fitted, in 5 parts. In brackets and in rank 95 %: 95 % of the bootstrap "
        f"over tuples, {resampled.replicates} replicates among {len(resampled.candidates)} formulas, seed "
        f"{resampled.seed}{linearised}; first: share of them in which it is. "
        "Pairs: share of the pairs of jobs in a queue that are ordered as their scores are; 50 % is chance.",
    )


def _ranked(item: Fitted) -> tuple[Cell, ...]:
    """Return the row of one formula."""
    fit, candidate = item.fit, item.candidate
    bounds, rank, first = None, None, None
    if candidate is not None and len(candidate.mae):
        bounds, first = Interval(*interval(candidate.mae)), 100 * candidate.first
        rank = "{:.0f} to {:.0f}".format(*interval(candidate.rank.astype(np.float64)))
    held_out = number_cell(candidate.held_out) if candidate else Cell(None)
    order = Cell(100 * order_share(fit, item.sample))
    return Cell(_label(fit)), Cell(item.rank), Cell(fit.mae, bounds), held_out, Cell(rank), Cell(first), order


def _coefficients(examined: Fitted, number: int) -> list[Table]:
    """Return the values with their errors, and what the order of a queue and the certainty of the values hang on."""
    fit, inference, candidate = examined.fit, examined.inference, examined.candidate
    drawn = candidate if candidate is not None and len(candidate.mae) else None
    values, ratios = [], []
    for k, term in enumerate(fit.terms):
        names = Cell(term.coefficient), Cell(shown_term(term))
        value = Cell(float(fit.coefficients[k]), Interval(*interval(drawn.coefficients[k])) if drawn else None)
        values.append((*names, value, Cell(float(inference.stderr[k])), number_cell(inference.t[k]), Cell(term.unit)))
        ratio = Cell(_over_first(fit, drawn, k) if drawn else _DASH)
        ratios.append((*names, ratio, number_cell(inference.vif[k]), number_cell(inference.vif_weighted[k])))
    shown = Column("value", digits=SHOWN_DIGITS)
    return [
        Table(
            f"coefficients-{number}",
            f"Coefficients of {_label(fit)}",
            (Column(""), Column("of"), shown, Column("std error", digits=4), Column("t", decimals=2), Column("unit")),
            tuple(values),
            "The value of the formula is a score. Standard errors and the 95 % intervals in brackets take the tuple as "
            f"the unit. Condition number {fit.condition:.3g} (columns scaled). {fit.method}.",
        ),
        Table(
            f"ratios-{number}",
            "Their ratios and variance inflation factors (VIF)",
            (Column(""), Column("of"), Column("over the first, 95 %"), Column("VIF"), Column("VIF weighted")),
            tuple(ratios),
            "Only the ratios change the order of a queue. VIF: of the rows as they are; weighted: times p*q, as the "
            f"fit sees them. Above {VIF_LIMIT:g} a coefficient cannot be told apart from others.",
        ),
    ]


def _over_first(fit: Fit, candidate: ResampledFit, k: int) -> str:
    """Return the ratio to the first varying term's coefficient with its interval: what the order depends on."""
    size = abs(float(fit.coefficients[fit.base]))
    term = fit.terms[k]
    if k == fit.base or not term.linear or term.text == "1" or size == 0:
        return _DASH
    bounds = interval(candidate.ratios()[k])
    ratio, low, high = (f"{value:.{SHOWN_DIGITS}g}" for value in (fit.coefficients[k] / size, *bounds))
    return f"{ratio} [{low}, {high}]"


def _inflation(polynomials: dict[str, Fitted], part: str) -> Table:
    """Return coefficients (left), inflation factors (right) or both of all polynomials, one row a term."""
    fitted = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
    names = [item.name for item in fitted]
    left, right = part != "right", part != "left"
    rows = []
    for number, text in enumerate(monomials(max(POLYNOMIALS[name] for name in names))):
        there = [item if number < len(item.fit.terms) else None for item in fitted]
        values = [power_of_ten(item.fit.coefficients[number]) if item else _DASH for item in there] if left else []
        factors = [_factor(item.inference.vif[number]) if item else _DASH for item in there] if right else []
        rows.append((f"theta{number}", text, *values, *factors))
    if left:
        blank = ("",) * len(names) if right else ()
        rows.append(("MAE", "", *(power_of_ten(item.fit.mae) for item in fitted), *blank))
        rows.append(("condition", "", *(f"{item.fit.condition:.2g}" for item in fitted), *blank))
    titles = {"left": "Coefficients", "right": "Variance inflation factors (VIF)"}
    vif = "VIF as there: unweighted rows, no constant; above 10 a coefficient cannot be told apart from others."
    notes = [
        "Layout of tables 3 to 5 of Rosa et al. 2023.",
        *(["Units: a score over the unit of x (s, processors)."] if left else []),
        *([vif] if right else []),
    ]
    prefix = "VIF " if left and right else ""
    columns = ["", "x", *(names if left else ()), *(f"{prefix}{name}" for name in names if right)]
    return Table(
        f"polynomials-{part}",
        f"{titles.get(part, 'Coefficients and variance inflation factors (VIF)')} of the polynomials",
        tuple(map(Column, columns)),
        _texts(rows),
        " ".join(notes),
    )


def _share(first: float, disjoint: float) -> str:
    return f"{first:.0%}" if math.isnan(disjoint) else f"{first:.0%} ({disjoint:.0%})"


def _compact(value: float) -> str:
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 else power_of_ten(value)


def _factor(value: float) -> str:
    if math.isnan(value):
        return _DASH
    return f"{value:.1f}" if value < 1000 else power_of_ten(value, 1)


def _texts(rows: Iterable[Iterable[str]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(map(Cell, row)) for row in rows)


def pictures_of(run: Fits) -> dict[str, FitPicture]:
    """Return the pictures of a fit by the names of their files."""

    def priority(fit: Fit) -> FitPicture:
        return FitPicture(f"Order of jobs under {fit.name}", partial(draw_priority, fit, run.sample), DPI)

    ranking = FitPicture("Mean absolute error of the best formulas", run.plot)
    pictures = {"priority.png": priority(run.winner.fit), RANKING: ranking}
    for suffix, item in run.suffixes():
        if item is not run.winner and item.fit.family != "polynomials":
            pictures[f"priority-{suffix}.png"] = priority(item.fit)
    polynomials = {item.name: item.fit for item in run.examined if item.fit.family == "polynomials"}
    if polynomials:
        fits = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
        drawn = partial(draw_polynomials, fits, run.sample)
        pictures["polynomials.png"] = FitPicture("Order of jobs under the polynomials", drawn, DPI)
    if run.certainty is not None:
        drawn = partial(draw_certainty, run.certainty)
        pictures["certainty.png"] = FitPicture("How many tuples until the form is certain", drawn)
    return pictures
