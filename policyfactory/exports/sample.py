"""Jobs like those that a cluster will get: the range of scores is learnt from them."""

from __future__ import annotations

import dataclasses
import datetime as dt

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.text import DAY, WEEK, format_duration
from policyfactory.exports.expressible import check_size
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST, PriorityScale, scale_of
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.jobs import Workload

DEFAULT_LIFE = 365 * DAY
# Drawn from the workload: a thousand jobs lie beyond each end of the range.
SAMPLE_JOBS = 1_000_000
_PURPOSE = 41


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExportSample:
    """Jobs like those that the policy will order in its life: the range of scores is learnt from them.

    Parameters
    ----------
    p : float64 array (n,)
        Requested run time, s.
    q : float64 array (n,)
        Requested processors.
    r : float64 array (n,)
        Submit time, s since the policy's epoch, spread over the policy's life.
    w : float64 array (n,)
        Time waited, s.
    origin : str
        Where the jobs are from, in words, with the digest of the workload.
    asked : float64 array (3, n) or None
        Nodes, memory (MB) and GPUs; None: not known, and drawn as wide as they may be.
    """

    p: FloatArray
    q: FloatArray
    r: FloatArray
    w: FloatArray
    origin: str
    asked: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.p)

    def scores(self, policy: Policy) -> FloatArray:
        """Return the score of each job; what a policy reads of predictions is drawn, as wide as it may be."""
        predictions = None
        if policy.needs_predictions:
            from policyfactory.prediction.features import possible_predictions  # the compiler is slow to load

            predictions = possible_predictions(self.p)
        asked = None
        if policy.asked:
            asked = possible_requests(self.q) if self.asked is None else self.asked
        return policy.scores(self.p, self.q, self.r, self.w, predictions=predictions, asked=asked)


def sample_of(
    workload: Workload,
    policy: Policy | None = None,
    *,
    begin: int | None = None,
    life: int = DEFAULT_LIFE,
    jobs: int = SAMPLE_JOBS,
    seed: int = 1,
) -> ExportSample:
    """Return jobs drawn from a workload, submitted at any time of the policy's life.

    Requested times, processors and recorded waits are drawn together, with replacement; w is any part of the wait.
    Where no wait is recorded, it is 1 s to 7 days, as many within each factor of ten. Submit times are spread evenly
    over the life, because a policy that counts from a fixed date gives its jobs of next year other scores than those
    of today. With the rule oldest-waiting, r is at most the longest wait.

    Parameters
    ----------
    workload : Workload
        Jobs of the cluster.
    policy : Policy, optional
        Whose epoch counts; without one, ``begin`` is the epoch.
    begin : int, optional
        Unix time (s) from which the policy orders jobs; the epoch without it.
    life : int
        For how long it will, s.
    jobs : int
        How many to draw.
    seed : int
        Of the random numbers.

    Raises
    ------
    UsageError
        If the life is no time, ends before the epoch, or begins without an epoch to count from.
    """
    if not 1 <= life <= 100 * 366 * DAY:
        raise UsageError(f"a life of {life} s is outside 1 s to 100 years; give for example --life 365d")
    rng = generator(seed, _PURPOSE)
    rows = rng.integers(0, len(workload), jobs)
    ticks = workload.ticks
    p = -(-workload.requested_time[rows] // ticks)
    waits = _waits(workload, rows)
    first, last = _span(policy, begin, life, int(waits.max(initial=0)))
    r = rng.integers(first, last, jobs, endpoint=True)
    if waits.any():
        # While a job waits, it is looked at with every w up to its whole wait.
        w, waited = rng.integers(0, waits, endpoint=True), "w up to the recorded waits"
    else:
        w, waited = np.floor(WEEK ** rng.random(jobs)), f"w from 1 s to {WEEK} s, as no wait is recorded"
    used = frozenset("rw") if policy is None else policy.variables
    spread = (_submitted(policy, first, last) if "r" in used else "") + (f", {waited}" if "w" in used else "")
    return ExportSample(
        p.astype(np.float64),
        workload.processors[rows].astype(np.float64),
        r.astype(np.float64),
        w.astype(np.float64),
        f"{workload.name}, {len(workload):,} jobs (SHA-256 {workload.sha256()}){spread}",
        _requests(workload, rows) if policy is not None and policy.asked else None,
    )


def _requests(workload: Workload, rows: NDArray[np.int64]) -> FloatArray | None:
    """Return what drawn jobs ask for; where the log does not say it, as wide as it may be."""
    known = workload.requests
    if known is None:
        return None
    asked = possible_requests(workload.processors[rows].astype(np.float64))
    for row, column in enumerate((known.nodes, known.memory, known.gpus)):
        asked[row] = np.where(column[rows] >= 0, column[rows], asked[row])
    return asked


def possible_requests(q: FloatArray) -> FloatArray:
    """Return nodes, memory (MB) and GPUs as jobs of ``q`` processors may ask for them: float64 (3, n).

    From one node to one for each processor, from 100 MB to 16 GB for each processor, as many within each factor; half
    of the jobs ask for no GPU, the others for one to one for each processor.
    """
    rng = generator(1, _PURPOSE, 2)
    nodes = np.ceil(q ** rng.random(len(q)))
    memory = np.ceil(q * 100.0 * 160.0 ** rng.random(len(q)))
    gpus = np.ceil(q ** rng.random(len(q))) * (rng.random(len(q)) < 0.5)
    return np.stack([nodes, memory, gpus])


def _waits(workload: Workload, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the recorded waits, s; 0 where the start is not known."""
    start, submit = workload.start[rows], workload.submit[rows]
    return np.where(start < 0, 0, np.maximum(start - submit, 0) // workload.ticks)


def _submitted(policy: Policy | None, first: int, last: int) -> str:
    """Return for which submissions the range is learnt: r, and the dates where its epoch is one."""
    r = f"r from {first} to {last} s"
    epoch = None if policy is None else policy.epoch.unix_time
    if epoch is None:
        return f", {r}"
    return f", submitted from {shown(epoch + first, dt.UTC)} to {shown(epoch + last, dt.UTC)} ({r})"


def _span(policy: Policy | None, begin: int | None, life: int, longest_wait: int) -> tuple[int, int]:
    """Return the first and the last r that the policy will see, s."""
    if policy is not None and policy.epoch.rule == "oldest-waiting":
        return 0, max(longest_wait, WEEK)
    epoch = None if policy is None else policy.epoch.unix_time
    if begin is None or (policy is not None and "r" not in policy.variables):
        return 0, life
    if epoch is None:
        raise UsageError(
            "the policy counts r from the start of a window, so that its life cannot begin at a date; "
            "give the date from which it counts as well: --epoch 2026-01-01"
        )
    if begin < epoch:
        raise UsageError(
            f"--begin {shown(begin, dt.UTC)} is {format_duration(epoch - begin)} before the epoch of the policy, "
            f"{shown(epoch, dt.UTC)}, and r is negative there; give a later --begin or an earlier --epoch"
        )
    return begin - epoch, begin - epoch + life


def wide_sample(policy: Policy | None = None, *, begin: int | None = None, life: int = DEFAULT_LIFE) -> ExportSample:
    """Return the sample that is used where no log is given: the workload model's default jobs."""
    from policyfactory.workload.models.lublin import default_workload

    return sample_of(default_workload(), policy, begin=begin, life=life)


# The map from scores to whole numbers that suits the jobs of a cluster ------------------------------------------------


def learn_scale(policy: Policy, sample: ExportSample, *, largest: int = LARGEST) -> PriorityScale:
    """Return the map to whole numbers that suits the scores of a sample.

    Three quarters of the numbers go to the scores between their 0.1 % and 99.9 % quantiles.

    Parameters
    ----------
    policy : Policy
        What is exported.
    sample : ExportSample
        Jobs like the cluster's.
    largest : int
        The highest number.

    Raises
    ------
    ExportError
        If the policy gives all jobs of the sample one score, or none that is finite; or has m.
    """
    check_size(policy)
    scores = sample.scores(policy)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        raise ExportError(f"policy {policy.name} has no finite score for any job of {sample.origin}; check its formula")
    scale = scale_of(scores, largest=largest)
    if scale is None:
        raise ExportError(
            f"policy {policy.name} gives every job of {sample.origin} the score {scores[0]:g}; "
            "there is nothing to order by (does it need --workload, or another policy?)"
        )
    return scale
