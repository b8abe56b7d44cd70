"""A schedule in the closed loop: predictions from jobs that have ended, run or wait in this very simulation.

The simulation stops, now and then, for the predictor to learn from the jobs that have ended last; nothing that happens
later can change a prediction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.core.interruptible import interruptible
from policyfactory.core.units import DAY
from policyfactory.engine.conservative import new_profile
from policyfactory.engine.easy import new_queue
from policyfactory.engine.events import NEVER, STARTED, new_jobs
from policyfactory.engine.past import DESCRIBED, FEATURES, Past
from policyfactory.engine.predicted import CONSERVATIVE, SORTED, TIMED, Foresight, Run, predicted_until
from policyfactory.engine.waiting import new_space
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.predict.features import known_of, past_of
from policyfactory.predict.options import PredictorOptions
from policyfactory.predict.predictor import Forests, Predictor, Training
from policyfactory.simulate.lessons import Lessons
from policyfactory.simulate.prepare import Prepared
from policyfactory.workload.jobs import Workload

__all__ = [
    "Foreseen",
    "Submission",
    "check_predictor",
    "filled_requests",
    "last_model",
    "reads_predictions",
    "run_predicted",
    "run_to_submission",
]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """A schedule in the closed loop, in the order of the jobs as they were prepared.

    Parameters
    ----------
    start : int64 array (n,), ticks
        Starts.
    backfilled : bool array (n,)
        Whether a job was started while one ahead of it stayed waiting.
    predictions : float64 array (5, n)
        e, s, e90, user_waiting, user_running as they were last made.
    features : float64 array (n, FEATURES)
        What was known of each job when it was submitted.
    model_of : int64 array (n,)
        The training whose model was in force when the job was submitted; -1 before the first.
    trainings : tuple of Training
        The models, in the order of their trainings.
    """

    start: Int64Array
    backfilled: NDArray[np.bool_]
    predictions: FloatArray
    features: FloatArray
    model_of: Int64Array
    trainings: tuple[Training, ...]


class Submission(NamedTuple):
    """Where a run in the closed loop stands right after the pass of the instant at which a job was submitted.

    Parameters
    ----------
    start : int64 array (n,), ticks
        Starts up to that instant; -1 of the other jobs.
    predictions : float64 array (5, n)
        e, s, e90, user_waiting, user_running as they were then, of all jobs submitted by then.
    features : float64 array (FEATURES,)
        What was known of the job.
    past : Past
        What was seen up to that instant, its ends and starts included.
    is_trained : bool
        Whether a model was in force; else the request stands for the run time.
    """

    start: Int64Array
    predictions: FloatArray
    features: FloatArray
    past: Past
    is_trained: bool


def reads_predictions(prepared: Prepared, policy: Policy) -> bool:
    """Say whether the policy, or the order for backfilling, reads predictions."""
    own = prepared.own_order(policy)
    return policy.needs_predictions or (own is not None and own.needs_predictions)


def run_predicted(
    prepared: Prepared,
    policy: Policy,
    predictor: Predictor | None = None,
    *,
    tail: bool | None = None,
    follow: Callable[[float], object] = lambda _: None,
) -> Foreseen:
    """Return the schedule of a policy that reads predictions, and what was predicted.

    Parameters
    ----------
    prepared : Prepared
        The jobs and the rules.
    policy : Policy
        The order of the queue; it may as well read no prediction.
    predictor : Predictor, optional
        What predicts; with its defaults if not given.
    tail : bool, optional
        Train for e90 too; by default where a policy reads it.
    follow : callable
        Is told the part of the jobs that were submitted, from 0 to 1, at each training.

    Raises
    ------
    UsageError
        If the rules are those of another program, and a policy reads predictions.
    EvaluationError
        If the rules are those of another program, requests were filled with the run times that are to be predicted, or
        a policy reads e90 and a model that is given has no trees for it.
    """
    loop = _closed_loop(prepared, policy, predictor, tail=tail)
    loop.run(follow)
    return loop.foreseen()


def run_to_submission(
    prepared: Prepared,
    policy: Policy,
    job: int,
    predictor: Predictor | None = None,
    *,
    follow: Callable[[float], object] = lambda _: None,
) -> Submission:
    """Return where the run stands when a job is submitted; other parameters, and what is raised, as of `run_predicted`.

    Parameters
    ----------
    job : int
        Its place in ``prepared``.
    """
    loop = _closed_loop(prepared, policy, predictor, tail=None)
    loop.run(follow, stop=int(prepared.workload.submit[job]) + 1)
    return loop.submission(job)


def _closed_loop(prepared: Prepared, policy: Policy, predictor: Predictor | None, *, tail: bool | None) -> _ClosedLoop:
    """Return a run that can be made, before its first event."""
    own, predictor = prepared.own_order(policy), predictor or Predictor()
    _refuse(prepared, policy, own)
    reads = check_predictor(prepared.workload, [policy] if own is None else [policy, own], predictor)
    return _ClosedLoop(prepared, policy, predictor, tail=reads if tail is None else tail)


def check_predictor(workload: Workload, policies: Sequence[Policy], predictor: Predictor) -> bool:
    """Return whether one of some policies reads e90.

    Raises
    ------
    EvaluationError
        If requests were filled with the run times that are to be predicted, or a policy reads e90 and a model that is
        given has no trees for it.
    """
    if filled := filled_requests(workload):
        raise EvaluationError(
            f"{workload.name}: {filled:,} jobs have no requested time and were given their run time, which is what "
            "is to be predicted; read the log with --estimate-missing model, or drop"
        )
    given = [training.forests for training in predictor.trainings]
    given += [] if predictor.forests is None else [predictor.forests]
    lacks = any(len(model.shortness.roots) and not len(model.tail.roots) for model in given)
    reading = [policy.name for policy in policies if "e90" in policy.variables]
    if reading and lacks:
        raise EvaluationError(
            f"{workload.name}: {reading[0]} reads e90, for which the model that is given has no trees; "
            "give one of policyfactory predict, or a formula without e90"
        )
    return bool(reading)


def last_model(prepared: Prepared, policy: Policy) -> Forests | None:
    """Return the model that is trained once, just before the last submission, for what comes after the log.

    None if by then too few jobs have ended. Raises what `run_predicted` does.
    """
    submit = prepared.workload.submit
    days = float(submit[-1] - submit[0]) / (DAY * prepared.workload.ticks) if len(submit) else 0.0
    # At the first submission nothing can be learned; then the first time is shortly before the last.
    first = min(max(days * (1 - 1e-6), 0.1), 3650.0)
    made = run_predicted(prepared, policy, Predictor(PredictorOptions(first_days=first, every_days=3650.0, renew_s=0)))
    return made.trainings[-1].forests if made.trainings else None


def filled_requests(workload: Workload) -> int:
    """Return how many jobs were given their run time for the request that they did not have."""
    return sum(step.jobs for step in workload.cleaning.steps if step.what == "no requested time, the run time taken")


def _refuse(prepared: Prepared, policy: Policy, own: Policy | None) -> None:
    rules = prepared.rules
    if rules.compatibility != "none":
        for one in (policy, own):
            if one is not None and one.needs_predictions:
                raise predictions_needed(one, f"a simulation with compatibility {rules.compatibility}")
        raise EvaluationError(
            f"predictions are made by our own rules only; with compatibility {rules.compatibility} take a policy "
            "without them"
        )


class _ClosedLoop:
    """One run."""

    def __init__(self, prepared: Prepared, policy: Policy, predictor: Predictor, *, tail: bool) -> None:
        workload = prepared.workload
        n, machine = len(workload), workload.machine
        self._prepared = prepared
        self._past: Past = past_of(known_of(workload), workload.ticks)
        predictions = np.zeros((5, n))
        filled = dataclasses.replace(prepared, predictions=predictions)
        formula, own = filled.formulas(policy)
        kind = SORTED if prepared.is_sorted(policy) else TIMED
        if prepared.rules.backfill == "conservative":
            kind = CONSERVATIVE
        order = prepared.order(policy)
        keys = np.zeros(n if kind == SORTED else 0, dtype=np.int64)
        backfill_keys = np.zeros(n if kind == SORTED and order.own_order else 0, dtype=np.int64)
        jobs = new_jobs(
            *(workload.submit, prepared.run_time, prepared.estimate, workload.processors),
            key=keys,
            backfill_key=backfill_keys,
            noted=True,
        )
        self._run = Run(
            kind=kind,
            jobs=jobs,
            keys=keys,
            backfill_keys=backfill_keys,
            space=new_space(n, machine, max(formula.depth, own.depth)),
            queue=new_queue(n if kind == SORTED else 0),
            profile=new_profile(n, machine) if kind == CONSERVATIVE else np.empty((2, 0), dtype=np.int64),
            formula=formula,
            backfill_formula=own,
            order=order,
            processors=machine,
        )
        given = predictor.forests or Forests()
        period = round(predictor.options.renew_s * workload.ticks)
        self._sight = Foresight(
            *(given.shortness, given.share, given.tail),
            features=np.zeros((n + 1, FEATURES)),
            predictions=predictions,
            renewal=np.array([period, int(workload.submit[0]) if n else 0], dtype=np.int64),
            renewed=np.empty(n, dtype=np.int64),
        )
        self._lessons = Lessons(workload, predictor, tail=tail)

    def run(self, follow: Callable[[float], object], stop: int = NEVER) -> None:
        """Go through the jobs, training now and then, up to the last instant before ``stop`` (ticks)."""
        lessons = self._lessons
        while not self._is_over:
            until = lessons.next
            with np.errstate(all="ignore"):
                interruptible(predicted_until, self._run, self._past, self._sight, min(until, stop))
            follow(int(self._past.place[DESCRIBED]) / len(self._prepared))
            if stop <= until:
                break
            if until != NEVER:
                self._sight = lessons.take(self._past, self._sight)

    def foreseen(self) -> Foreseen:
        """Return the schedule of a run that is over."""
        jobs, sight, n = self._run.jobs, self._sight, len(self._prepared)
        lessons = self._lessons
        return Foreseen(
            jobs.start, jobs.backfilled, sight.predictions, sight.features[:n], lessons.model_of, lessons.trainings
        )

    def submission(self, job: int) -> Submission:
        """Return where a run stands that was stopped behind a submission."""
        sight = self._sight
        is_trained = len(sight.shortness.roots) > 0
        return Submission(self._run.jobs.start, sight.predictions, sight.features[job], self._past, is_trained)

    @property
    def _is_over(self) -> bool:
        return bool(self._run.space.state[STARTED] >= len(self._prepared))
