"""The report of a fit: the same blocks for the terminal and for Markdown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.text import markdown_text, power_of_ten
from policyfactory.fit.bootstrap import Candidate, interval
from policyfactory.fit.certainty import CERTAIN, Certainty
from policyfactory.fit.diagnostics import order_share
from policyfactory.fit.model import Examined, sort_key
from policyfactory.fit.polynomials import POLYNOMIALS, monomials
from policyfactory.fit.result import Fit
from policyfactory.fit.run import FitResults

__all__ = ["Block", "certainty_block", "report_blocks", "sentences", "to_markdown"]

_SHOWN = 10
_LONGEST_KEY = 64
_DASH = "-"


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A table with its title and what to know about it.

    Parameters
    ----------
    title : str
        What it shows.
    columns : tuple of str
        Headers, with units.
    rows : tuple of tuple of str
        Cells.
    caption : str
        What to know about it.
    left : tuple of int
        Columns to align to the left.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    left: tuple[int, ...] = (0,)


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


def report_blocks(run: FitResults, *, wide: bool = False) -> list[Block]:
    """Return the tables of the report: ranking, coefficients, variance inflation, certainty.

    Parameters
    ----------
    run : FitResults
        What was found.
    wide : bool
        Whether coefficients and inflation factors of the polynomials share one table, as in the paper.
    """
    blocks = [_ranking(run)]
    blocks.extend(_coefficients(examined) for examined in run.examined if _in_full(run, examined))
    polynomials = {item.fit.name: item for item in run.examined if item.fit.family == "polynomials"}
    if polynomials:
        blocks.extend(
            [_inflation(polynomials, "both")] if wide else [_inflation(polynomials, k) for k in ("left", "right")]
        )
    if run.certainty is not None:
        blocks.append(certainty_block(run.certainty, wide=wide))
    return blocks


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
    for block in report_blocks(run, wide=True):
        parts += _table(block)
    warned = [item for item in run.examined if item.diagnosis.warnings]
    parts += ["## When not to trust these fits", ""]
    parts += [line for item in warned for line in _warning_lines(item)] or ["No check found anything.", ""]
    if figures:
        parts += ["## Pictures", ""]
        for caption, path in figures:
            parts += [f"![{markdown_text(caption)}]({path})", "", markdown_text(caption), ""]
    return "\n".join(parts).rstrip() + "\n"


def certainty_block(certainty: Certainty, *, wide: bool = False) -> Block:
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
    return Block(
        "How many tuples until the form is certain: share of tables of a size in which it is first",
        ("tuples", *(f"{size:,}" for size in certainty.sizes)),
        tuple(rows),
        caption=f"{certainty.replicates} tables a size, drawn with replacement, seed {certainty.seed}"
        + ("; in parentheses the share among disjoint tables of that size, where there are at least 8" if wide else "")
        + f". Last rows: ratio of coefficients of {fit.name}. {verdict}",
    )


def _in_full(run: FitResults, examined: Examined) -> bool:
    fit = examined.fit
    return examined is run.winner or fit.family in {"forms", "user", "linear"} or fit.name == "LIN"


def _label(fit: Fit) -> str:
    key = sort_key(fit, digits=5)
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


def _ranking(run: FitResults) -> Block:
    places = [place for place, fit in enumerate(run.fits) if place < _SHOWN or fit.family != "forms"]
    rows = []
    for place in places:
        fit = run.fits[place]
        candidate = run.resampled.of(fit)
        order = f"{order_share(fit, run.sample):.1%}"
        rows.append((str(place + 1), _label(fit), f"{fit.mae:.5g}", *_resampled(candidate), order))
    drawn = run.resampled.replicates
    return Block(
        f"Ranking by mean absolute error (MAE) of the score, {len(run.fits)} formulas",
        ("rank", "sort key (lower runs first)", "MAE", "held out", "MAE 95 %", "rank 95 %", "first", "pairs"),
        tuple(rows),
        caption=(
            "Held out: MAE on tuples that were not fitted, in 5 parts. 95 %: bootstrap over tuples, "
            f"{drawn} replicates among {len(run.resampled.candidates)} formulas, seed {run.resampled.seed}; "
            "first: share of them in which it is. "
            "Pairs: share of the pairs of jobs in a queue that are ordered as their scores are; 50% is chance."
        ),
        left=(1,),
    )


def _resampled(candidate: Candidate | None) -> tuple[str, str, str, str]:
    if candidate is None:
        return (_DASH, _DASH, _DASH, _DASH)
    held = _number(candidate.held_out, 5)
    if not len(candidate.mae):
        return (held, _DASH, _DASH, _DASH)
    low, high = interval(candidate.rank.astype(np.float64))
    return (held, _bounds(candidate.mae), f"{low:.0f} to {high:.0f}", f"{candidate.first:.0%}")


def _coefficients(examined: Examined) -> Block:
    fit, inference, candidate = examined.fit, examined.inference, examined.candidate
    drawn = candidate is not None and len(candidate.mae) > 0
    rows = []
    for k, term in enumerate(fit.terms):
        resampled = _DASH if candidate is None or not drawn else _bounds(candidate.coefficients[k])
        over = _over_first(fit, candidate, k) if candidate is not None and drawn else _DASH
        rows.append(
            (
                term.coefficient,
                term.text,
                f"{fit.coefficients[k]:.6g}",
                f"{inference.stderr[k]:.2g}",
                f"{inference.t[k]:.2f}",
                resampled,
                over,
                term.unit,
                _number(inference.vif[k], 3),
                _number(inference.vif_weighted[k], 3),
            )
        )
    return Block(
        f"Coefficients of {_label(fit)}",
        ("", "of", "value", "std error", "t", "95 %", "over the first, 95 %", "unit", "VIF", "VIF weighted"),
        tuple(rows),
        caption=(
            f"The value of the formula is a score. Standard errors and 95 % intervals take the tuple as the unit. "
            f"Condition number {fit.condition:.3g} (columns scaled). {fit.method}."
        ),
        left=(0, 1),
    )


def _over_first(fit: Fit, candidate: Candidate, k: int) -> str:
    """Return the ratio to the first varying term's coefficient with its interval: what the order depends on."""
    size = abs(float(fit.coefficients[fit.base]))
    term = fit.terms[k]
    if k == fit.base or not term.linear or term.text == "1" or size == 0:
        return _DASH
    low, high = interval(candidate.ratios()[k])
    return f"{fit.coefficients[k] / size:.5g} [{low:.3g}, {high:.3g}]"


def _inflation(polynomials: dict[str, Examined], part: str) -> Block:
    """Return coefficients (left), inflation factors (right) or both of all polynomials, one row a term."""
    found = [polynomials[name] for name in POLYNOMIALS if name in polynomials]
    names = [item.fit.name for item in found]
    left, right = part != "right", part != "left"
    rows = []
    for number, text in enumerate(monomials(max(POLYNOMIALS[name] for name in names))):
        there = [item if number < len(item.fit.terms) else None for item in found]
        values = [power_of_ten(item.fit.coefficients[number]) if item else _DASH for item in there] if left else []
        factors = [_factor(item.inference.vif[number]) if item else _DASH for item in there] if right else []
        rows.append((f"theta{number}", *values, text, *factors))
    blank = ("",) * len(names) if right else ()
    if left:
        rows.append(("MAE", *(power_of_ten(item.fit.mae) for item in found), "", *blank))
        rows.append(("condition", *(f"{item.fit.condition:.2g}" for item in found), "", *blank))
    title = {"left": "Coefficients", "right": "Variance inflation factors (VIF)"}.get(
        part, "Coefficients and variance inflation factors (VIF)"
    )
    layout = "Layout of tables 3 to 5 of Rosa et al. 2023. "
    units = "Units: a score over the unit of x (s, processors). " if left else ""
    vif = (
        "VIF as there: unweighted rows, no constant; above 10 a coefficient cannot be told apart from others."
        if right
        else ""
    )
    prefix = "VIF " if left and right else ""
    return Block(
        f"{title} of the polynomials",
        ("", *(names if left else ()), "x", *(f"{prefix}{name}" for name in names if right)),
        tuple(rows),
        caption=(layout + units + vif).strip(),
        left=(0, 1 + len(names) * left),
    )


def _share(first: float, disjoint: float) -> str:
    return f"{first:.0%}" if math.isnan(disjoint) else f"{first:.0%} ({disjoint:.0%})"


def _bounds(values: NDArray[np.float64]) -> str:
    low, high = interval(values)
    return f"{low:.4g} to {high:.4g}"


def _number(value: float, digits: int) -> str:
    return _DASH if math.isnan(value) else f"{value:.{digits}g}"


def _compact(value: float) -> str:
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 else power_of_ten(value)


def _factor(value: float) -> str:
    if math.isnan(value):
        return _DASH
    return f"{value:.1f}" if value < 1000 else power_of_ten(value, 1)


def _table(block: Block) -> list[str]:
    align = ["---" if k in block.left else "--:" for k in range(len(block.columns))]
    lines = [f"## {markdown_text(block.title)}", "", _row(block.columns), f"|{'|'.join(align)}|"]
    lines += [_row(row) for row in block.rows]
    return [*lines, "", markdown_text(block.caption), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def _warning_lines(examined: Examined) -> list[str]:
    return [
        f"**{markdown_text(_label(examined.fit))}**",
        "",
        *(f"- {markdown_text(line)}" for line in examined.diagnosis.warnings),
        "",
    ]
