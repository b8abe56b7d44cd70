"""What an administrator asks before a formula orders the queue: until when, how long a job may wait, who can cheat."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, HOUR, MINUTE, format_duration
from policyfactory.exports.sample import possible_requests
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import PriorityScale
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.prediction.training import Predictor
    from policyfactory.simulation.rules import Rules

_YEARS = 100
# Simulated, the last ones: an export is to take seconds, and Slurm's passes take a hundred times as long as EASY's.
_MOST_JOBS, _MOST_UNDER_SLURM = 30_000, 10_000
_LOST = 0.5  # share of the shapes of jobs for which a minute between submissions is lost
_LARGEST = 1024  # processors, where nobody says how many the machine has


def renewal(policy: Policy, scale: PriorityScale | None, begin: int | None, life: int) -> str:
    """Return until when the numbers keep submissions apart; empty for a formula without r, or from no fixed date.

    The end of the life that the range of scores was made for, or the time at which a minute between two submissions
    no longer changes the number (without a scale: the score, as a double) of most jobs though it did at first.

    Parameters
    ----------
    policy : Policy
        What is exported.
    scale : PriorityScale or None
        The map to whole numbers.
    begin : int or None
        Unix time (s) from which it is used; the epoch without it.
    life : int
        For how long the range of scores was made, s.
    """
    epoch = policy.epoch.unix_time
    if "r" not in policy.variables or epoch is None:
        return ""
    first = epoch if begin is None else begin
    end = first + life if scale is not None else None
    lost = _minute_lost(policy, scale, first - epoch)
    if lost is not None and (end is None or epoch + lost < end):
        return (
            f"Renew before {_day(epoch + lost)}: from then on, submissions a minute apart have one number for most "
            "jobs (export it again with a later --epoch, or a fit for it)."
        )
    if end is None:
        return ""
    return (
        f"Renew before {_day(end)}: the numbers are spread over submissions until then (--life); later ones share "
        "numbers more and more."
    )


def _minute_lost(policy: Policy, scale: PriorityScale | None, first: int) -> float | None:
    """Return the r (s) from which a minute is lost for most shapes; None if never, or from the beginning."""
    p, q = _shapes(_LARGEST)
    of_requests = np.stack([p, 10.0 / p, p, 0.0 * p, 0.0 * p]) if policy.needs_predictions else None
    asked = possible_requests(q) if policy.asked else None

    def lost(r: float) -> bool:
        scores = [
            policy.scores(
                *(p, q, np.full(len(p), r + late), np.zeros(len(p)), float(_LARGEST)),
                predictions=of_requests,
                asked=asked,
            )
            for late in (0, MINUTE)
        ]
        numbers = scores if scale is None else [scale.integers(score) for score in scores]
        return float(np.mean(numbers[0] == numbers[1])) > _LOST

    low, high = float(max(first, HOUR)), float(max(first, HOUR)) + _YEARS * 365.25 * DAY
    if lost(low) or not lost(high):
        return None
    while high - low > DAY:
        middle = (low + high) / 2
        low, high = (low, middle) if lost(middle) else (middle, high)
    return low


def gaming(policy: Policy, processors: int | None) -> str:
    """Return what a user gains by asking for another time or size than needed, in a sentence or two.

    Parameters
    ----------
    policy : Policy
        What is exported.
    processors : int or None
        Of the machine, if known.
    """
    if policy.needs_model:
        return (
            "Gaming: what its user's jobs did before decides about a job's place, beside what it asks for; many short "
            "jobs put a user's later ones further ahead, until some of them run long."
        )
    largest = processors or _LARGEST
    p, q = _shapes(largest)
    r, w = np.full(len(p), float(30 * DAY)), np.full(len(p), float(HOUR))
    # They stay what they are while time or size change.
    asked = possible_requests(q) if policy.asked else None

    # Of a user without other jobs.
    alone = np.stack([p, 10.0 / p, p, 0.0 * p, 0.0 * p]) if policy.needs_predictions else None

    def scores(p: FloatArray, q: FloatArray) -> FloatArray:
        return policy.scores(p, q, r, w, m=float(largest), predictions=alone, asked=asked)

    usual = scores(p, q)
    wide = q >= 2
    by_time = _gain(usual, scores(p / 2, q))
    by_size = _gain(usual[wide], scores(p, np.floor(q / 2))[wide]) if wide.any() else (0.0, 0.0)
    time = _in_words(by_time, "time", "a limit that is too short ends the job, and nothing else stops it")
    size = _in_words(by_size, "processors", "work can be cut into smaller jobs, each of them further ahead")
    counted = " How many jobs of its user wait or run decides too." if policy.needs_predictions else ""
    return f"Gaming: {time}. As for processors: {size}.{counted}"


def _gain(usual: FloatArray, less: FloatArray) -> tuple[float, float]:
    """Return the shares of the shapes that go ahead, and back, by asking for less."""
    return float(np.mean(less < usual)), float(np.mean(less > usual))


def _in_words(gain: tuple[float, float], what: str, warning: str) -> str:
    ahead, back = gain
    if ahead == back == 0:
        return f"asking for less or more {what} changes no job's place"
    if back == 0:
        always = "every job" if ahead == 1 else f"{100 * ahead:.0f} % of the shapes of jobs"
        return f"half the {what} puts {always} further ahead: {warning}"
    if ahead == 0:
        always = "every job" if back == 1 else f"{100 * back:.0f} % of the shapes of jobs"
        return f"asking for MORE {what} than needed pays: half the {what} puts {always} further back"
    return (
        f"half the {what} puts {100 * ahead:.0f} % of the shapes of jobs further ahead and {100 * back:.0f} % "
        "further back"
    )


def starvation(
    policy: Policy,
    workload: Workload | None,
    *,
    keeps_threshold: bool,
    predictor: Predictor | None = None,
    rules: Rules | None = None,
    or_easy: bool = False,
) -> str:
    """Return how long a job may wait: by a simulation of the site's jobs where there are some, and by the threshold.

    Parameters
    ----------
    policy : Policy
        What is exported.
    workload : Workload or None
        The site's own jobs.
    keeps_threshold : bool
        Whether the target lets jobs go first that have waited longer than the threshold.
    predictor : Predictor, optional
        What predicts for a policy that reads predictions.
    rules : Rules, optional
        Those of the simulation; EASY's are said beside Slurm's. Default: EASY.
    or_easy : bool
        Whether EASY will do where a policy is not simulated under Slurm's rules.
    """
    has = math.isfinite(policy.threshold)
    bound = (
        f"a job that has waited longer than {format_duration(policy.threshold)} goes first"
        if has and keeps_threshold
        else "no threshold bounds it here"
    )
    if workload is None:
        return f"Starvation: how long a job may wait was not simulated (--workload LOG does); {bound}."
    from policyfactory.simulation.on_site import unfit
    from policyfactory.simulation.simulate import simulate

    if not keeps_threshold:
        policy = dataclasses.replace(policy, threshold=math.inf)
    if rules is not None and or_easy and unfit(policy, rules):
        rules = None
    most = _MOST_JOBS if rules is None else _MOST_UNDER_SLURM
    jobs = workload.select(np.arange(max(0, len(workload) - most), len(workload)))
    exported = as_then(policy, jobs)

    def longest(rules: Rules | None) -> str:
        waits = {
            name: float(simulate(jobs, by, rules, predictor=predictor).wait.max())
            for name, by in (("", exported), (" under FCFS", "FCFS"))
        }
        return ", ".join(f"{format_duration(wait)}{name}" for name, wait in waits.items())

    how, beside = "with EASY backfilling", ""
    if rules is not None:
        where = "an assumed site" if rules.site is None else f"site {rules.site.name}"
        how, beside = f"under Slurm's own rules on {where}", f" ({how} {longest(None)})"
    what = f"{len(jobs):,} jobs of {jobs.name} {how}"
    return f"Starvation: the longest wait in a simulation of {what} is {longest(rules)}{beside}; {bound}."


def as_then(policy: Policy, jobs: Workload) -> Policy:
    """Return the policy for jobs from before its epoch: r counts from the first submission, as in its first months."""
    epoch, begins = policy.epoch.unix_time, jobs.unix_start
    if epoch is None or (begins is not None and begins + int(jobs.submit[0]) // jobs.ticks >= epoch):
        return policy
    return dataclasses.replace(policy, epoch=Epoch("window-start"))


def _shapes(largest: int) -> tuple[FloatArray, FloatArray]:
    """Return jobs of all shapes: 1 minute to 7 days, 1 to ``largest`` processors."""
    times = np.geomspace(MINUTE, 7 * DAY, 30)
    sizes = np.unique(np.floor(np.geomspace(1, max(largest, 1), 20)))
    p, q = np.meshgrid(times, sizes)
    return p.ravel(), q.ravel()


def _day(seconds: float) -> str:
    return shown(int(seconds), dt.UTC)[:10]
