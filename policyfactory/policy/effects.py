"""What each input of a network does to the score of a job, over jobs as they wait in a queue.

The partial dependence of Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
29(5), 2001, section 8.2: one input takes the values of its range in turn, while the others keep those of the jobs, and
the scores are averaged. What single jobs do around that average is kept beside it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import UsageError
from policyfactory.policy.expression import parse
from policyfactory.policy.network import Network
from policyfactory.policy.nodes import Expression, Variable, replace_variables

__all__ = [
    "CONSTANT",
    "FITS",
    "InputEffect",
    "JobSample",
    "NetworkEffects",
    "input_values",
    "network_effects",
    "outputs",
    "wide_jobs",
]

_GRID = 41  # values of an input
_RANGE = (1.0, 99.0)  # percent of the jobs between whose values the range of an input lies
_BAND = (10.0, 90.0)  # percent of the jobs
_NOTHING = 1e-9  # of the spread of scores: rounding
_LITTLE = 0.05  # of the way down: rising less than that is falling all the same
_MIXED = 0.2  # of the swing: less on average means that jobs go either way
_WIDE = 400  # jobs of a sample that is no log's
FITS, CONSTANT = "fits now", "constant"
_WORDS = {
    frozenset("w"): "wait",
    frozenset("p"): "request",
    frozenset("q"): "processors",
    frozenset("qm"): "processors (share)",
    frozenset("qf"): FITS,
    frozenset("f"): "free processors",
    frozenset("fm"): "free processors (share)",
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JobSample:
    """Jobs as they wait in queues.

    Parameters
    ----------
    p, q, w, f : float64 array (n,)
        Requested seconds, processors, seconds waited, processors free when the queue is sorted.
    m : float
        Processors of the machine.
    about : str
        Where they are from, in words.
    """

    p: FloatArray
    q: FloatArray
    w: FloatArray
    f: FloatArray
    m: float
    about: str

    def __post_init__(self) -> None:
        """Refuse a sample without jobs."""
        if not len(self.p):
            raise UsageError(f"{self.about}: there is no job, so there is nothing to explain; give a log with jobs")

    def __len__(self) -> int:
        return len(self.p)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class InputEffect:
    """What one input does.

    Parameters
    ----------
    place : int
        Its place among the inputs, from 1.
    formula, label : str
        What it is, and in words.
    why_dead : str
        Why it does nothing; empty for a live input.
    variable : str
        What the axis counts: ``w``, ``p``, ``q`` or ``f``; empty where it is the input itself.
    axis : float64 array (k,)
        Its values, ascending.
    mean, low, high : float64 array (k,)
        How far the score is from each job's own mean over the axis: the mean over the jobs, and between what 80 % of
        them lie. Lower runs first.
    swing : float
        How far apart an input's least and greatest score are for a job, on average.
    share : float
        Of the sum of all swings.
    words : str
        What more of it does.
    """

    place: int
    formula: str
    label: str
    why_dead: str
    variable: str
    axis: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    swing: float
    share: float
    words: str

    @property
    def is_live(self) -> bool:
        """Whether it changes any score."""
        return not self.why_dead

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values = {name: getattr(self, name) for name in ("formula", "label", "swing", "share", "words", "why_dead")}
        curve = {name: getattr(self, name).tolist() for name in ("axis", "mean", "low", "high")}
        return {"input": self.place, **values, "variable": self.variable, **curve}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class NetworkEffects:
    """What all inputs of a network do to these jobs."""

    network: Network
    jobs: JobSample
    inputs: tuple[InputEffect, ...]

    @property
    def live(self) -> tuple[InputEffect, ...]:
        """The inputs that change a score."""
        return tuple(one for one in self.inputs if one.is_live)

    @property
    def dead(self) -> tuple[InputEffect, ...]:
        """The inputs that do not."""
        return tuple(one for one in self.inputs if not one.is_live)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "policy": self.network.name,
            "digest": self.network.digest,
            "jobs": self.jobs.about,
            "inputs": [one.as_dict() for one in self.inputs],
        }


def wide_jobs(processors: int = 256) -> JobSample:
    """Return jobs of all sizes for a machine: requests of a minute to two days, waits up to three, evenly spread.

    No draw but a rank-one lattice, which fills the space more evenly than draws do.
    """
    # The generalised golden ratio of four dimensions: the root of x**5 = x + 1.
    ratio = 1.1673039782614187
    step = (1 / ratio) ** np.arange(1, 5)
    shares = np.mod(0.5 + np.outer(np.arange(_WIDE), step), 1.0)
    p, q, w, f = shares.T
    return JobSample(
        np.round(60.0 * 2880.0**p),
        np.round(float(processors) ** q),
        np.where(w < 0.1, 0.0, np.round(10.0 * 25_920.0**w)),
        np.floor(f * (processors + 1)),
        float(processors),
        f"jobs of all sizes on {processors:,} processors",
    )


def input_values(formula: str | Expression, jobs: JobSample) -> FloatArray:
    """Return the value of an input for each job; unlike a policy's formula, f may differ from job to job."""
    from policyfactory.engine.formula import evaluate
    from policyfactory.policy.compile import compile_expression

    expression = parse(formula) if isinstance(formula, str) else formula
    # An input has no r, so that r can stand for f.
    program = compile_expression(replace_variables(expression, {"f": Variable("r")}))
    stack = np.empty((program.depth, len(jobs)))
    columns = np.array((jobs.p, jobs.q, jobs.f, jobs.w), dtype=np.float64)
    evaluate(program.codes, program.operands, columns, len(jobs), jobs.m, 0.0, stack)
    values: FloatArray = stack[0].copy()
    return values


def outputs(network: Network, values: FloatArray) -> FloatArray:
    """Return the network's preference for each row of inputs, highest first, up to the rounding of sums."""
    for place, layer in enumerate(network.layers, start=1):
        # As in the array machine, what is infinite or no number is no error.
        with np.errstate(all="ignore"):
            values = values @ layer.weights.astype(np.float64) + layer.biases
        if place < len(network.layers):
            values = np.where(values < 0.0, 0.0, values)
    column: FloatArray = values[:, 0]
    return column


def network_effects(network: Network, jobs: JobSample | None = None) -> NetworkEffects:
    """Return what each input of a network does to the scores of jobs.

    Parameters
    ----------
    network : Network
        The network.
    jobs : JobSample, optional
        The jobs; without them `wide_jobs`. `policyfactory.simulate.explained` has those of a log's queues.
    """
    jobs = wide_jobs() if jobs is None else jobs
    table = np.column_stack([input_values(formula, jobs) for formula in network.inputs])
    # A job with an input that has no value runs last whatever the others are.
    rows = np.isfinite(table).all(axis=1)
    if not rows.any():
        raise UsageError(f"network {network.name}: no job of {jobs.about} has a value in all inputs; give other jobs")
    kept = JobSample(jobs.p[rows], jobs.q[rows], jobs.w[rows], jobs.f[rows], jobs.m, jobs.about)
    table = table[rows]
    spread = float(np.ptp(outputs(network, table)))
    effects = [_effect(network, kept, table, place, spread) for place in range(len(network.inputs))]
    total = sum(one.swing for one in effects)
    shared = [dataclasses.replace(one, share=one.swing / total if total else 0.0) for one in effects]
    return NetworkEffects(network, kept, tuple(shared))


def _effect(network: Network, jobs: JobSample, table: FloatArray, place: int, spread: float) -> InputEffect:
    formula = network.inputs[place]
    expression = parse(formula)
    label = _WORDS.get(expression.variables, formula)
    none = np.empty(0)
    dead = InputEffect(place + 1, formula, label, "", "", none, none, none, none, 0.0, 0.0, "")
    if not expression.variables - {"m"}:
        return dataclasses.replace(dead, label=CONSTANT, why_dead="constant")
    if not np.ptp(table[:, place]):
        return dataclasses.replace(dead, why_dead=f"constant for {jobs.about}")
    variable, axis, values = _axis(expression, jobs, table[:, place])
    curves = np.empty((len(axis), len(jobs)))
    changed = table.copy()
    for row, value in enumerate(values):
        changed[:, place] = value
        curves[row] = -outputs(network, changed)
    curves -= curves.mean(axis=0)
    swing = float(np.ptp(curves, axis=0).mean())
    if swing <= _NOTHING * spread or swing == 0.0:
        return dataclasses.replace(dead, why_dead="no effect on any score")
    mean = curves.mean(axis=1)
    low, high = np.percentile(curves, _BAND, axis=1)
    words = _words(expression, variable, axis, mean, swing)
    return InputEffect(place + 1, formula, label, "", variable, axis, mean, low, high, swing, 0.0, words)


def _axis(expression: Expression, jobs: JobSample, own: FloatArray) -> tuple[str, FloatArray, FloatArray]:
    """Return which variable the axis counts, its values, and the input at each of them."""
    names = expression.variables - {"m"}
    if len(names) > 1:
        levels = np.unique(own)
        if len(levels) > 2:
            least, greatest = np.percentile(own, _RANGE)
            levels = np.linspace(least, greatest, _GRID)
        return "", levels, levels
    (name,) = names
    column: FloatArray = getattr(jobs, name)
    least, greatest = map(float, np.percentile(column, _RANGE))
    if name == "f":
        axis = np.linspace(least, greatest, _GRID)
    else:
        # Times and sizes are spread over orders of magnitude.
        first = max(least, 10.0 if name == "w" else 1.0)
        axis = np.geomspace(first, max(greatest, 2 * first), _GRID)
    fixed = {other: np.ones(_GRID) for other in "pqwf"} | {name: axis}
    values = input_values(expression, JobSample(**fixed, m=jobs.m, about=""))
    known = np.isfinite(values)
    return name, axis[known], values[known]


def _words(expression: Expression, variable: str, axis: FloatArray, mean: FloatArray, swing: float) -> str:
    """Return what more of an input does to the job, on average."""
    # How far the curve ever rises, and falls.
    rise = float((mean - np.minimum.accumulate(mean)).max())
    fall = float((np.maximum.accumulate(mean) - mean).max())
    if float(np.ptp(mean)) < _MIXED * swing:
        words = "sooner or later, as the other inputs are"
    elif rise <= _LITTLE * fall:
        words = "more: sooner"
    elif fall <= _LITTLE * rise:
        words = "more: later"
    else:
        turn = int(np.argmin(mean) if 0 < np.argmin(mean) < len(mean) - 1 else np.argmax(mean))
        first, then = ("sooner", "later") if np.argmin(mean) == turn else ("later", "sooner")
        words = f"{first} up to {_shown(axis[turn], variable)}, then {then}"
    if not expression.variables - {"f", "m"}:
        # One number for the whole queue moves jobs past each other only through the other inputs.
        words += "; the same for all jobs of a pass"
    return words


def _shown(value: float, variable: str) -> str:
    from policyfactory.core.units import format_duration

    if variable in ("w", "p"):
        return format_duration(float(f"{value:.2g}") if value < 1e15 else math.inf)
    return f"{value:.3g}"
