"""The report of a fit: the same tables for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import COLOURS, new_figure, plain_numbers
from policyfactory.core.text import markdown_text, power_of_ten
from policyfactory.fit.bootstrap import CERTAIN, Certainty, ResampledFit, interval
from policyfactory.fit.forms import POLYNOMIALS, monomials
from policyfactory.fit.model import VIF_LIMIT, Examined, order_share, shown_term, sort_key
from policyfactory.fit.regression import Fit
from policyfactory.fit.run import FitResults
from policyfactory.fit.sample import Sample
from policyfactory.policy.algebra import SHOWN_DIGITS
from policyfactory.report.files import bullets_markdown, table_markdown
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.statistics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DPI",
    "draw_certainty",
    "draw_polynomials",
    "draw_priority",
    "draw_ranking",
    "report_tables",
    "sentences",
    "to_markdown",
]

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


def _over_first(fit: Fit, candidate: ResampledFit, k: int) -> str:
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


# Pictures of a fit ----------------------------------------------------------------------------------------------------

# Priority over p, q and r (paper 004 figure 3, paper 002 figure 2), ranking, certainty.


_GRID = 120
DPI = 110  # heat maps are smooth: more would only make the files larger
_UNITS = {"p": "run time p (s)", "q": "processors q", "r": "submit time r (h since the start)"}
_COLOUR_BAR = "place in the queue\n(0 first, 1 last)"


def draw_priority(fit: Fit, sample: Sample) -> Figure:
    """Draw the order of jobs over (p, q), (p, r) and (q, r), the third held at its median."""
    figure = new_figure(11.0, 3.9)
    axes = figure.subplots(1, 3)
    middle = {name: float(np.median(getattr(sample, name))) for name in "pqr"}
    mesh: Any = None
    for axis, (x, y) in zip(axes, (("p", "q"), ("p", "r"), ("q", "r")), strict=True):
        mesh = _heat_map(axis, fit, sample, (x, y), middle)
        rest = next(name for name in "pqr" if name not in (x, y))
        axis.set_title(f"at {_value(rest, middle[rest])}", fontsize=10)
    figure.colorbar(mesh, ax=axes, label=_COLOUR_BAR, shrink=0.9)
    key = sort_key(fit, digits=SHOWN_DIGITS)
    figure.suptitle(key if len(key) <= 90 else f"{fit.name}, {len(fit.terms)} terms", fontsize=11)
    return figure


def draw_polynomials(fits: list[Fit], sample: Sample) -> Figure:
    """Draw the order of jobs over (p, q) for each polynomial, r at its median."""
    columns = min(3, len(fits))
    rows = -(-len(fits) // columns)
    figure = new_figure(3.5 * columns + 1.0, 3.2 * rows)
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    middle = {name: float(np.median(getattr(sample, name))) for name in "pqr"}
    mesh: Any = None
    for axis, fit in zip(axes, fits, strict=False):
        mesh = _heat_map(axis, fit, sample, ("p", "q"), middle)
        axis.set_title(fit.name)
    for axis in axes[len(fits) :]:
        axis.set_visible(False)
    figure.colorbar(mesh, ax=axes.tolist(), label=_COLOUR_BAR, shrink=0.9)
    figure.suptitle(f"order over run time and processors at {_value('r', middle['r'])}", fontsize=11)
    return figure


def draw_ranking(run: FitResults, *, shown: int = 12) -> Figure:
    """Draw the mean absolute error of the best fits with its bootstrap interval, the held-out error and the noise."""
    known = [candidate for candidate in run.resampled.candidates if candidate.fit in run.fits[:shown]]
    figure = new_figure(8.0, 0.36 * len(known) + 1.6)
    axis = figure.subplots()
    places = np.arange(len(known))[::-1]
    for place, candidate in zip(places, known, strict=True):
        if len(candidate.mae):
            axis.plot(interval(candidate.mae), [place, place], color=COLOURS[0], linewidth=2, alpha=0.6)
    axis.plot([c.fit.mae for c in known], places, "o", color=COLOURS[0], label="all tuples, line: 95 % (bootstrap)")
    axis.plot([c.held_out for c in known], places, "x", color=COLOURS[1], label="tuples held out")
    axis.axvline(run.sample.level_mae, color="0.4", linestyle="--", label="same score for every job of a queue")
    if run.sample.noise_mae is not None:
        axis.axvline(run.sample.noise_mae, color=COLOURS[7], linestyle=":", label="noise of the scores alone")
    keys = [sort_key(candidate.fit, digits=SHOWN_DIGITS) for candidate in known]
    names = [key if len(key) <= 60 else candidate.fit.name for key, candidate in zip(keys, known, strict=True)]
    axis.set_yticks(places, names)
    axis.set_xlabel("mean absolute error of the score")
    axis.set_title(f"{run.sample.tuples:,} tuples, {len(run.sample):,} jobs", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_certainty(certainty: Certainty) -> Figure:
    """Draw how often each form is first, and how wide the interval of its coefficients is, by number of tuples."""
    figure = new_figure(10.5, 4.6)
    left, right = figure.subplots(1, 2)
    order = np.argsort(-certainty.first.max(axis=1), kind="stable")
    named = [int(k) for k in order if certainty.first[k].max() >= 0.05][:6]
    for colour, k in zip(COLOURS, named, strict=False):
        left.plot(certainty.sizes, certainty.first[k], "o-", color=colour, label=certainty.fits[k].name, markersize=4)
        left.plot(certainty.sizes, certainty.disjoint[k], "x", color=colour, markersize=7)
    others = 1 - certainty.first[named].sum(axis=0)
    if others.max() >= 0.005:
        left.plot(certainty.sizes, others, "--", color="0.6", label="all others")
    left.axhline(CERTAIN, color="0.4", linewidth=1, linestyle=":")
    left.text(certainty.sizes[0], CERTAIN - 0.015, f"{CERTAIN:.0%}", va="top", fontsize=8, color="0.3")
    left.set_ylim(-0.02, 1.02)
    left.set_ylabel("share of tables in which the form is first (1)")
    left.set_title("which form is best (crosses: disjoint tables)", fontsize=10)
    _ratio_panel(right, certainty)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=8)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel("tuples in the table")
        axis.set_xticks(certainty.sizes, [f"{size:,}" for size in certainty.sizes], rotation=45)
        axis.minorticks_off()
    return figure


def _ratio_panel(axis: Axes, certainty: Certainty) -> None:
    best = certainty.fits[0]
    low, middle, high = certainty.ratio[0].T
    axis.fill_between(certainty.sizes, low, high, color=COLOURS[0], alpha=0.25, label="95 % of the tables")
    axis.plot(certainty.sizes, middle, "o-", color=COLOURS[0], markersize=4, label="median")
    if (low > 0).all():
        axis.set_yscale("log")
        _plain_log_ticks(axis)
    axis.set_ylabel(f"coefficient of {best.terms[best.last].text} over that of {best.terms[best.base].text}")
    axis.set_title(f"what its coefficient is worth: {best.name}", fontsize=10)
    axis.legend(fontsize=8)


def _heat_map(axis: Axes, fit: Fit, sample: Sample, names: tuple[str, str], middle: dict[str, float]) -> Any:
    """Draw the place of each point in the panel's own queue; return what the colour bar belongs to."""
    axes = [_axis_values(sample, name) for name in names]
    grid = dict(zip(names, np.meshgrid(*axes, indexing="xy"), strict=True))
    shape = grid[names[0]].shape
    p, q, r = (grid.get(name, np.full(shape, middle[name])).ravel() for name in "pqr")
    values = sample.with_jobs(p, q, r).values(fit.expression)
    place = _places(values).reshape(shape)
    shown = [axes[k] / (3600.0 if name == "r" else 1.0) for k, name in enumerate(names)]
    mesh = axis.pcolormesh(*shown, place, cmap="viridis", vmin=0, vmax=1, shading="nearest", rasterized=True)
    if np.ptp(place) > 0:
        axis.contour(*shown, place, levels=np.arange(0.1, 1.0, 0.1), colors="white", linewidths=0.5, alpha=0.7)
    axis.grid(visible=False)
    for name, which in zip(names, ("x", "y"), strict=True):
        getattr(axis, f"set_{which}label")(_UNITS[name])
        if name in "pq":
            getattr(axis, f"set_{which}scale")("log", base=10 if name == "p" else 2)
            plain_numbers(getattr(axis, f"{which}axis"), minor=False)
    return mesh


def _axis_values(sample: Sample, name: str) -> NDArray[np.float64]:
    column = getattr(sample, name)
    low, high = float(column.min()), float(column.max())
    if low == high:
        high = low * 1.01
    return np.geomspace(low, high, _GRID) if name in "pq" else np.linspace(low, high, _GRID)


def _places(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the other values that are smaller, 0 to 1."""
    distinct, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    places: NDArray[np.float64] = (
        (before / max(len(values) - 1, 1))[number] if len(distinct) > 1 else np.zeros(len(values))
    )
    return places


def _value(name: str, value: float) -> str:
    return {"p": f"p = {value:.0f} s", "q": f"q = {value:g} processors", "r": f"r = {value / 3600:.1f} h"}[name]


def _plain_log_ticks(axis: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=20))
    plain_numbers(axis.yaxis, minor=False)
