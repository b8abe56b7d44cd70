"""Formulas that may stand in for a network: published ones, the forms of the SC'17 paper, and the searched families.

The forms are those of `policyfactory.fitting.forms`, in p and q, and with a wait in the place of r: w + 10, which has a
logarithm and a reciprocal for a job that has just come too. All of them, and all stock families but one, are linear
in their coefficients once the order alone counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.fitting.forms import distinct_forms, product_text
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE, FittedNumber
from policyfactory.search.environment.episodes import EpisodeOptions, PaperEpisodes
from policyfactory.search.families import REFERENCES, Family
from policyfactory.search.formulas import term_of
from policyfactory.simulation.compat import CommittedLog
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import run_prepared
from policyfactory.statistics.intervals import estimate_ratio
from policyfactory.workload.jobs import Workload

# What a formula asks of a scheduler, the least first: a key that never changes, the wait, the free processors.
KINDS = ("static", "w", "f")
PULLS = (1e-2, 1e-4, 1e-6)
_FORM_PULL = 1e-4
_SEARCHED_PAIRS = 4000  # of a family that is not linear
_KEPT_FORMS = 5  # of each kind
_WAIT = {"r": "w + 10"}  # in the place of what a network does not know
_SOURCE = "policyfactory distill"


@dataclasses.dataclass(frozen=True, slots=True)
class FittedFormula:
    """A formula, fitted to an order.

    Parameters
    ----------
    policy : Policy
        The formula with its numbers.
    origin : str
        ``published``, ``form``, or the name of a family.
    coefficients : tuple of FittedNumber
        Its numbers; empty for a formula that has none.
    pull : float or None
        Weight of the squared length of the factors; None where nothing was fitted.
    """

    policy: Policy
    origin: str
    coefficients: tuple[FittedNumber, ...] = ()
    pull: float | None = None

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return "f" if "f" in self.policy.variables else "w" if "w" in self.policy.variables else "static"


def published_formulas() -> list[FittedFormula]:
    """Return the catalogue's formulas in p, q, w and m, first come first served and its reverse, and p*sqrt(q)."""
    known = {**CATALOGUE, **REFERENCES}
    of_arrival = {"r", "-r"}
    fits = [policy for policy in known.values() if policy.formula in of_arrival or "r" not in policy.variables]
    return [FittedFormula(policy, "published") for policy in fits]


# Forms ---------------------------------------------------------------------------------------------------------------


def form_formulas(pairs: Pairs) -> list[FittedFormula]:
    """Return the forms that order most pairs as the network does, the best five without a wait and with one."""
    kept: list[FittedFormula] = []
    for number, products in enumerate(_designs()):
        # Of forms that agree equally, as p*q and -1/(p*q) do, the shortest.
        of_share: dict[float, FittedFormula] = {}
        for fit in sorted(_fit_forms(pairs, products), key=lambda fit: (len(fit.policy.formula), fit.policy.formula)):
            of_share.setdefault(agreement_of(pairs, pairs.queues.scores(fit.policy)).pairs, fit)
        ranked = [of_share[share] for share in sorted(of_share, reverse=True)]
        prefix = "FORM" if number == 0 else "FORM-W"
        for rank, formula in enumerate(ranked[:_KEPT_FORMS], start=1):
            named = dataclasses.replace(formula.policy, name=f"{prefix}-{rank}")
            kept.append(dataclasses.replace(formula, policy=named))
    return kept


def _designs() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the terms of all forms in p and q, and of all in p, q and a wait."""
    every = distinct_forms()
    pq = ([tuple(factor for factor in product if factor[0] != "r") for product in products] for products in every)
    without = {tuple(filter(None, products)) for products in pq}
    texts = [
        [tuple(product_text(product, _WAIT) for product in products) for products in some]
        for some in (sorted(without), every)
    ]
    return texts[0], texts[1]


def _fit_forms(pairs: Pairs, designs: Sequence[tuple[str, ...]]) -> Iterator[FittedFormula]:
    known: dict[str, FloatArray] = {}

    def difference(term: str) -> FloatArray:
        if term not in known:
            known[term] = _difference(pairs, Policy("term", term))
        return known[term]

    for terms in designs:
        factors = fit_order(np.stack([difference(term) for term in terms], axis=1), _FORM_PULL)
        if factors is None:
            continue
        numbers = [_rounded(value / abs(factors[0])) for value in factors] if factors[0] else []
        if not numbers or not np.isfinite(numbers).all():
            continue
        text = " + ".join(_times(number, term) for number, term in zip(numbers, terms, strict=True))
        fitted = tuple(
            FittedNumber(f"k{index}", term, number)
            for index, (number, term) in enumerate(zip(numbers, terms, strict=True), start=1)
        )
        policy = Policy("form", text.replace("+ -", "- "), "a form of the SC'17 paper", _SOURCE)
        yield FittedFormula(policy, "form", fitted, _FORM_PULL)


def _times(number: float, term: str) -> str:
    if abs(number) == 1:
        return term if number > 0 else f"-{term}"
    return f"{number:.6g}{term[1:]}" if term.startswith("1/") else f"{number:.6g}*{term}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _difference(pairs: Pairs, policy: Policy) -> FloatArray:
    values = pairs.queues.scores(policy)
    with np.errstate(invalid="ignore"):
        return values[pairs.behind] - values[pairs.ahead]


# Families ------------------------------------------------------------------------------------------------------------


def family_formulas(family: Family, pairs: Pairs) -> list[FittedFormula]:
    """Return a family's formulas that fit the pairs, one for each of `PULLS`; none if it has no value for some job."""
    design = _linear(family, pairs)
    if design is None:
        return _searched(family, pairs)
    base, terms = design
    columns = np.column_stack([base, terms]) if base.any() else terms
    # A coefficient of what is the same for all jobs changes no order: it keeps the value that the family gives it.
    live = np.abs(columns).sum(axis=0) > 0
    formulas = []
    for pull in PULLS:
        some = fit_order(columns[:, live], pull) if live.any() else None
        if some is None:
            continue
        factors = np.zeros(len(live))
        factors[live] = some
        if base.any():
            if factors[0] == 0:
                continue
            values, sign = factors[1:] / factors[0], 1.0 if factors[0] > 0 else -1.0
        else:
            values, sign = factors, 1.0
        values = np.where(live[-len(values) :], values, family.start)
        if np.isfinite(values).all():
            formulas.append(_fixed(family, values, sign, pull))
    return formulas


def _fixed(family: Family, values: FloatArray, sign: float, pull: float) -> FittedFormula:
    form = family.form
    numbers = {name: _rounded(value) for name, value in zip(form.names, values.tolist(), strict=True)}
    policy = form.fixed(numbers, form.name, description=family.words, source=_SOURCE)
    if sign < 0:
        policy = dataclasses.replace(policy, formula=f"-({policy.formula})")
    fitted = tuple(FittedNumber(name, term_of(form, name), value) for name, value in numbers.items())
    return FittedFormula(policy, form.name, fitted, pull)


def _linear(family: Family, pairs: Pairs) -> tuple[FloatArray, FloatArray] | None:
    """Return the differences of what has no coefficient and of each term, None if the form is not linear in them."""
    form = family.form
    count = len(form.names)
    base = _difference(pairs, form.with_values(np.zeros(count)))
    units = np.stack([_difference(pairs, form.with_values(row)) for row in np.eye(count)], axis=1)
    tried = np.linspace(0.7, 1.9, count)
    given = _difference(pairs, form.with_values(tried))
    if not all(np.isfinite(part).all() for part in (base, units, given)):
        return None
    terms = units - base[:, None]
    expected = base + terms @ tried
    return (base, terms) if np.allclose(given, expected, rtol=1e-6, atol=1e-9 * np.abs(terms).max(initial=1)) else None


def _searched(family: Family, pairs: Pairs) -> list[FittedFormula]:
    some = pairs.some(_SEARCHED_PAIRS)

    def difference(values: FloatArray) -> FloatArray:
        return _difference(some, family.form.with_values(values))

    values, sign = search_order(difference, family.start, PULLS[1])
    given = difference(values)
    if not (np.isfinite(given).all() and given.any()):
        return []
    return [_fixed(family, values, sign, PULLS[1])]


# Coefficients that put pairs of jobs in a given order -----------------------------------------------------------------

# Logistic regression on the differences of their terms.
#
# An order is all that a queue takes from a formula, and all that it takes from a network, whose outputs have no unit
# and could be squeezed or stretched without changing a schedule. So every pair counts alike, however far apart the
# network has its two jobs, and the loss is a smooth stand-in for what is reported: the share of pairs ordered alike.
# For the same reason a pair's differences may be scaled as is convenient. The terms are brought to one scale, then each
# pair to the length 1: no pair of a huge job and a tiny one decides alone.


_STEEP = 4.0  # of the loss
_EVALUATIONS = 600


def fit_order(differences: FloatArray, pull: float) -> FloatArray | None:
    """Return the factors of terms whose sum is smaller for the job ahead than for the one behind.

    Parameters
    ----------
    differences : float64 array (k, terms)
        Of each pair: terms of the job behind less those of the job ahead.
    pull : float
        Weight of the squared length of the factors, above 0: the optimum is unique then.

    Returns
    -------
    float64 array (terms,) or None
        None if no term ever differs, or one has no value.
    """
    from scipy.optimize import minimize

    if not np.isfinite(differences).all():
        return None
    scale = np.abs(differences).mean(axis=0)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    rows = differences / scale
    lengths = np.sqrt((rows**2).sum(axis=1))
    rows = rows[lengths > 0] / lengths[lengths > 0, None]

    def loss(factors: FloatArray) -> tuple[float, FloatArray]:
        margins = rows @ factors
        slope = -0.5 * (1 - np.tanh(margins / 2))  # of log(1 + exp(-margin))
        value = np.logaddexp(0, -margins).mean() + pull * (factors @ factors)
        return float(value), rows.T @ slope / len(rows) + 2 * pull * factors

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    factors: FloatArray = found.x / scale
    return factors if factors.any() and np.isfinite(factors).all() else None


def search_order(
    difference: Callable[[FloatArray], FloatArray], start: Sequence[float], pull: float
) -> tuple[FloatArray, float]:
    """Return coefficients of a formula that is not linear in them, and 1, or -1 if it is to be turned round.

    Parameters
    ----------
    difference : callable
        From coefficients to a float64 array (k,): the formula of the job behind less that of the job ahead.
    start : sequence of float
        Where the search begins (Nelder and Mead's method).
    pull : float
        Weight of the squared distance from there.
    """
    from scipy.optimize import minimize

    first = np.array(start, dtype=np.float64)

    def loss(values: FloatArray, sign: float) -> float:
        given = difference(values)
        size = np.median(np.abs(given))
        if not np.isfinite(given).all() or size == 0:
            return 1e6
        # Nearly the side alone: of what is far apart it does not count how far.
        margins = sign * _STEEP * given / (np.abs(given) + size)
        return float(np.logaddexp(0, -margins).mean() + pull * ((values - first) ** 2).sum())

    # The start itself may say nothing: where all coefficients are 0 a user's formula often is the same for all jobs.
    simplex = np.vstack([first, *(first + 0.5 * row for row in np.eye(len(first)))])
    runs = [
        (minimize(loss, first, (sign,), "Nelder-Mead",
                  options={"maxfev": _EVALUATIONS, "initial_simplex": simplex}), sign)
        for sign in (1.0, -1.0)
    ]  # fmt: skip
    best, sign = min(runs, key=lambda run: float(run[0].fun))
    return np.array(best.x), sign


# The queues that a network had to decide on ---------------------------------------------------------------------------

# Which jobs waited together, and what was known of them then.
#
# The network plays windows by the rules that it was made for. In mode standard its schedule says all: at the beginning
# of a pass those jobs wait that were submitted and have not been started before. In mode paper, where a choice is
# committed to, the windows are played decision by decision, and the jobs that are shown are kept.


MOST_WAITING = 512  # jobs kept of a queue; of a longer one so many are drawn
_PURPOSE = 74  # of the random stream; see core.random

# Rows of jobs in the queue's order, and the processors free.
Snapshot = tuple[FloatArray, float]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """Queues at decisions, one behind the other; n jobs in k of them.

    Parameters
    ----------
    decision : int64 array (n,)
        Which queue a job is in, ascending; within one, jobs are in the order that decides between equals.
    p, q, w : float64 array (n,)
        Requested seconds, processors, seconds waited until then.
    free : float64 array (k,)
        Processors free at each decision.
    window : int64 array (k,)
        The window of each decision.
    machine : int
        Processors of the machine.
    longer : int
        Decisions of whose queues only some jobs were kept.
    """

    decision: Int64Array
    p: FloatArray
    q: FloatArray
    w: FloatArray
    free: FloatArray
    window: Int64Array
    machine: int
    longer: int

    def __len__(self) -> int:
        return len(self.free)

    @property
    def edges(self) -> Int64Array:
        """First row of each queue, and the row after the last: int64 array (k + 1,)."""
        return np.searchsorted(self.decision, np.arange(len(self) + 1)).astype(np.int64)

    def only(self, rows: Int64Array) -> Queues:
        """Return these rows (ascending), and the decisions that they are from."""
        kept, decision = np.unique(self.decision[rows], return_inverse=True)
        columns = (self.p[rows], self.q[rows], self.w[rows])
        return Queues(decision, *columns, self.free[kept], self.window[kept], self.machine, self.longer)

    def scores(self, policy: Policy) -> FloatArray:
        """Return what each job is worth to a policy at its decision, lower runs first: float64 array (n,).

        A job's r counts from its decision, and is minus its wait.
        """
        r = -self.w
        with np.errstate(all="ignore"):
            if "f" not in policy.variables:
                return policy.scores(self.p, self.q, r, self.w, self.machine)
            values, edges = np.empty_like(self.p), self.edges.tolist()
            for snapshot, free in enumerate(self.free.tolist()):
                rows = slice(edges[snapshot], edges[snapshot + 1])
                values[rows] = policy.scores(self.p[rows], self.q[rows], r[rows], self.w[rows], self.machine, free)
        return values


def collect_queues(
    windows: list[Workload], network: Policy, rules: Rules, *, decisions: int, seed: int, step: int
) -> Queues:
    """Return queues at which the network decided.

    Parameters
    ----------
    windows : list of Workload
        What is played.
    network : Policy
        Who decides.
    rules : Rules
        As for `policyfactory.simulation.simulate.simulate`.
    decisions : int
        At most so many of each window, drawn evenly of all at which at least two jobs wait and one of them fits (in
        the compatibility mode: at which two are shown).
    seed, step : int
        Address of the random numbers.

    Raises
    ------
    EvaluationError
        If the rules refuse the jobs.
    """
    parts: list[FloatArray] = []
    free: list[float] = []
    of_window: list[int] = []
    longer = 0
    for number, window in enumerate(windows):
        random = generator(seed, _PURPOSE, step, number)
        for waiting, left in _snapshots(window, network, rules, decisions, random):
            rows = waiting
            if waiting.shape[1] > MOST_WAITING:
                rows = waiting[:, np.sort(random.choice(waiting.shape[1], MOST_WAITING, replace=False))]
                longer += 1
            parts.append(rows)
            free.append(left)
            of_window.append(number)
    columns = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
    decision = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts]).astype(np.int64)
    p, q, w = (np.ascontiguousarray(column) for column in columns)
    machine = windows[0].machine
    return Queues(
        decision=decision,
        p=p,
        q=q,
        w=w,
        free=np.array(free),
        window=np.array(of_window, dtype=np.int64),
        machine=machine,
        longer=longer,
    )


def _snapshots(
    window: Workload, network: Policy, rules: Rules, decisions: int, random: np.random.Generator
) -> Iterator[Snapshot]:
    if rules.compatibility != "rlscheduler":
        prepared = prepare(window, rules)
        with np.errstate(all="ignore"):
            start, _ = run_prepared(prepared, network)
        yield from _passes(prepared, start, decisions, random)
        return
    every = list(_committed(window, network, rules))
    for number in sorted(random.permutation(len(every))[:decisions].tolist()):
        yield every[number]


def _passes(prepared: Prepared, start: Int64Array, decisions: int, random: np.random.Generator) -> Iterator[Snapshot]:
    """Give p, q, w of the waiting jobs, and the processors free, as some passes of a schedule begin."""
    jobs, ticks = prepared.workload, prepared.workload.ticks
    end = start + prepared.run_time
    instants = np.unique(np.concatenate([jobs.submit, end]))
    submitted = np.searchsorted(jobs.submit, instants, side="right")
    waiting = submitted - np.searchsorted(np.sort(start), instants, side="left")
    kept: list[tuple[int, Snapshot]] = []
    for now in random.permutation(instants[waiting >= 2]).tolist():
        if len(kept) == decisions:
            break
        free = jobs.machine - int(jobs.processors[(start < now) & (end > now)].sum())
        rows = np.flatnonzero((jobs.submit <= now) & (start >= now))
        if jobs.processors[rows].min() <= free:
            columns = (prepared.estimate[rows] / ticks, jobs.processors[rows], (now - jobs.submit[rows]) / ticks)
            kept.append((now, (np.stack(columns), float(free))))
    for _, snapshot in sorted(kept, key=lambda entry: entry[0]):
        yield snapshot


def _committed(window: Workload, network: Policy, rules: Rules) -> Iterator[Snapshot]:
    """Give p, q, w of the jobs that are shown, and the processors free, at each decision among two or more."""
    log = CommittedLog.of_workload(window)
    options = EpisodeOptions(jobs=len(window), rules=Rules(backfill=rules.backfill))
    episode = PaperEpisodes(log, options)
    episode.begin(0, 0)
    while not episode.done[0]:
        _, seen, free = episode.queue()
        p, q, w = seen
        if len(p) > 1:
            yield seen, free
        scores = network.scores(p, q, np.zeros_like(p), w, log.machine, free)
        episode.step(np.array([int(np.argmin(scores))]))


# Pairs of jobs that waited together -----------------------------------------------------------------------------------

# Pairs of jobs that waited together, in the order in which a network wants them; and how far a formula agrees.


_PAIRS_PURPOSE = 75  # of the random stream; see core.random


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of rows of `Queues`; the network prefers the one, however little, to the other.

    Parameters
    ----------
    queues : Queues
        The queues.
    preference : float64 array (n,)
        What each job is worth to the network, lower runs first.
    ahead, behind : int64 array (k,)
        The rows of each pair; the first is the one that the network runs first.
    ties : int
        Pairs that were drawn and left out, as the network has the same value for both.
    """

    queues: Queues
    preference: FloatArray
    ahead: Int64Array
    behind: Int64Array
    ties: int

    def __len__(self) -> int:
        return len(self.ahead)

    @property
    def decision(self) -> Int64Array:
        """The decision that each pair is from: int64 array (k,)."""
        return self.queues.decision[self.ahead]

    def some(self, most: int) -> Pairs:
        """Return at most so many of them, evenly spread, with no other jobs than theirs."""
        taken = np.linspace(0, len(self) - 1, min(most, len(self))).astype(np.int64)
        ahead, behind = self.ahead[taken], self.behind[taken]
        rows, position = np.unique(np.concatenate([ahead, behind]), return_inverse=True)
        queues = self.queues.only(rows)
        return Pairs(queues, self.preference[rows], position[: len(ahead)], position[len(ahead) :], self.ties)


@dataclasses.dataclass(frozen=True, slots=True)
class Agreement:
    """How far a formula orders queues as the network does.

    Parameters
    ----------
    pairs : float
        Share of the pairs ordered alike; jobs of the same value stay in the order of the queue.
    tau : float
        Kendall's tau between the two orders, mean over decisions: 1 for the same, -1 for the reverse order.
    first : float
        Share of decisions in which both have the same job first.
    by_window : tuple of (int, int)
        Pairs ordered alike, and pairs, of each window that has any.
    """

    pairs: float
    tau: float
    first: float
    by_window: tuple[tuple[int, int], ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the share of pairs, by the windows; None if they are too few."""
        alike, every = (np.array(column, dtype=np.float64) for column in zip(*self.by_window, strict=True))
        # The ratio of sums over the windows, in percent above 1: that of the pairs is its own baseline.
        interval = estimate_ratio(alike, every).interval
        return None if interval is None else (1 + interval.low / 100, min(1 + interval.high / 100, 1.0))


def draw_pairs(queues: Queues, preference: FloatArray, *, most: int, seed: int, step: int) -> Pairs:
    """Return pairs of each queue: all of them, or ``most`` that are drawn without replacement.

    Parameters
    ----------
    queues : Queues
        The queues.
    preference : float64 array (n,)
        What each job is worth to the network, lower runs first.
    most : int
        Pairs of one queue.
    seed, step : int
        Address of the random numbers.
    """
    random = generator(seed, _PAIRS_PURPOSE, step)
    edges = queues.edges
    former, latter = [], []
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        jobs = end - first
        every = jobs * (jobs - 1) // 2
        numbers = np.arange(every) if every <= most else np.sort(random.choice(every, most, replace=False))
        # Pair number k is (i, j), i < j, where j is the largest with j (j - 1) / 2 <= k.
        j = ((1 + np.sqrt(1 + 8.0 * numbers)) // 2).astype(np.int64)
        former.append(first + numbers - j * (j - 1) // 2)
        latter.append(first + j)
    left = np.concatenate(former).astype(np.int64) if former else np.empty(0, dtype=np.int64)
    right = np.concatenate(latter).astype(np.int64) if latter else np.empty(0, dtype=np.int64)
    untied = preference[left] != preference[right]
    ties = int((~untied).sum())
    left, right = left[untied], right[untied]
    turned = preference[left] > preference[right]
    return Pairs(queues, preference, np.where(turned, right, left), np.where(turned, left, right), ties)


def first_jobs(queues: Queues, values: FloatArray) -> Int64Array:
    """Return the row of the job that runs first in each queue: the least value, the first of equal ones."""
    order = np.lexsort((values, queues.decision))
    return order[queues.edges[:-1]].astype(np.int64)


def agreement_of(pairs: Pairs, values: FloatArray) -> Agreement:
    """Return how far values (lower runs first) order the pairs as the network does.

    Parameters
    ----------
    pairs : Pairs
        At least one.
    values : float64 array (n,)
        Of each row of the queues.
    """
    alike = _alike(pairs, values)
    counts = np.bincount(pairs.decision)
    shares = np.bincount(pairs.decision, weights=alike)[counts > 0] / counts[counts > 0]
    window = pairs.queues.window[pairs.decision]
    windows = zip(np.bincount(window, weights=alike).astype(int).tolist(), np.bincount(window).tolist(), strict=True)
    same = first_jobs(pairs.queues, values) == first_jobs(pairs.queues, pairs.preference)
    by_window = tuple((alike, every) for alike, every in windows if every)
    return Agreement(float(alike.mean()), float((2 * shares - 1).mean()), float(same.mean()), by_window)


def _alike(pairs: Pairs, values: FloatArray) -> NDArray[np.bool_]:
    ahead, behind = values[pairs.ahead], values[pairs.behind]
    alike: NDArray[np.bool_] = (ahead < behind) | ((ahead == behind) & (pairs.ahead < pairs.behind))
    return alike
