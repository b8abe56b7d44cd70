"""A fitted formula: its sort key, coefficients with errors, what speaks against it, policy, model file and pictures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import FitError, UsageError
from policyfactory.core.files import command_line, package_versions
from policyfactory.core.options import FloatArray
from policyfactory.core.picture import BLACK, BLUE, COLOURS, VERMILION, keeps_settings, new_figure, plain_numbers
from policyfactory.core.text import cut, facts_html, facts_text, finite, shortened
from policyfactory.fitting.bootstrap import CERTAIN, Certainty, ResampledFit, interval
from policyfactory.fitting.regression import Fit, Inference, infer, shown_term, solve, sort_key
from policyfactory.fitting.sample import Sample
from policyfactory.policy.algebra import SHOWN_DIGITS, shorter_formula
from policyfactory.policy.expression import Expression, parse
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import FittedNumber, Model
from policyfactory.workload.header import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VIF_LIMIT = 10.0  # paper 002 section 5.2
CONDITION_LIMIT = 30.0  # Belsley, Kuh and Welsch, Regression Diagnostics, 1980, section 3.2
DOMINANCE_LIMIT = 0.98  # share of the pairs in a queue that one term alone orders as the formula does
SIGN_LIMIT = 0.025  # share of replicates with the other sign
ORDER_LIMIT = 0.55  # share of pairs that are ordered as their scores are
_GRID = 21  # points an axis
_FLAT = 1e-9  # part of the formula's range that counts as no change
_PAIR_ROWS = 1 << 14  # pairs are counted for so many rows together: what stays in the processor's cache
_EFFECT = {
    "p": "of two jobs that differ in run time only the longer runs first there",
    "q": "of two jobs that differ in processors only the wider runs first there",
    "r": "a later job overtakes an equal earlier one there, so jobs can starve",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was checked and what to be warned of.

    Parameters
    ----------
    slopes : dict of str to float
        For p, q and r, the share of the steps on a grid of the data's quantiles in which the formula falls (0 to 1).
    dominance : dict of str to float
        For each term, the share of the pairs of a queue that it alone orders as the formula does.
    order : float
        Share of the pairs in a queue that the formula orders as their scores are (0.5 is chance).
    warnings : tuple of str
        Sentences; empty if nothing was found.
    """

    slopes: dict[str, float]
    dominance: dict[str, float]
    order: float
    warnings: tuple[str, ...]


def diagnose(fit: Fit, sample: Sample, inference: Inference, unstable: dict[str, float] | None = None) -> Diagnosis:
    """Return what speaks against trusting ``fit``.

    Parameters
    ----------
    fit, sample, inference
        The fit, the rows it was made from, its standard errors and inflation factors.
    unstable : dict of str to float, optional
        For each coefficient, the share of bootstrap replicates in which it has the other sign.
    """
    falls = slopes(fit.expression, sample)
    dominance = _dominance(fit, sample)
    order = order_share(fit, sample)
    warnings = [
        *_about_numbers(fit, inference, unstable or {}),
        *_about_level(fit, sample),
        *_about_order(falls, dominance, order),
    ]
    return Diagnosis(falls, dominance, order, tuple(warnings))


def order_share(fit: Fit, sample: Sample) -> float:
    """Return the share of the pairs of jobs in a queue that ``fit`` orders as their scores are."""
    return agreement(sample.score, sample.values(fit.expression), sample)


def slopes(formula: Expression, sample: Sample) -> dict[str, float]:
    """Return in which share of the steps the formula falls along p, q and r.

    The grid has the 21 quantiles 0, 5, ..., 100 % of each variable, from the smallest to the largest value in the
    data; a fall of less than 1e-9 of the formula's range on the grid is none.
    """
    axes = [np.unique(np.quantile(column, np.linspace(0, 1, _GRID))) for column in (sample.p, sample.q, sample.r)]
    p, q, r = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    values = sample.with_jobs(p, q, r).values(formula).reshape([len(axis) for axis in axes])
    flat = _FLAT * float(np.ptp(values))
    falls = {}
    for position, variable in enumerate("pqr"):
        steps = np.diff(values, axis=position)
        falls[variable] = float(np.mean(steps < -flat)) if steps.size else 0.0
    return falls


def agreement(first: FloatArray, second: FloatArray, sample: Sample) -> float:
    """Return the share of the pairs of jobs in a tuple that both columns order in the same way.

    Pairs that ``first`` leaves tied are not counted; those that only ``second`` leaves tied count one half. NaN if
    none is counted.

    Parameters
    ----------
    first, second : float64 array (n,)
        Values for the rows of ``sample``.
    """
    difference = counted = 0
    longest = int(np.bincount(sample.tuple_of).max())
    for begin in range(0, len(sample), _PAIR_ROWS):
        for step in range(1, longest):
            later = slice(begin + step, begin + step + _PAIR_ROWS)
            former = slice(begin, begin + len(first[later]))
            ordered = (sample.tuple_of[former] == sample.tuple_of[later]) & (first[former] != first[later])
            untied = ordered & (second[former] != second[later])
            same = untied & ((first[former] < first[later]) == (second[former] < second[later]))
            counted += int(np.count_nonzero(ordered))
            difference += int(2 * np.count_nonzero(same) - np.count_nonzero(untied))
    return 0.5 + difference / (2 * counted) if counted else float("nan")


def _dominance(fit: Fit, sample: Sample) -> dict[str, float]:
    terms = [(term, value) for term, value in zip(fit.terms, fit.coefficients, strict=True) if term.linear]
    varying = [(term.text, value) for term, value in terms if parse(term.text).variables]
    if len(varying) < 2:
        return {}
    whole = sample.values(fit.expression)
    return {text: agreement(whole, value * sample.values(text), sample) for text, value in varying}


def _about_numbers(fit: Fit, inference: Inference, unstable: dict[str, float]) -> Iterator[str]:
    """Say what makes the coefficients uncertain."""
    if not fit.converged:
        yield f"the minimum is uncertain: {fit.method}; try other starts (--seed) or a simpler form"
    factors = np.fmax(np.nan_to_num(inference.vif, nan=0.0, posinf=np.finfo(float).max), 0.0)
    weighted = np.where([term.text == "1" for term in fit.terms], 0.0, inference.vif_weighted)
    for values, of in ((factors, ""), (weighted, " of the weighted rows")):
        worst = int(np.argmax(values))
        count = int((values > VIF_LIMIT).sum())
        if count:
            yield (
                f"variance inflation above {VIF_LIMIT:g}{of} for {count} of {len(values)} terms "
                f"(largest {values[worst]:.4g}, {fit.terms[worst].text}): "
                "their coefficients cannot be told apart, a simpler form is safer"
            )
    if fit.condition > CONDITION_LIMIT:
        yield (
            f"ill-conditioned: condition number {fit.condition:.3g} (above {CONDITION_LIMIT:g}) of the weighted, "
            f"scaled columns; a relative change of the scores can change coefficients {fit.condition:.3g} times as much"
        )
    uncertain = sorted(((share, name) for name, share in unstable.items() if share > SIGN_LIMIT), reverse=True)
    if uncertain:
        which = ", ".join(f"{name} in {share:.0%}" for share, name in uncertain[:3])
        more = f" and {len(uncertain) - 3} more" if len(uncertain) > 3 else ""
        yield (
            f"sign not certain: other tuples of the same workload (bootstrap) turn the sign of {which} of the "
            f"cases{more}"
        )


def _about_level(fit: Fit, sample: Sample) -> Iterator[str]:
    """Say which terms only stand in for a constant: their sign changes when the form is given one."""
    if not fit.is_linear or fit.offset or any(not parse(term.text).variables for term in fit.terms):
        return
    columns = np.column_stack([fit.design(sample), np.ones(len(sample))])
    try:
        with_constant = solve(columns, sample.score, sample.weight).coefficients[:-1]
    except FitError:
        return
    turned = [
        term.text
        for term, old, new in zip(fit.terms, fit.coefficients, with_constant, strict=True)
        if np.sign(old) != np.sign(new)
    ]
    if turned:
        terms = " and ".join(part for part in (", ".join(turned[:-1]), turned[-1]) if part)
        stand, have = ("stands", "its coefficient has") if len(turned) == 1 else ("stand", "their coefficients have")
        yield (
            f"the form has no constant, so {terms} {stand} in for one: fitted with a constant, {have} the other sign. "
            "The scores do not support the order that this gives the queue; judge the policy by a test (policyfactory "
            "evaluate), not by this fit"
        )


def _about_order(falls: dict[str, float], dominance: dict[str, float], order: float) -> Iterator[str]:
    """Say what is odd about the order that the formula gives a queue."""
    for name, part in falls.items():
        if part > 0:
            yield f"not monotone: the formula falls as {name} grows in {part:.0%} of the data's range; {_EFFECT[name]}"
    for term, share in dominance.items():
        if share >= DOMINANCE_LIMIT:
            yield f"the term {term} alone orders {share:.1%} of the pairs of a queue as the whole formula does"
    if order < ORDER_LIMIT:
        yield f"orders only {order:.0%} of the pairs of jobs in a queue as their scores are; 50% is chance"


# From a fit to a policy and its model file ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A fitted formula with what is known about it.

    Parameters
    ----------
    fit : Fit
        Terms, coefficients and errors.
    sample : Sample
        The rows that it was fitted to.
    candidate : ResampledFit or None
        What resampling found; None if it was not resampled.
    rank, of : int
        Its rank by mean absolute error, from 1, among so many fits.
    seed : int or None
        Of the resampling.
    """

    fit: Fit
    sample: Sample
    candidate: ResampledFit | None = None
    rank: int = 1
    of: int = 1
    seed: int | None = None

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

    @functools.cached_property
    def inference(self) -> Inference:
        """Standard errors and inflation factors."""
        return infer(self.fit, self.sample)

    @functools.cached_property
    def diagnosis(self) -> Diagnosis:
        """What speaks against the formula."""
        unstable = None if self.candidate is None else self.candidate.other_sign()
        return diagnose(self.fit, self.sample, self.inference, unstable)

    @functools.cached_property
    def policy(self) -> Policy:
        """The policy that sorts by this formula."""
        return self.model().policy

    def model(self, name: str | None = None) -> Model:
        """Return the formula with coefficients, diagnostics and origin: what `policyfactory.save_model` writes.

        In the policy r counts from the start of the window, as in a tuple.
        """
        fit, sample = self.fit, self.sample
        policy = Policy(
            name=name or fit.name[:100],
            formula=sort_key(fit),
            description=f"fitted to the scores of {sample.tuples:,} tuples: {cut(fit.name, 200)} ({fit.family})",
            source=f"policyfactory fit, score table {printable(sample.name, 200)}",
            epoch=Epoch("window-start"),
        )
        coefficients = tuple(
            FittedNumber(term.coefficient, cut(term.text, 200), float(value), float(error), term.unit)
            for term, value, error in zip(fit.terms, fit.coefficients, self.inference.stderr, strict=True)
        )
        return Model(policy, coefficients, _diagnostics(self), _provenance(sample, self.seed))

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
        facts, candidate = self._facts(), self.candidate
        if candidate is not None and len(candidate.mae):
            facts["first of all fits"] = f"in {candidate.first:.0%} of {len(candidate.mae)} resamplings of the tuples"
        errors = zip(self.fit.terms, self.fit.coefficients, self.inference.stderr, strict=True)
        for term, value, stderr in errors:
            facts[f"{term.coefficient}, of {shown_term(term)}"] = (
                f"{value:.{SHOWN_DIGITS}g} (standard error {stderr:.2g}, {term.unit})"
            )
        for number, warning in enumerate(self.diagnosis.warnings, start=1):
            facts[f"warning {number}"] = warning
        return facts_text(repr(self)[1:-1], facts)

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture of the order of jobs over p, q and r."""
        return draw_priority(self.fit, self.sample)

    def _facts(self) -> dict[str, str]:
        return {
            "sort key": sort_key(self.fit, digits=SHOWN_DIGITS),
            "rank": f"{self.rank} of {self.of}",
            "mean absolute error": f"{self.mae:.5g}",
        }

    def __repr__(self) -> str:
        return f"<Fitted {self.name}: mean absolute error {self.mae:.4g}, rank {self.rank}>"

    def _repr_html_(self) -> str:
        return facts_html(self.name, self._facts())


def _diagnostics(fitted: Fitted) -> dict[str, Any]:
    fit, sample, inference, diagnosis = fitted.fit, fitted.sample, fitted.inference, fitted.diagnosis
    names = [term.coefficient for term in fit.terms]

    def by_name(values: Any) -> dict[str, float | None]:
        return {name: finite(value) for name, value in zip(names, np.asarray(values).tolist(), strict=True)}

    facts: dict[str, Any] = {
        "family": fit.family,
        "form": fit.source,
        "score_formula": fit.text,
        "aliases": list(fit.aliases),
        "method": fit.method,
        "converged": fit.converged,
        "weight": "p*q, inside the square",
        "rows": len(sample),
        "tuples": sample.tuples,
        "rows_left_out": sample.left_out,
        "mae": finite(fit.mae),
        "mae_of_noise_alone": sample.noise_mae,
        "mae_of_the_level": sample.level_mae,
        "effective_tuples": sample.effective_tuples,
        "weighted_sse": finite(fit.sse),
        "condition_number": finite(fit.condition),
        "t": by_name(inference.t),
        "stderr_kind": "cluster-robust, the tuple is the unit",
        "stderr_classical": by_name(inference.stderr_classical),
        "vif": by_name(inference.vif),
        "vif_weighted": by_name(inference.vif_weighted),
        "falls_along": diagnosis.slopes,
        "one_term_orders_as_all": {text: finite(share) for text, share in diagnosis.dominance.items()},
        "pairs_ordered_as_scores": finite(diagnosis.order),
        "data_range": {
            "p_s": [float(sample.p.min()), float(sample.p.max())],
            "q_processors": [float(sample.q.min()), float(sample.q.max())],
            "r_s": [float(sample.r.min()), float(sample.r.max())],
        },
        "warnings": list(diagnosis.warnings),
    }
    if reason := shorter_formula(fit.expression).why_not:
        facts["formula_as_fitted"] = f"a shorter one: {reason}"
    if fitted.candidate is not None:
        facts["mae_held_out"] = finite(fitted.candidate.held_out)
        facts["bootstrap"] = _resampled(fitted.candidate, names)
    return facts


def _resampled(candidate: ResampledFit, names: list[str]) -> dict[str, Any] | None:
    if not len(candidate.mae):
        return None
    return {
        "unit": "tuple",
        "replicates": len(candidate.mae),
        "mae_95": list(interval(candidate.mae)),
        "rank_95": list(interval(candidate.rank.astype(np.float64))),
        "share_first": candidate.first,
        "coefficients_95": {
            name: list(interval(values)) for name, values in zip(names, candidate.coefficients, strict=True)
        },
    }


def _provenance(sample: Sample, seed: int | None) -> dict[str, Any]:
    return {
        "command": command_line(),
        "seed": seed,
        "inputs": {sample.name: sample.sha256},
        "origin_of_scores": sample.origin,
        "versions": package_versions(),
    }


# Pictures of fits: priority over p, q and r (paper 004 figure 3, paper 002 figure 2), ranking, certainty --------------


class FitPicture(NamedTuple):
    """What a picture shows, what draws it, and with how many dots an inch."""

    caption: str
    draw: Callable[[], Figure]
    dpi: int = 150


_POINTS = 120  # an axis of a heat map
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


def draw_ranking(known: Sequence[ResampledFit], sample: Sample) -> Figure:
    """Draw the mean absolute error of some fits with its bootstrap interval, the held-out error and the noise."""
    figure = new_figure(8.0, 0.36 * len(known) + 1.6)
    axis = figure.subplots()
    places = np.arange(len(known))[::-1]
    for height, candidate in zip(places, known, strict=True):
        if len(candidate.mae):
            axis.plot(interval(candidate.mae), [height, height], color=BLUE, linewidth=2, alpha=0.6)
    axis.plot([c.fit.mae for c in known], places, "o", color=BLUE, label="all tuples, line: 95 % (bootstrap)")
    axis.plot([c.held_out for c in known], places, "x", color=VERMILION, label="tuples held out")
    axis.axvline(sample.level_mae, color="0.4", linestyle="--", label="same score for every job of a queue")
    if sample.noise_mae is not None:
        axis.axvline(sample.noise_mae, color=BLACK, linestyle=":", label="noise of the scores alone")
    keys = [sort_key(candidate.fit, digits=SHOWN_DIGITS) for candidate in known]
    names = [key if len(key) <= 60 else candidate.fit.name for key, candidate in zip(keys, known, strict=True)]
    axis.set_yticks(places, names)
    axis.set_xlabel("mean absolute error of the score")
    axis.set_title(f"{sample.tuples:,} tuples, {len(sample):,} jobs", fontsize=10)
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
    axis.fill_between(certainty.sizes, low, high, color=BLUE, alpha=0.25, label="95 % of the tables")
    axis.plot(certainty.sizes, middle, "o-", color=BLUE, markersize=4, label="median")
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
    ranks = _places(values).reshape(shape)
    shown = [axes[k] / (3600.0 if name == "r" else 1.0) for k, name in enumerate(names)]
    mesh = axis.pcolormesh(*shown, ranks, cmap="viridis", vmin=0, vmax=1, shading="nearest", rasterized=True)
    if np.ptp(ranks) > 0:
        axis.contour(*shown, ranks, levels=np.arange(0.1, 1.0, 0.1), colors="white", linewidths=0.5, alpha=0.7)
    axis.grid(visible=False)
    for name, which in zip(names, ("x", "y"), strict=True):
        getattr(axis, f"set_{which}label")(_UNITS[name])
        if name in "pq":
            getattr(axis, f"set_{which}scale")("log", base=10 if name == "p" else 2)
            plain_numbers(getattr(axis, f"{which}axis"))
    axis.minorticks_off()  # dozens of each axis, which take as long as the map
    return mesh


def _axis_values(sample: Sample, name: str) -> NDArray[np.float64]:
    column = getattr(sample, name)
    low, high = float(column.min()), float(column.max())
    if low == high:
        high = low * 1.01
    return np.geomspace(low, high, _POINTS) if name in "pq" else np.linspace(low, high, _POINTS)


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
