"""The families of formulas that are searched: shapes that are known to order queues well, with free coefficients.

All are written in logarithms, so that a coefficient is an exponent: ``log10(p) + a*log10(q)`` orders as p*q**a. In
the words of these formulas, x is log10(p), y log10(q), v log10(w + 10) - 1 (0 for a job that has just come, 1 after
90 s, 3 after 2.8 h), c is 1 for a job that fits now and 0 for any other. The coefficient of x is 1: a factor changes
no order. Families that read what is predicted of a job are an index of its length, ln(e) and ln(s), in place of x.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, StopCheck, Workers
from policyfactory.policy.form import Form
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.search.environment.goals import GUARDS, Bound, Breach, Goal, goal_of, judge
from policyfactory.search.options import Objective, TrainOptions, check_range
from policyfactory.search.replicated import Replicated
from policyfactory.simulate.metrics import METRICS

__all__ = [
    "FAMILIES",
    "NAMES",
    "PREDICTED",
    "PUBLISHED",
    "REFERENCES",
    "SURFACE",
    "Best",
    "DistillOptions",
    "Family",
    "Worth",
    "best_published",
    "breaches_of",
    "distance_of",
    "family_of",
    "gain",
    "least_of",
    "parse_start",
    "worth",
]

_X, _Y, _V, _C = "log10(max(p, 1))", "log10(q)", "(log10(w + 10) - 1)", "min(1, max(0, f - q + 1))"

# Published orders that are hard to beat, beside which every learned one is judged.
REFERENCES: dict[str, Policy] = {
    "SAF": CATALOGUE["SAF"],
    "P*SQRT(Q)": Policy("P*SQRT(Q)", "p*sqrt(q)", "short jobs first, processors by their square root"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """A form, and from where its coefficients are searched.

    Parameters
    ----------
    form : Form
        The formula.
    start : tuple of float
        First values of the coefficients: a published policy, or one that is near.
    scale : tuple of float
        What a step of each is measured in.
    words : str
        What it is.
    """

    form: Form
    start: tuple[float, ...]
    scale: tuple[float, ...]
    words: str

    @property
    def name(self) -> str:
        """The name of the form."""
        return self.form.name


@dataclasses.dataclass(frozen=True, slots=True)
class _Stock:
    text: str
    start: Mapping[str, float]
    words: str
    threshold: str = ""


def _products() -> _Stock:
    """Return x and twelve terms: y, v, c, the squares of x, y, v (c is its own), and the six products of two."""
    parts = {"x": _X, "y": _Y, "v": _V, "c": _C}
    terms = {name: parts[name] for name in "yvc"}
    terms |= {f"{name}{name}": f"{parts[name]}**2" for name in "xyv"}
    terms |= {a + b: f"{parts[a]}*{parts[b]}" for a, b in itertools.combinations("xyvc", 2)}
    text = " + ".join([_X, *(f"k_{name}*{term}" for name, term in terms.items())])
    return _Stock(text, {"k_y": 0.5}, "x, y, v, c, their squares and all products of two of them: 12 coefficients")


_STOCK: dict[str, _Stock] = {
    "power": _Stock(f"{_X} + a*{_Y}", {"a": 0.5}, "p*q**a: nothing but a sort key, which every scheduler takes"),
    "curved": _Stock(
        f"{_X} + a*{_Y} + b*{_X}*{_Y} + c*{_X}**2 + d*{_Y}**2",
        {"a": 0.5},
        "a sort key with x, y, their squares and their product",
    ),
    "linear": _Stock(
        f"{_X} + a*{_Y} - b*{_V}", {"a": 0.5, "b": 0.1}, "p*q**a, and who has waited longer goes ahead (b > 0)"
    ),
    "stretch": _Stock(
        f"{_X} + a*{_Y} - b*log10(1 + w/max(p, 1))",
        {"a": 0.5, "b": 0.1},
        "p*q**a, and who has waited longer in terms of its own length goes ahead (b > 0)",
    ),
    "ageing": _Stock(
        f"{_X} + a*{_Y} - b*log10(1 + w/10**t)",
        {"a": 0.5, "b": 0.1, "t": 4.0},
        "p*q**a, and a wait counts from about 10**t s on",
    ),
    "fits": _Stock(
        f"{_X} + a*{_Y} - b*{_V} + k*{_C}",
        {"a": 0.5, "b": 0.1},
        "linear, and jobs that fit now go ahead of the others (k < 0) or behind them (k > 0)",
    ),
    "products": _products(),
}

# From what worked on four logs (docs/train.md); a, b as there.
_INDEX, _FIRST = "a*ln(s) + ln(e) + b*ln(q)", {"a": -0.5, "b": 0.3}
_FORESEEN: dict[str, _Stock] = {
    "predicted": _Stock(_INDEX, _FIRST, "an index of the predicted length, and processors: a sort key"),
    "predicted-ageing": _Stock(
        f"{_INDEX} - c*w/3600", {**_FIRST, "c": 0.02}, "predicted, and each hour of waiting counts alike"
    ),
    "predicted-capped": _Stock(
        f"{_INDEX} - c*min(w, 10**t)/10**t",
        {**_FIRST, "c": 0.5, "t": 5.0},
        "predicted, and a wait counts up to 10**t s, as under Slurm's PriorityMaxAge",
    ),
    "predicted-log": _Stock(
        f"{_INDEX} - c*ln(1 + w/10**t)",
        {**_FIRST, "c": 0.2, "t": 4.0},
        "predicted, and a wait counts from about 10**t s on, ever less",
    ),
    "predicted-users": _Stock(
        f"{_INDEX} + c*ln(1 + user_waiting) + d*ln(1 + user_running)",
        _FIRST,
        "predicted, and the jobs that the user has waiting and running",
    ),
    "predicted-threshold": _Stock(
        _INDEX, {**_FIRST, "t": 5.5}, "predicted, and who has waited longer than 10**t s goes first", threshold="t"
    ),
}
FAMILIES: dict[str, str] = {name: stock.words for name, stock in _STOCK.items()}
PREDICTED: dict[str, str] = {name: stock.words for name, stock in _FORESEEN.items()}


def family_of(text: str, start: Mapping[str, float] | None = None) -> Family:
    """Return the stock family of a name, or that of a formula with named coefficients (``NAME=FORMULA`` names it).

    Parameters
    ----------
    text : str
        For example ``linear``, or ``log10(p) + a*log10(q)``.
    start : mapping of str to float, optional
        First values of coefficients, in place of the family's own; 0 of a user's formula.

    Raises
    ------
    UsageError
        If there is no such family, the formula has no coefficient, or ``start`` names one that it has not.
    FormulaError
        If the formula cannot be read.
    """
    stock = {**_STOCK, **_FORESEEN}.get(text.strip().lower())
    if stock is not None:
        name, formula, values, words = text.strip().lower(), stock.text, dict(stock.start), stock.words
    else:
        name, sign, formula = text.partition("=")
        name, formula = (name.strip(), formula.strip()) if sign else ("form", text.strip())
        values, words = {}, "a formula of the user's"
        if not (0 < len(name) <= 40 and name.isidentifier()):
            raise UsageError(f"the name {name[:40]!a} of a family cannot be used; write NAME=FORMULA, the name a word")
        if formula.isidentifier():
            raise UsageError(
                f"there is no family {formula[:40]!a}; there are {', '.join([*_STOCK, *_FORESEEN])}, or write a "
                "formula with named coefficients: log10(p) + a*log10(q)"
            )
    try:
        form = Form.of(name, formula, threshold="" if stock is None else stock.threshold)
    except FormulaError as error:
        raise type(error)(f"family {name}: {error}") from None
    unknown = sorted(set(start or {}) - set(form.names))
    if unknown and stock is None:
        raise UsageError(f"--start names {unknown[0]}; the coefficients of {name} are {', '.join(form.names)}")
    values |= {one: value for one, value in (start or {}).items() if one in form.names}
    first = tuple(float(values.get(one, 0.0)) for one in form.names)
    # The stock ones are exponents: steps are measured in 1. A user's may have any size.
    scale = tuple(1.0 if stock is not None or value == 0 else abs(value) for value in first)
    return Family(form, first, scale, words)


def parse_start(text: str) -> dict[str, float]:
    """Return the values that a text gives: ``a=0.5,b=1e3``.

    Raises
    ------
    UsageError
        If it is no such list.
    """
    values: dict[str, float] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, number = part.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not abs(value) <= 1e300:
            raise UsageError(f"--start {part[:60]!a}: write NAME=NUMBER, several separated by commas: a=0.5,b=0.1")
        values[name.strip()] = value
    return values


# The published policy that a log's own past speaks for ----------------------------------------------------------------

# What anybody could run without learning anything.


# Of the catalogue all that run small or early jobs first.
_POLYNOMIALS, _TRACES = ("LIN", "QDR", "CUB", "QUA"), ("SYNTHETIC", "CTC-SP2", "SDSC-BLUE")
NAMES = (
    *("FCFS", "SPF", "SQF", "SAF", "SRF", "WFP3", "UNICEF", "F1", "F2", "F3", "F4"),
    *(f"{polynomial}-{trace}" for trace in _TRACES for polynomial in _POLYNOMIALS),
)
PUBLISHED: tuple[Policy, ...] = (*(CATALOGUE[name] for name in NAMES), REFERENCES["P*SQRT(Q)"])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best published policy on replicas.

    Parameters
    ----------
    policy : Policy
        It.
    values : float64 array (replicas, len(AIMS))
        Its aims.
    means : dict of str to float
        Of every published policy the mean bounded slowdown, as the geometric mean over the replicas.
    """

    policy: Policy
    values: FloatArray
    means: dict[str, float]


def best_published(
    arena: Replicated,
    workers: Workers | int = 1,
    *,
    among: Sequence[Policy] = PUBLISHED,
    notify: Notify = lambda _: None,
) -> Best:
    """Return the published policy with the least mean logarithm of the mean bounded slowdown over replicas.

    Parameters
    ----------
    arena : Replicated
        The replicas.
    workers : Workers or int
        Who works; a number means so many threads.
    among : sequence of Policy
        The policies; the first of equal ones is taken.
    notify : callable
        Is told when a worker was lost.
    """
    made = dict(results(_values, arena, enumerate(among), workers, notify=notify))
    logs = [float(np.log(made[at][:, 0]).mean()) for at in range(len(among))]
    best = int(np.argmin(logs))
    means = {one.name: float(np.exp(value)) for one, value in zip(among, logs, strict=True)}
    return Best(among[best], made[best], means)


def _values(arena: Replicated, unit: tuple[int, Policy], go_on: StopCheck) -> tuple[int, FloatArray]:
    rows = []
    for at in range(len(arena)):
        go_on()
        rows.append(arena.aims(at, unit[1]))
    return unit[0], np.array(rows)


# What a formula is worth on the windows for training, in one number: less is better -----------------------------------

# The goal over all windows, relative to a baseline, plus what the distance from the start costs; and, for a formula
# that leaves the band of a guard, so much more that the search is led back. Such a formula is never a candidate.


# What one unit of a guard beyond its band, relative to the bound, costs; a ratio of e in the goal is 1.
_BEYOND = 10.0
# Of a goal that may be 0, the amount that is next to nothing, in its unit: a second, or a percent.
_NOTHING = {"s": 1.0, "%": 1.0}


@dataclasses.dataclass(frozen=True, slots=True)
class Worth:
    """What a formula is worth.

    Parameters
    ----------
    objective : float
        What is minimised.
    gain : float
        The part of it that is the goal.
    means : tuple of float
        Mean over the windows of the goal and of each guard.
    out : str
        The guards that left their bands, in words; empty if none did.
    """

    objective: float
    gain: float
    means: tuple[float, ...]
    out: str


def worth(
    values: FloatArray,
    baseline: FloatArray,
    goal: str,
    bands: Sequence[Bound],
    *,
    objective: Objective = "log-ratio",
    distance: float = 0.0,
) -> Worth:
    """Return what was measured in one number.

    Parameters
    ----------
    values, baseline : float64 array (windows, 1 + guards)
        Goal and guards under the formula and under the baseline (`policyfactory.search.learner.measured`).
    goal : str
        Name of the goal.
    bands : sequence of Band or Limit
        How much worse the guards may be.
    objective : {"log-ratio", "mean"}
        As in `policyfactory.search.options.SearchOptions`.
    distance : float
        What the distance from the start costs.
    """
    value = gain(values[:, 0], baseline[:, 0], goal_of(goal), objective)
    breaches = breaches_of(values, baseline, bands)
    beyond = sum(_excess(one) for one in breaches)
    means = tuple(values.mean(axis=0).tolist())
    total = value + distance + _BEYOND * beyond
    return Worth(total if math.isfinite(total) else 1e6, value, means, "; ".join(map(str, breaches)))


def gain(values: FloatArray, baseline: FloatArray, goal: Goal, objective: Objective) -> float:
    """Return how much worse (positive) or better (negative) the goal is than the baseline's, over all windows."""
    least = least_of(goal)
    own, other = values + least, baseline + least
    if not goal.lower_is_better:
        own, other = other, own
    with np.errstate(all="ignore"):
        if objective == "mean":
            return float(own.mean() / other.mean() - 1)
        return float(np.log(own / other).mean())


def least_of(goal: Goal) -> float:
    """Return what is next to nothing of a goal that may be 0, so that it has a logarithm."""
    return _NOTHING.get(goal.unit, 0.0)


def breaches_of(values: FloatArray, baseline: FloatArray, bands: Sequence[Bound]) -> tuple[Breach, ...]:
    """Return the guards whose means over the windows are outside their bands."""
    own, other = (dict(zip(GUARDS, part[:, 1:].mean(axis=0).tolist(), strict=True)) for part in (values, baseline))
    return judge(own, other, bands)


def _excess(breach: Breach) -> float:
    lower = METRICS[breach.guard].lower_is_better
    worse, better = (breach.value, breach.bound) if lower else (breach.bound, breach.value)
    return (worse - better) / max(abs(better), 1e-9)


def distance_of(family: Family, values: FloatArray) -> float:
    """Return the mean square of how far values are from the family's start, in its scale."""
    away = (values - np.array(family.start)) / np.array(family.scale)
    return float((away**2).mean())


# What can be said of how a network is made a formula ------------------------------------------------------------------


# To fit many coefficients to an order costs next to nothing, so there is one family more than for a search: all of
# second degree that schedulers with a wait take. x is log10(p), y log10(q), v log10(w + 10) - 1.
_XX, _YY, _VV = "log10(max(p, 1))", "log10(q)", "(log10(w + 10) - 1)"
SURFACE = (
    f"surface={_XX} + a*{_YY} + b*{_VV} + c*{_XX}*{_YY} + d*{_XX}*{_VV} + i*{_YY}*{_VV} + h*{_XX}**2"
    f" + k*{_YY}**2 + o*{_VV}**2"
)

_MOST_DECISIONS, _MOST_PAIRS = 10_000, 100_000


# Without slots, so that the class has the defaults: DistillOptions.decisions.
@dataclasses.dataclass(frozen=True)
class DistillOptions:
    """Where the network plays, what is asked of it there, and which formulas are fitted to its order.

    Parameters
    ----------
    windows : TrainOptions
        Windows, goal, rules and how the log is read; those for training are fitted on. The mode is the network's.
    families : tuple of str
        As for a search (`policyfactory.search.families`), besides the forms of `fit` and the published policies;
        by default all of them, and `SURFACE`.
    decisions : int
        Decisions of a window: at most so many are drawn.
    pairs : int
        Pairs of a decision: at most so many are drawn.
    margin : float
        What a wait in a formula must add to the share of pairs ordered alike to be worth it: some schedulers take a
        key that never changes only; the interval over the windows must be above 0 too, where there are enough for one.
        The same of the free processors.

    Raises
    ------
    UsageError
        If a value is outside its limits.
    """

    windows: TrainOptions = dataclasses.field(default_factory=lambda: TrainOptions(bands=()))
    families: tuple[str, ...] = (*FAMILIES, SURFACE)
    decisions: int = 40
    pairs: int = 100
    margin: float = 0.01

    def __post_init__(self) -> None:
        check_range("decisions", self.decisions, 1, _MOST_DECISIONS)
        check_range("pairs", self.pairs, 1, _MOST_PAIRS)
        if not 0 <= self.margin < 1:
            raise UsageError(f"--margin {self.margin}: give a share of pairs from 0 to below 1, as in 0.01")
