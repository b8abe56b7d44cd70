"""A policy in what Slurm's own priority/multifactor sums up: its weights, or the nice values of a user's own jobs.

Weights are lines of configuration, with nothing to install.

A linear policy a + b*p + c*q + d*r + e*w is exact where b = 0 and d - e >= 0: c by PriorityWeightTRES, and (d - e) by
the age, as r is now minus the time waited, and now is the same for all jobs. The age weight has no sign, and nothing
multiplies the time limit. For any other policy these are the weights with the fewest inverted pairs of waiting jobs,
and the export says how many are.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.text import DAY
from policyfactory.exports.content import (
    Export,
    ExportSite,
    File,
    ascii_text,
    comment,
    header,
    instructions,
    uninstall_script,
)
from policyfactory.exports.expressible import check_size, fixed_epoch, linear_coefficients, slope, unexpressed
from policyfactory.exports.languages import awk_functions
from policyfactory.exports.queue import UNLIMITED_S, Queue, overdue, scores_of
from policyfactory.exports.sample import ExportSample
from policyfactory.exports.scripts import filled, sentences
from policyfactory.policy.expression import format_number
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

WEIGHTS_NAME = "policyfactory_weights.conf"
LOG_NAME = "log_weights.sh"
# A Kendall's tau below this is no better than chance.
_USELESS = 0.1
_BACKFILL = "SchedulerParameters=bf_job_part_count_reserve=1"


# The sum of weighted factors that Slurm's priority/multifactor computes -----------------------------------------------

# As configuration, as numbers, as a formula.
#
# What of it depends on the job alone (Slurm 22.05.8, seen): the age factor, min(age, PriorityMaxAge)/PriorityMaxAge;
# the processors, times any number, with the flag NO_NORMAL_TRES; and, with SMALL_RELATIVE_TO_TIME, the size factor, the
# larger of the job's processors and those of its nodes, over its minutes and over the processors of the cluster.


# PriorityMaxAge, s. Jobs that have waited longer are alike to the age factor.
LONGEST_AGE = 28 * DAY
# What the priority is a sum of multiples of.
TERMS = ("age", "processors", "size")
_LARGEST_SUM = 2_000_000_000
_LARGEST_PRIORITY = 2**32 - 1
# The sum must be above 0, where a job would be held; some room is left for a site's own factors below it.
_LEAST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class ExportMachine:
    """What the factors depend on beside the job.

    Parameters
    ----------
    processors : int
        Of the cluster.
    nodes : int or None
        Of the cluster; without it the size factor is not used.
    """

    processors: int
    nodes: int | None = None

    @property
    def per_node(self) -> float:
        """Processors of a node, the mean; Slurm counts no job as smaller in the size factor."""
        return self.processors / self.nodes if self.nodes else 1.0


def terms(p: FloatArray, q: FloatArray, w: FloatArray, machine: ExportMachine) -> FloatArray:
    """Return age (s), processors and size (1) of every job, as Slurm has them.

    Parameters
    ----------
    p, q, w : float64 array (n,)
        Requested time (s), processors, time since the submission (s).
    machine : ExportMachine
        The cluster.

    Returns
    -------
    float64 array (n, 3)
        In the order of `TERMS`.
    """
    minutes = np.where(p >= UNLIMITED_S, np.inf, np.maximum(np.ceil(p / 60.0), 1.0))
    size = np.maximum(q, machine.per_node) / minutes / machine.processors
    return np.column_stack([np.clip(w, 0.0, LONGEST_AGE), q, np.clip(size, 0.0, 1.0)])


@dataclasses.dataclass(frozen=True, slots=True)
class MultifactorWeights:
    """A configuration of priority/multifactor.

    Parameters
    ----------
    base : int
        PriorityWeightPartition: the same for all jobs.
    age : int
        PriorityWeightAge: what a job has gained after `LONGEST_AGE`.
    processor : float
        What each processor counts, of any sign, with at most six decimals.
    size : int
        PriorityWeightJobSize; negative: with PriorityFavorSmall, which counts 1 less the factor.
    machine : ExportMachine
        The cluster.
    """

    base: int
    age: int
    processor: float
    size: int
    machine: ExportMachine

    def priorities(self, p: FloatArray, q: FloatArray, w: FloatArray) -> FloatArray:
        """Return the whole number by which Slurm sorts each job, 1 to 2**32 - 1, HIGHER first."""
        age, processors, size = terms(p, q, w, self.machine).T
        if self.size < 0:
            size = 1.0 - size
        sums = self.base + self.age * age / LONGEST_AGE + self.processor * processors + abs(self.size) * size
        return np.asarray(np.floor(np.clip(sums, 1.0, _LARGEST_PRIORITY)), dtype=np.float64)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of slurm.conf."""
        flags = ["ACCRUE_ALWAYS", "NO_NORMAL_TRES", *(["SMALL_RELATIVE_TO_TIME"] if self.size else [])]
        return (
            "PriorityType=priority/multifactor",
            f"PriorityFlags={','.join(flags)}",
            f"PriorityWeightPartition={self.base}",
            f"PriorityWeightTRES=CPU={self.processor:.6f}",
            f"PriorityWeightAge={self.age}",
            *([f"PriorityMaxAge={LONGEST_AGE // DAY}-0", "PriorityCalcPeriod=1"] if self.age else []),
            f"PriorityWeightJobSize={abs(self.size)}",
            *(["PriorityFavorSmall=YES" if self.size < 0 else "PriorityFavorSmall=NO"] if self.size else []),
            "PriorityWeightFairshare=0",
            "PriorityWeightQOS=0",
            "PriorityWeightAssoc=0",
        )

    @property
    def formula(self) -> str:
        """A formula that orders jobs as this configuration does, LOWER first, but for what rounding makes equal."""
        parts = [
            (-self.processor, "q"),
            (-self.age / LONGEST_AGE, f"min(w, {LONGEST_AGE})"),
            (-60.0 * self.size / self.machine.processors, f"max(q, {format_number(self.machine.per_node)})/p"),
        ]
        text = ""
        for factor, what in parts:
            if factor:
                sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
                text += f"{sign}{format_number(float(f'{abs(factor):.9g}'))}*{what}"
        return text


def make_weights(gains: tuple[float, float, float], machine: ExportMachine) -> MultifactorWeights:
    """Return the configuration in which one more second, processor and unit of size count as given.

    They may have any common factor: the sums are spread over whole numbers up to some 2e9.

    Parameters
    ----------
    gains : tuple of float
        In the order of `TERMS`; the first is not negative; one at least is not 0.
    machine : ExportMachine
        The cluster.
    """
    reach = np.abs(gains) * (LONGEST_AGE, machine.processors, 1.0)
    age, processor, size = np.asarray(gains, dtype=np.float64) * (_LARGEST_SUM / reach.sum())
    processor = round(float(processor), 6)
    base = _LEAST + max(0, int(np.ceil(-processor * machine.processors)))
    return MultifactorWeights(base, round(age * LONGEST_AGE), processor, round(size), machine)


# A policy as such a sum ----------------------------------------------------------------------------------------------


def exact_weights(policy: Policy, machine: ExportMachine) -> tuple[MultifactorWeights | None, str]:
    """Return the weights that order all jobs as the policy does, and else why there are none.

    Parameters
    ----------
    policy : Policy
        Without m.
    machine : ExportMachine
        The cluster.
    """
    factors = linear_coefficients(policy.expression)
    if factors is None:
        return None, "the formula is not linear"
    if factors["p"]:
        return None, "the formula has p, and no weight of Slurm multiplies the time limit"
    age = factors["r"] - factors["w"]
    if age < 0:
        return None, "later jobs go first, and the age weight of Slurm cannot be negative"
    if not (age or factors["q"]):
        return None, "the terms of the formula cancel each other"
    return make_weights((age, -factors["q"], 0.0), machine), ""


def by_weights(model: Model, site: ExportSite) -> Export:
    """Return the lines of configuration.

    Raises
    ------
    ExportError
        If the policy has m, an r that needs a fixed epoch and has none, or an order that
        no weights come near to.
    """
    policy = model.policy
    check_size(policy)
    if policy.epoch.rule != "oldest-waiting" and slope(policy.expression, "r") is None:
        fixed_epoch(policy, "slurm-weights")
    if site.nodes is not None and site.nodes < 1:
        raise UsageError(f"--nodes {site.nodes}: a cluster has at least 1 node")
    machine = ExportMachine(site.processors or int(site.sample.q.max()), site.nodes if site.processors else None)
    weights, reason = exact_weights(policy, machine)
    if weights is None:
        weights, distance = _nearest(policy, site, machine, reason)
        limits = (*_nearness(weights, distance, site, reason), *_limits(policy, weights, site))
    else:
        limits = (*sentences("slurm.txt", "weights_exact"), *_limits(policy, weights, site))
    name, way = (LOG_NAME, "queue_log") if site.log_only else (WEIGHTS_NAME, "weights")
    install, rollback = (sentences("slurm.txt", f"{way}_{what}", FILE=name) for what in ("install", "rollback"))
    words = Export((), (), install, rollback, limits)
    head = header(model, _advising_on(weights, site), "slurm-weights") + instructions(words)
    if site.log_only:
        ordered = dataclasses.replace(policy, formula=weights.formula, threshold=math.inf)
        return dataclasses.replace(words, files=(queue_script(LOG_NAME, head, ordered, 0, site, everybody=True),))
    text = "\n".join([*comment(head), "", *weights.lines]) + "\n"

    def priorities(queue: Queue) -> NDArray[np.float64]:
        p, q, w = (np.asarray(column, dtype=np.float64) for column in (queue.p, queue.q, queue.now - queue.submit))
        return weights.priorities(p, q, w)

    return dataclasses.replace(
        words,
        files=(File(WEIGHTS_NAME, text),),
        settings=(*weights.lines, _BACKFILL),
        priorities=priorities,
        uninstall=uninstall_script(policy, ("start", "conf", "weights", "end"), WEIGHTS_NAME),
    )


def _advising_on(weights: MultifactorWeights, site: ExportSite) -> ExportSite:
    """Return the site with advice on the order that the weights make, which can be far from the policy's."""
    advise = site.advise
    if advise is None:
        return site
    return dataclasses.replace(site, advise=lambda _, scale: advise(Policy("weights", weights.formula), scale))


def _nearest(
    policy: Policy, site: ExportSite, machine: ExportMachine, reason: str
) -> tuple[MultifactorWeights, Distance]:
    nearest = fit_weights(policy, site.sample, machine)
    if nearest is None:
        raise ExportError(
            f"policy {policy.name} gives the jobs of {site.sample.origin} one score; there is nothing to order by "
            "(does it need --workload LOG, or another policy?)"
        )
    if nearest[1].tau < _USELESS:
        hint = "" if site.nodes and site.processors else ", or give the size of the cluster: --processors N --nodes N"
        raise ExportError(
            f"policy {policy.name} cannot be made of Slurm's weights: {reason}, and the order of the nearest weights "
            f"has nothing to do with it (Kendall's tau {nearest[1].tau:.2f} on a sample queue); "
            f"use --to slurm-site-factor-lua, or slurm-site-factor-c for a policy with w{hint}"
        )
    return nearest


def _nearness(weights: MultifactorWeights, distance: Distance, site: ExportSite, reason: str) -> tuple[str, ...]:
    return sentences(
        "slurm.txt",
        "weights_near",
        *(["weights_no_size"] if weights.machine.nodes is None else []),
        REASON=reason,
        SAMPLE=site.sample.origin,
        INVERTED=f"{100 * distance.inverted:.1f}",
        PAIRS=f"{distance.pairs:,}",
        TIED=f"{100 * distance.tied:.1f}",
        TAU=f"{distance.tau:.3f}",
        FORMULA=weights.formula,
    )


def _limits(policy: Policy, weights: MultifactorWeights, site: ExportSite) -> tuple[str, ...]:
    applies = {
        "weights_age": bool(weights.age),
        "weights_size": bool(weights.size),
        "weights_sample": site.processors is None,
        "weights_limits": True,
    }
    return unexpressed(policy, can_oldest_waiting=True, can_wait=True) + sentences(
        "slurm.txt",
        *(name for name, does in applies.items() if does),
        LONGEST_AGE=LONGEST_AGE // DAY,
        PER_NODE=f"{weights.machine.per_node:g}",
        PROCESSORS=f"{weights.machine.processors:,}",
        SPAN=_span(weights),
        FLAGS=next(line for line in weights.lines if line.startswith("PriorityFlags=")),
    )


def _span(weights: MultifactorWeights) -> str:
    low = weights.base + min(0.0, weights.processor * weights.machine.processors)
    high = weights.base + max(0.0, weights.processor * weights.machine.processors) + weights.age + abs(weights.size)
    return ascii_text(f"{math.floor(low):,} to {math.ceil(high):,}")


# The weights of Slurm's priority/multifactor that come nearest to the order of a policy -------------------------------

# Near is: as few pairs of waiting jobs as possible the other way round (Kendall's tau). That is what an administrator
# sees, and no outlier of a score can spoil it, as it would least squares. The search takes every sign and size of up to
# three factors, and as few of them as reach the best order to a hundredth.


Gains = tuple[float, float, float]

# Where the sample has no waits: jobs that wait were submitted within this time, s.
_USUAL_WAIT = 2 * DAY
_SEARCH_JOBS = 250
_TEST_JOBS = 1_000
_PURPOSE = 43
_SIMPLER = 0.01  # of tau that one factor less may cost


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """Jobs that wait at one instant, and their scores.

    Parameters
    ----------
    p, q, w : float64 array (n,)
        Requested time (s), processors, time waited (s).
    scores : float64 array (n,)
        Of the policy; LOWER first.
    """

    p: FloatArray
    q: FloatArray
    w: FloatArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.p)


@dataclasses.dataclass(frozen=True, slots=True)
class Distance:
    """How far an order is from the policy's, in pairs of jobs that the policy tells apart.

    Parameters
    ----------
    pairs : int
        How many there are.
    inverted : float
        Share that is the other way round.
    tied : float
        Share that is not told apart: submit time decides.
    """

    pairs: int
    inverted: float
    tied: float

    @property
    def tau(self) -> float:
        """Kendall's rank correlation of the pairs: 1 the same order, 0 none, -1 the opposite."""
        return 1.0 - 2.0 * self.inverted - self.tied


def waiting_jobs(
    policy: Policy, sample: ExportSample, processors: int, jobs: int = _TEST_JOBS, *, draw: int = 0
) -> Waiting:
    """Return jobs as they would wait at one instant of the policy's life.

    A job that waits long is seen waiting more often, and at any point of its wait. The sample has even parts w of waits
    W: rows drawn with the weight w are jobs with the weight W, and w times a number that is 1 in half of the cases, and
    else even over 0 to 1, is even over W. Where the sample has no waits, ages are even over two days.

    Parameters
    ----------
    policy : Policy
        What is exported.
    sample : ExportSample
        Jobs like the cluster's.
    processors : int
        Of the machine.
    jobs : int
        How many.
    draw : int
        Number of the draw, from 0.
    """
    rng = generator(1, _PURPOSE, draw)
    total = float(sample.w.sum())
    rows = rng.choice(len(sample), jobs, p=sample.w / total if total else None)
    part = rng.random(jobs)
    w = np.floor(sample.w[rows] * np.where(rng.random(jobs) < 0.5, 1.0, part) if total else _USUAL_WAIT * part)
    oldest = float(w.max())
    now = oldest if policy.epoch.rule == "oldest-waiting" else max(float(np.median(sample.r)), oldest)
    p, q = sample.p[rows], np.minimum(sample.q[rows], processors)
    return Waiting(p, q, w, policy.scores(p, q, np.maximum(now - w, 1.0), w, processors))


def _distinguished(scores: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs with different scores, the first to run first."""
    first, second = np.triu_indices(len(scores), 1)
    lower = scores[first] < scores[second]
    kept = lower | (scores[first] > scores[second])
    return np.where(lower, first, second)[kept], np.where(lower, second, first)[kept]


def distance(waiting: Waiting, priorities: FloatArray) -> Distance:
    """Return how far the order by ``priorities`` (HIGHER first) is from that of the scores."""
    first, second = _distinguished(waiting.scores)
    if not len(first):
        return Distance(0, 0.0, 0.0)
    ahead = priorities[first] - priorities[second]
    return Distance(len(first), float((ahead < 0).mean()), float((ahead == 0).mean()))


def fit_weights(
    policy: Policy, sample: ExportSample, machine: ExportMachine
) -> tuple[MultifactorWeights, Distance] | None:
    """Return the weights that come nearest to the policy, and how far they are, on jobs that they were not fitted to.

    Parameters
    ----------
    policy : Policy
        What is exported.
    sample : ExportSample
        Jobs like the cluster's.
    machine : ExportMachine
        Without its nodes the size factor is left out.

    Returns
    -------
    Weights and Distance, or None where the policy gives all of these jobs one score.
    """
    gains = _best_gains(waiting_jobs(policy, sample, machine.processors, _SEARCH_JOBS), machine)
    if gains is None:
        return None
    weights = make_weights(gains, machine)
    test = waiting_jobs(policy, sample, machine.processors, draw=1)
    return weights, distance(test, weights.priorities(test.p, test.q, test.w))


def _best_gains(waiting: Waiting, machine: ExportMachine) -> Gains | None:
    columns = terms(waiting.p, waiting.q, waiting.w, machine)
    spread = columns.std(axis=0)
    first, second = _distinguished(waiting.scores)
    usable = [term for term in range(len(TERMS)) if spread[term] > 0 and (TERMS[term] != "size" or machine.nodes)]
    if not len(first) or not usable:
        return None
    spread[spread == 0] = 1.0
    ahead = (columns[first] - columns[second]) / spread

    def tau(gains: FloatArray) -> float:
        return float(np.sign(ahead @ gains).mean())

    best: tuple[float, FloatArray] | None = None
    for count in range(1, len(usable) + 1):
        for chosen in itertools.combinations(usable, count):
            reached, gains = _search(tau, chosen)
            if best is None or reached > best[0] + _SIMPLER * (count > np.count_nonzero(best[1])):
                best = reached, gains
    assert best is not None  # noqa: S101 (there is a usable term)
    age, processor, size = best[1] / spread
    return float(age), float(processor), float(size)


def _search(tau: Callable[[FloatArray], float], chosen: tuple[int, ...]) -> tuple[float, FloatArray]:
    """Return the best order that the ``chosen`` terms make, and their factors; a grid of sizes, then finer steps."""
    best = -np.inf, np.zeros(len(TERMS))
    # Only the ratios count, so the first has the size 1. The age weight of Slurm has no sign.
    signs = itertools.product(*((1.0,) if term == 0 else (1.0, -1.0) for term in chosen))
    sizes = list(itertools.product((1.0,), *[10.0 ** np.arange(-4.0, 4.1, 0.5)] * (len(chosen) - 1)))
    for sign, size in itertools.product(signs, sizes):
        gains = np.zeros(len(TERMS))
        gains[list(chosen)] = np.multiply(sign, size)
        best = max(best, (tau(gains), gains), key=lambda reached: reached[0])
    for step in (1.6, 1.3, 1.15, 1.07, 1.03, 1.01):
        for term, factor in itertools.product(chosen[1:], (step, 1.0 / step)):
            gains = best[1].copy()
            gains[term] *= factor
            best = max(best, (tau(gains), gains), key=lambda reached: reached[0])
    return best


# A script with which a user of Slurm orders own waiting jobs, without an administrator --------------------------------

# A job's priority is the sum of its factors minus its nice value; a user may set the nice value of own waiting jobs to
# 0 .. 2147483645 (NICE_OFFSET - 3), more and less, but not below 0 (Slurm 22.05.8, seen). So a user can only lower
# jobs. The script lowers as little as makes the order: it goes through the jobs in the order of the formula, and each
# keeps the priority that it has without nice unless that would put it before a job that goes first. A job that is
# lowered more than needed would only wait for other users' jobs.
#
# With an order that is made anew from what waits now, it needs neither a range of scores nor much room: two numbers a
# job. Two, because the factors that Slurm computes anew are cut to whole numbers. It also follows policies that change
# while a job waits, as often as it is run.


NICE_NAME = "nice_jobs.sh"
GAP = 2  # between the priorities of neighbours
MOST_NICE = 2_147_483_645
_UNKNOWN = 1e9  # priority of every job where the queue does not tell it


def by_nice(model: Model, site: ExportSite) -> Export:
    """Return the script that sets nice values for the waiting jobs of one partition.

    Raises
    ------
    ExportError
        If the policy has m, or an r that needs a fixed epoch and has none.
    """
    policy = model.policy
    check_size(policy)
    # A constant times r only adds the same to all jobs when the epoch moves: any epoch will do.
    moves = policy.epoch.rule == "oldest-waiting" or slope(policy.expression, "r") is not None
    epoch = policy.epoch.unix_time if moves else fixed_epoch(policy, "slurm-nice")
    way = "queue_log" if site.log_only else "nice"
    words = Export(
        install=sentences("slurm.txt", f"{way}_install", FILE=NICE_NAME),
        rollback=sentences("slurm.txt", f"{way}_rollback", FILE=NICE_NAME),
        limits=_nice_limits(policy),
    )
    head = header(model, site, "slurm-nice") + instructions(words)
    return dataclasses.replace(
        words,
        files=(queue_script(NICE_NAME, head, policy, epoch, site),),
        priorities=functools.partial(nice_priorities, policy),
        uninstall=None if site.log_only else uninstall_script(policy, ("nice",), NICE_NAME),
    )


def queue_script(
    name: str, head: list[str], policy: Policy, epoch: int | None, site: ExportSite, *, everybody: bool = False
) -> File:
    """Return the script, which lists waiting jobs and ranks them by a policy.

    Parameters
    ----------
    name : str
        Of the file.
    head : list of str
        Lines of its comment.
    policy : Policy
        Without m.
    epoch : int or None
        Unix time (s) from which r counts; None: the oldest waiting job's submission.
    site : ExportSite
        Its size, and whether the script only logs.
    everybody : bool
        Rank the jobs of all users by the score alone, in place of one's own by nice values.
    """
    awk = filled(
        "nice.awk",
        {
            "FIXED": int(epoch is not None),
            "EPOCH": epoch or 0,
            "UNLIMITED": UNLIMITED_S,
            "THRESHOLD": repr(policy.threshold) if math.isfinite(policy.threshold) else "-1",
            "PROCESSORS": site.processors or 1,
            "GAP": GAP,
            "MOST": MOST_NICE,
            "BY_SCORE": int(everybody),
            "SCORE": awk_functions(policy.expression),
        },
    )
    whose = "" if everybody else '--user="$(id -u)" '
    script = filled("nice.sh", {"NAME": name, "AWK": awk, "WHOSE": whose, "LOG_ONLY": int(site.log_only)})
    return File(name, "\n".join(["#!/bin/sh", *comment(head), "", script]), executable=True)


def _nice_limits(policy: Policy) -> tuple[str, ...]:
    applies = {
        "nice_limits": True,
        "nice_changes": not policy.is_static or math.isfinite(policy.threshold),
        "nice_oldest": policy.epoch.rule == "oldest-waiting" and "r" in policy.variables,
    }
    return sentences("slurm.txt", *(name for name, does in applies.items() if does), GAP=GAP, DAYS=UNLIMITED_S // DAY)


def nice_priorities(policy: Policy, queue: Queue) -> NDArray[np.float64]:
    """Return the priorities after every user of the queue has run the script; HIGHER runs first.

    Parameters
    ----------
    policy : Policy
        What is exported.
    queue : Queue
        One partition; its priorities are those without nice.
    """
    today = np.full(len(queue), _UNKNOWN) if queue.priority is None else queue.priority
    late = overdue(policy, queue)
    scores = np.where(late, 0.0, scores_of(policy, queue))
    order = np.lexsort((*queue.ages, scores, ~late))
    users = np.unique(np.array(queue.user, dtype=object).astype(str), return_inverse=True)[1]
    priorities = np.array(today, dtype=np.float64)
    for user in range(users.max(initial=-1) + 1):
        rows = order[users[order] == user]
        steps = GAP * np.arange(len(rows))
        priorities[rows] = np.minimum.accumulate(today[rows] + steps) - steps
    return np.maximum(np.maximum(priorities, today - MOST_NICE), 1.0)
