"""The report of a fit: the same tables for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from policyfactory.core.text import markdown_text, power_of_ten
from policyfactory.fit.bootstrap import Candidate, interval
from policyfactory.fit.certainty import CERTAIN, Certainty
from policyfactory.fit.diagnostics import VIF_LIMIT, order_share
from policyfactory.fit.model import Examined, shown_term, sort_key
from policyfactory.fit.polynomials import POLYNOMIALS, monomials
from policyfactory.fit.result import Fit
from policyfactory.fit.run import FitResults
from policyfactory.policy.simplify import SHOWN_DIGITS
from policyfactory.report.markdown import bullets_markdown, table_markdown
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.statistics.intervals import Interval

__all__ = ["report_tables", "sentences", "to_markdown"]

_SHOWN = 10
_LONGEST_KEY = 64
_DASH = "-"


def sentences(run: FitResults) -> list[str]:
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
    if sample.noise_mae is not None:
        lines.append(
            f"The scores' own noise is worth a mean absolute error of {sample.noise_mae:.2g}: "
            "no formula can come below it."
        )
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


def report_tables(run: FitResults, *, wide: bool = False) -> list[Table]:
    """Return the tables of the report: ranking, coefficients, variance inflation, certainty.

    Parameters
    ----------
    run : FitResults
        What was found.
    wide : bool
        Whether coefficients and inflation factors of the polynomials share one table, as in the paper.
    """
    tables = [_ranking(run)]
    in_full = [examined for examined in run.examined if _in_full(run, examined)]
    for number, examined in enumerate(in_full, 1):
        tables += _coefficients(examined, number)
    polynomials = {item.fit.name: item for item in run.examined if item.fit.family == "polynomials"}
    if polynomials:
        tables += [_inflation(polynomials, part) for part in (["both"] if wide else ["left", "right"])]
    if run.certainty is not None:
        tables.append(_certainty(run.certainty, wide=wide))
    return tables


def to_markdown(run: FitResults, figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    run : FitResults
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


def _in_full(run: FitResults, examined: Examined) -> bool:
    fit = examined.fit
    return examined is run.winner or fit.family in {"forms", "user", "linear"} or fit.name == "LIN"


def _label(fit: Fit) -> str:
    key = sort_key(fit, digits=SHOWN_DIGITS)
    name = fit.name if fit.family != "forms" else ""
    if len(key) > _LONGEST_KEY:
        return f"{name} ({len(fit.terms)} terms)"
    return f"{name}: {key}" if name else key


def _sure(run: FitResults) -> list[str]:
    candidate = run.winner.candidate
    if candidate is None or not len(candidate.mae):
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


def _ranking(run: FitResults) -> Table:
    places = [place for place, fit in enumerate(run.fits) if place < _SHOWN or fit.family != "forms"]
    resampled = run.resampled
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
        f"Ranking by mean absolute error (MAE) of the score, {len(run.fits)} formulas",
        columns,
        tuple(_place(run, place) for place in places),
        "Held out: MAE on tuples that were not fitted, in 5 parts. In brackets and in rank 95 %: 95 % of the bootstrap "
        f"over tuples, {resampled.replicates} replicates among {len(resampled.candidates)} formulas, seed "
        f"{resampled.seed}; first: share of them in which it is. "
        "Pairs: share of the pairs of jobs in a queue that are ordered as their scores are; 50 % is chance.",
    )


def _place(run: FitResults, place: int) -> tuple[Cell, ...]:
    """Return the row of one formula."""
    fit = run.fits[place]
    candidate = run.resampled.of(fit)
    bounds, rank, first = None, None, None
    if candidate is not None and len(candidate.mae):
        bounds, first = Interval(*interval(candidate.mae)), 100 * candidate.first
        rank = "{:.0f} to {:.0f}".format(*interval(candidate.rank.astype(np.float64)))
    held_out = _number(candidate.held_out) if candidate else Cell(None)
    order = Cell(100 * order_share(fit, run.sample))
    return Cell(_label(fit)), Cell(place + 1), Cell(fit.mae, bounds), held_out, Cell(rank), Cell(first), order


def _number(value: float) -> Cell:
    return Cell(None if math.isnan(value) else float(value))


def _coefficients(examined: Examined, number: int) -> list[Table]:
    """Return the values with their errors, and what the order of a queue and the certainty of the values hang on."""
    fit, inference, candidate = examined.fit, examined.inference, examined.candidate
    drawn = candidate if candidate is not None and len(candidate.mae) else None
    values, ratios = [], []
    for k, term in enumerate(fit.terms):
        names = Cell(term.coefficient), Cell(shown_term(term))
        value = Cell(float(fit.coefficients[k]), Interval(*interval(drawn.coefficients[k])) if drawn else None)
        values.append((*names, value, Cell(float(inference.stderr[k])), _number(inference.t[k]), Cell(term.unit)))
        ratio = Cell(_over_first(fit, drawn, k) if drawn else _DASH)
        ratios.append((*names, ratio, _number(inference.vif[k]), _number(inference.vif_weighted[k])))
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


def _over_first(fit: Fit, candidate: Candidate, k: int) -> str:
    """Return the ratio to the first varying term's coefficient with its interval: what the order depends on."""
    size = abs(float(fit.coefficients[fit.base]))
    term = fit.terms[k]
    if k == fit.base or not term.linear or term.text == "1" or size == 0:
        return _DASH
    bounds = interval(candidate.ratios()[k])
    ratio, low, high = (f"{value:.{SHOWN_DIGITS}g}" for value in (fit.coefficients[k] / size, *bounds))
    return f"{ratio} [{low}, {high}]"


def _inflation(polynomials: dict[str, Examined], part: str) -> Table:
    """Return coefficients (left), inflation factors (right) or both of all polynomials, one row a term."""
    fitted = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
    names = [item.fit.name for item in fitted]
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
