"""The number that an export sets for each job, Slurm's ``site_factor``, and how it changes while a run goes on."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.interruptible import interruptible
from policyfactory.engine.events import NEVER
from policyfactory.engine.formula import ASKED, COLUMNS
from policyfactory.engine.past import FEATURES
from policyfactory.engine.predicted import Foresight
from policyfactory.engine.slurm import slurm
from policyfactory.engine.slurm_numbers import ROWS, Numbering, slurm_numbered
from policyfactory.engine.slurm_predicted import follow_run, new_followed
from policyfactory.engine.slurm_state import NOW, WAITING
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import HIGHEST, Scale, scale_of
from policyfactory.predict.features import known_of, past_of
from policyfactory.predict.possible import possible_predictions
from policyfactory.predict.predictor import Forests, Predictor, Training
from policyfactory.simulate.lessons import Lessons
from policyfactory.simulate.predicted import check_predictor
from policyfactory.simulate.prepare import Prepared
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.slurm.requests import limits_of, partitions_of
from policyfactory.simulate.slurm.run import Parts
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["SiteFactors", "SwitchedFactors"]

# Waits (s) at which the scores of a policy with w are looked at for their scale.
_WAITS = (60, 600, 3600, 6 * 3600, 86400, 7 * 86400)


class SiteFactors:
    """What sets the numbers of the jobs of one run; a `policyfactory.simulate.slurm.run.Numbers`.

    A formula of what is known at submission gives a job its number once. With predictions it is worked out when the job
    is submitted, as `job_submit.lua` does it, from what has ended, started or was submitted in this very run by then,
    and again, at the first calculation of priorities of each of the predictor's periods, for the waiting jobs of users
    of whom a job has ended since: what `history update --renew` does in the export. With w or a threshold it is worked
    out whenever priorities are calculated, as the plugin in C does it; a job beyond the threshold is above all others.

    The range of scores that the numbers are spread over is learnt as the export learns it: from what the jobs ask for.
    Nothing that happens in the run is looked at; predictions are drawn as wide as they may be.

    Parameters
    ----------
    workload : Workload
        Its jobs as the site takes them.
    policy : Policy
        Without f, and without an r that changes.
    rules : Rules
    site : Site
        Where time limits are from: those of Slurm are whole minutes.
    predictor : Predictor, optional
        What predicts the jobs for a policy that reads predictions.

    Raises
    ------
    EvaluationError
        If requests were filled with the run times that are to be predicted, or the policy reads e90 and a model that is
        given has no trees for it.

    Attributes
    ----------
    at_submission : bool
        Whether numbers are made when jobs are submitted.
    foresight
        What is predicted of the jobs: its ``predictions``, float64 (5, n), ``features`` and ``trainings``.
    """

    def __init__(
        self, workload: Workload, policy: Policy, rules: Rules, site: Site, predictor: Predictor | None = None
    ) -> None:
        self._policy = policy
        order = np.lexsort((workload.job_id, workload.submit))
        jobs = workload.select(order)
        asked = jobs.requests or Requests.unknown(len(jobs))
        limits = limits_of(jobs, site, partitions_of(jobs, asked, site))
        prepared = Prepared(jobs, None, jobs.run_time, limits, rules)
        self._threshold = prepared.threshold(policy)
        self._changes = not policy.is_static or self._threshold < NEVER
        self.at_submission = policy.needs_predictions
        self._columns = np.zeros((ROWS, len(jobs)))
        predictions = self._columns[COLUMNS:-ASKED]
        # Where nothing is predicted, of no job.
        some = slice(None if self.at_submission else 0)
        self.foresight = _Foresight(jobs.select(some), policy, predictor, predictions[:, some])
        self._prepared = dataclasses.replace(prepared, predictions=predictions)
        self._scale = _learnt_scale(prepared, policy)

    @property
    def at_calculation(self) -> bool:
        """Whether numbers of waiting jobs change where priorities are calculated."""
        return self._changes or (self.at_submission and self.foresight.renews)

    @functools.cached_property
    def first(self) -> Int64Array:
        """The numbers at submission, int64 (n,), in its order; the highest runs first. Unknown with predictions."""
        with np.errstate(all="ignore"):
            return self._scale.integers(self._prepared.scores(self._policy))

    @property
    def submit(self) -> Int64Array:
        """When jobs are submitted (s, on the workload's clock), in that order."""
        return self._prepared.workload.submit

    def numbers(self, jobs: Int64Array, now: int) -> Int64Array:
        """Return the numbers of some jobs at a second of the workload's clock; unknown with predictions."""
        if not self._changes:
            return self.first[jobs]
        waited = now - self.submit[jobs]
        with np.errstate(all="ignore"):
            numbers = self._scale.integers(self._prepared.scores(self._policy, jobs, waited))
        late = self._scale.largest + np.clip(waited, 0, HIGHEST - self._scale.largest)
        return np.where(waited > self._threshold, late, numbers)

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs; as of `policyfactory.simulate.slurm.run.Numbers`."""
        jobs, scale, formula = self._prepared, self._scale, self._prepared.formula(self._policy)
        others = parts.jobs.fixed.copy()
        if not self.at_submission:
            others -= self.first
        columns = self._columns
        columns[: COLUMNS - 1] = jobs.estimate, jobs.workload.processors, formula.r
        if formula.asked.shape[1]:
            columns[-ASKED:] = formula.asked
        numbering = Numbering(
            *(formula.codes, formula.operands, columns, np.empty((ROWS + formula.depth, len(jobs)))),
            *(float(jobs.workload.machine), scale.low, scale.high, float(scale.largest), float(HIGHEST)),
            *(self._threshold, self._changes, others),
        )
        self.foresight.run(parts, numbering, zero)


class SwitchedFactors:
    """What sets the numbers where one policy follows another; a `policyfactory.simulate.slurm.run.Numbers`.

    Parameters
    ----------
    made : mapping of int to SiteFactors
        Those of each policy, of the same jobs.
    in_force : function
        Of times (s, on the workload's clock): which policy's numbers jobs are given then.
    """

    at_submission, at_calculation = False, True

    def __init__(self, made: Mapping[int, SiteFactors], in_force: Callable[[Int64Array | int], Int64Array]) -> None:
        self._made, self._in_force = made, in_force
        arms = in_force(next(iter(made.values())).submit)
        self.first = np.select([arms == arm for arm in made], [one.first for one in made.values()])

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs; as of `policyfactory.simulate.slurm.run.Numbers`."""
        fixed, run = parts.jobs.fixed, parts.run
        others = fixed - self.first
        while interruptible(slurm, *parts):
            now, waiting = int(run.state[NOW]) - zero, run.waiting[: run.state[WAITING]]
            fixed[waiting] = others[waiting] + self._made[int(self._in_force(now))].numbers(waiting, now)


def _learnt_scale(prepared: Prepared, policy: Policy) -> Scale:
    """Return the range of the scores that jobs may have by what they ask for."""
    n = len(prepared)
    if policy.needs_predictions:
        drawn = possible_predictions(prepared.estimate.astype(np.float64))
        prepared = dataclasses.replace(prepared, predictions=drawn)
    with np.errstate(all="ignore"):
        waits = (0,) if policy.is_static else (0, *_WAITS)
        scores = np.concatenate([prepared.scores(policy, waited=np.full(n, wait)) for wait in waits])
    scale = scale_of(scores)
    if scale is not None:
        return scale
    # One score, or none: what has it still goes before what has none.
    known = scores[np.isfinite(scores)]
    middle = float(known[0]) if len(known) else 0.0
    room = max(1.0, abs(middle) / 2)
    return Scale(middle - room, middle + room)


class _Foresight:
    """What is predicted of the jobs of one run."""

    def __init__(self, jobs: Workload, policy: Policy, predictor: Predictor | None, predictions: FloatArray) -> None:
        n, predictor = len(jobs), predictor or Predictor()
        given = predictor.forests or Forests()
        tail = policy.needs_predictions and check_predictor(jobs, [policy], predictor)
        self._lessons = Lessons(jobs, predictor, tail=tail)
        self._past = past_of(known_of(jobs), 1)
        self.renews = predictor.options.renew_s > 0
        self.predictions = predictions
        self._sight = Foresight(
            *(given.shortness, given.share, given.tail),
            features=np.zeros((n + 1, FEATURES)),
            predictions=self.predictions,
            renewal=np.array([round(predictor.options.renew_s), 0], dtype=np.int64),
            renewed=np.empty(n, dtype=np.int64),
        )

    @property
    def features(self) -> FloatArray:
        """What was known of each job when it was submitted: float64 (n, FEATURES), in the order of submission."""
        return self._sight.features[:-1]

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The models that have been in force."""
        return self._lessons.trainings

    def run(self, parts: Parts, numbering: Numbering, zero: int) -> None:
        """Run all jobs, and train where it is time, each time from what had happened before."""
        lessons, seen = self._lessons, new_followed(parts.jobs.submit, parts.run.start, parts.run.end)
        while interruptible(slurm_numbered, *parts, numbering, seen, self._past, self._sight, lessons.next + zero):
            while lessons.next + zero <= parts.run.state[NOW]:
                follow_run(seen, self._past, lessons.next + zero - 1)
                self._sight = lessons.take(self._past, self._sight)
