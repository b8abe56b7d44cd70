"""A fitted formula: its sort key, its coefficients with errors, what speaks against it, its policy and model file."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import FitError, UsageError
from policyfactory.core.files import command_line, package_versions
from policyfactory.core.options import FloatArray
from policyfactory.core.picture import keeps_settings
from policyfactory.core.text import cut, facts_html, facts_text, finite, shortened
from policyfactory.fitting.bootstrap import ResampledFit, interval
from policyfactory.fitting.regression import Fit, Inference, infer, shown_term, solve, sort_key
from policyfactory.fitting.sample import Sample
from policyfactory.policy.algebra import SHOWN_DIGITS, shorter_formula
from policyfactory.policy.expression import Expression, parse
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import FittedNumber, Model
from policyfactory.workload.header import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIF_LIMIT = 10.0  # paper 002 section 5.2
CONDITION_LIMIT = 30.0  # Belsley, Kuh and Welsch, Regression Diagnostics, 1980, section 3.2
DOMINANCE_LIMIT = 0.98  # share of the pairs in a queue that one term alone orders as the formula does
SIGN_LIMIT = 0.025  # share of replicates with the other sign
ORDER_LIMIT = 0.55  # share of pairs that are ordered as their scores are
_GRID = 21  # points an axis
_FLAT = 1e-9  # part of the formula's range that counts as no change
_PAIR_TUPLES = 500  # pairs are counted in the first of the tuples
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
        *_about_method(fit),
        *_about_inflation(fit, inference),
        *_about_signs(unstable or {}),
        *_about_level(fit, sample),
        *(_about_slope(name, falling) for name, falling in falls.items() if falling > 0),
        *(
            f"the term {term} alone orders {share:.1%} of the pairs of a queue as the whole formula does"
            for term, share in dominance.items()
            if share >= DOMINANCE_LIMIT
        ),
        *_about_order(order),
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

    Pairs that ``first`` leaves tied are not counted; those that only ``second`` leaves tied count one half.

    Parameters
    ----------
    first, second : float64 array (n,)
        Values for the rows of ``sample``.
    """
    same = counted = 0.0
    ends = np.append(sample.starts[1:], len(sample))
    for start, end in zip(sample.starts[:_PAIR_TUPLES], ends, strict=False):
        rows = slice(int(start), int(end))
        order = np.sign(first[rows, None] - first[None, rows])
        product = order * np.sign(second[rows, None] - second[None, rows])
        pairs = float(np.count_nonzero(order))
        same += (pairs + float(product.sum())) / 2
        counted += pairs
    return same / counted if counted else 1.0


def _dominance(fit: Fit, sample: Sample) -> dict[str, float]:
    terms = [(term, value) for term, value in zip(fit.terms, fit.coefficients, strict=True) if term.linear]
    varying = [(term.text, value) for term, value in terms if parse(term.text).variables]
    if len(varying) < 2:
        return {}
    whole = sample.values(fit.expression)
    return {text: agreement(whole, value * sample.values(text), sample) for text, value in varying}


def _about_method(fit: Fit) -> list[str]:
    if fit.converged:
        return []
    return [f"the minimum is uncertain: {fit.method}; try other starts (--seed) or a simpler form"]


def _about_inflation(fit: Fit, inference: Inference) -> list[str]:
    sentences = []
    factors = np.fmax(np.nan_to_num(inference.vif, nan=0.0, posinf=np.finfo(float).max), 0.0)
    weighted = np.where([term.text == "1" for term in fit.terms], 0.0, inference.vif_weighted)
    for values, of in ((factors, ""), (weighted, " of the weighted rows")):
        worst = int(np.argmax(values))
        count = int((values > VIF_LIMIT).sum())
        if count:
            sentences.append(
                f"variance inflation above {VIF_LIMIT:g}{of} for {count} of {len(values)} terms "
                f"(largest {values[worst]:.4g}, {fit.terms[worst].text}): "
                "their coefficients cannot be told apart, a simpler form is safer"
            )
    if fit.condition > CONDITION_LIMIT:
        sentences.append(
            f"ill-conditioned: condition number {fit.condition:.3g} (above {CONDITION_LIMIT:g}) of the weighted, "
            f"scaled columns; a relative change of the scores can change coefficients {fit.condition:.3g} times as much"
        )
    return sentences


def _about_signs(unstable: dict[str, float]) -> list[str]:
    uncertain = sorted(((share, name) for name, share in unstable.items() if share > SIGN_LIMIT), reverse=True)
    if not uncertain:
        return []
    worst = ", ".join(f"{name} in {share:.0%}" for share, name in uncertain[:3])
    more = f" and {len(uncertain) - 3} more" if len(uncertain) > 3 else ""
    return [
        f"sign not certain: other tuples of the same workload (bootstrap) turn the sign of {worst} of the cases{more}"
    ]


def _about_level(fit: Fit, sample: Sample) -> list[str]:
    """Say which terms only stand in for a constant: their sign changes when the form is given one."""
    if not fit.is_linear or fit.offset or any(not parse(term.text).variables for term in fit.terms):
        return []
    columns = np.column_stack([fit.design(sample), np.ones(len(sample))])
    try:
        with_constant = solve(columns, sample.score, sample.weight).coefficients[:-1]
    except FitError:
        return []
    turned = [
        term.text
        for term, old, new in zip(fit.terms, fit.coefficients, with_constant, strict=True)
        if np.sign(old) != np.sign(new)
    ]
    if not turned:
        return []
    terms = " and ".join(part for part in (", ".join(turned[:-1]), turned[-1]) if part)
    stand, have = ("stands", "its coefficient has") if len(turned) == 1 else ("stand", "their coefficients have")
    return [
        (
            f"the form has no constant, so {terms} {stand} in for one: fitted with a constant, {have} the other sign. "
            "The scores do not support the order that this gives the queue; judge the policy by a test (policyfactory "
            "evaluate), not by this fit"
        )
    ]


def _about_order(order: float) -> list[str]:
    if order >= ORDER_LIMIT:
        return []
    return [f"orders only {order:.0%} of the pairs of jobs in a queue as their scores are; 50% is chance"]


def _about_slope(variable: str, falling: float) -> str:
    return (
        f"not monotone: the formula falls as {variable} grows in {falling:.0%} of the data's range; {_EFFECT[variable]}"
    )


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
        from policyfactory.fitting.pictures import draw_priority

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
        "one_term_orders_as_all": dict(diagnosis.dominance),
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
