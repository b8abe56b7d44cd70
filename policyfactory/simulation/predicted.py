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

from policyfactory.core.errors import EvaluationError
from policyfactory.core.jit import interruptible
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY
from policyfactory.engine.conservative import new_profile
from policyfactory.engine.easy import SortedRun, new_queue
from policyfactory.engine.events import NEVER, STARTED, new_jobs
from policyfactory.engine.past import DESCRIBED, ENDS, FEATURES, Past, new_past
from policyfactory.engine.predicted import Foresight, PredictedRun, predicted_until
from policyfactory.engine.slurm.numbers import foresee_record, new_followed
from policyfactory.engine.waiting import new_space
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.prediction.features import known_of, raised_requests
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor, Training, train_forests
from policyfactory.simulation.prepare import Prepared
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload

_MOST_RAISED = 0.02  # of the requests that may have been raised to the run time, before nothing is predicted


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
    backfill_order = prepared.scan_policy(policy)
    return policy.needs_predictions or (backfill_order is not None and backfill_order.needs_predictions)


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
    loop = _ClosedLoop(prepared, policy, predictor, tail=tail)
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
    loop = _ClosedLoop(prepared, policy, predictor)
    loop.run(follow, stop=int(prepared.workload.submit[job]) + 1)
    return loop.submission(job)


def needed(predictor: Predictor, policies: Sequence[Policy], *, tail: bool | None = None) -> Predictor:
    """Return what predicts for some policies: nothing is trained for those that read counts of jobs alone.

    Unless ``tail`` says that somebody else wants to see what would be predicted.
    """
    counts = tail is None and any(order.needs_predictions for order in policies)
    if counts and not any(order.needs_model for order in policies):
        return dataclasses.replace(predictor, forests=Forests(), trainings=())
    return predictor


def check_predictor(workload: Workload, policies: Sequence[Policy], predictor: Predictor) -> bool:
    """Return whether one of some policies reads e90.

    Raises
    ------
    EvaluationError
        If requests tell the run times that are to be predicted, or a policy reads e90 and a model that is given has no
        trees for it.
    """
    is_asked = predictor.forests is None or len(predictor.forests.shortness.roots) > 0
    if is_asked and (telling := telling_requests(workload)):
        raise EvaluationError(f"{workload.name}: {telling}")
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
    run = run_predicted(prepared, policy, Predictor(PredictorOptions(first_days=first, every_days=3650.0, renew_s=0)))
    return run.trainings[-1].forests if run.trainings else None


def telling_requests(workload: Workload) -> str:
    """Return why the requests of a log tell the run times that are to be predicted, and the cure; empty if they do not.

    Either they were filled with them, or too many were raised to them where a job ran longer.
    """
    filled = sum(step.jobs for step in workload.cleaning.steps if step.what == "no requested time, the run time taken")
    if filled:
        return (
            f"{filled:,} jobs have no requested time and were given their run time, which is what is to be predicted; "
            "read the log with --estimate-missing model, or drop"
        )
    raised = int(raised_requests(workload).sum())
    if raised <= _MOST_RAISED * len(workload):
        return ""
    return (
        f"{raised:,} of {len(workload):,} requests are unusual times of the run time or less than a minute more, as if "
        "they had been raised or set to it: they tell what is to be predicted; take a log with the requests as users "
        "made them (policyfactory workload import of the accounting), or policies without predictions"
    )


def _refuse(rules: Rules, policies: Sequence[Policy]) -> None:
    if rules.compatibility != "none":
        for policy in policies:
            if policy.needs_predictions:
                raise predictions_needed(policy, f"a simulation with compatibility {rules.compatibility}")
        raise EvaluationError(
            f"predictions are made by our own rules only; with compatibility {rules.compatibility} take a policy "
            "without them"
        )


def predict_record(
    workload: Workload,
    start: Int64Array,
    end: Int64Array,
    predictor: Predictor | None = None,
    *,
    follow: Callable[[float], object] = lambda _: None,
) -> tuple[FloatArray, tuple[Training, ...]]:
    """Return what would have been predicted of the jobs of a record, each when it was submitted, and by what.

    Nothing that happened later is looked at: neither starts and ends, nor jobs that were submitted later.

    Parameters
    ----------
    workload : Workload
        The jobs, on a clock of seconds.
    start, end : int64 array (n,), s
        When they started, -1 where that is not known, and ended, `policyfactory.engine.events.NEVER` where not.
    predictor : Predictor, optional
        What predicts; with its defaults if not given.
    follow : callable
        Is told the part of the jobs that were predicted, from 0 to 1, at each training.

    Returns
    -------
    float64 array (2, n)
        e (s) and s.
    tuple of Training
        What was trained; given as the predictor's, it is not trained again.

    Raises
    ------
    EvaluationError
        If requests tell the run times that are to be predicted.
    """
    predictor = predictor or Predictor()
    check_predictor(workload, [], predictor)
    lessons = Lessons(workload, predictor, np.zeros((5, len(workload))), tail=False)
    followed = new_followed(workload.submit, start, end)
    while True:
        until = lessons.next
        interruptible(foresee_record, followed, lessons.past, lessons.sight, until)
        follow(int(lessons.past.progress[DESCRIBED]) / max(len(workload), 1))
        if until == NEVER:
            return lessons.predictions[:2], lessons.trainings
        lessons.learn()


class _ClosedLoop:
    """One run, before its first event; its parameters are those of `run_predicted`."""

    def __init__(
        self, prepared: Prepared, policy: Policy, predictor: Predictor | None, *, tail: bool | None = None
    ) -> None:
        policies = [order for order in (policy, prepared.scan_policy(policy)) if order is not None]
        _refuse(prepared.rules, policies)
        workload, predictor = prepared.workload, needed(predictor or Predictor(), policies, tail=tail)
        reads = check_predictor(workload, policies, predictor)
        n, machine = len(workload), workload.machine
        self._prepared = prepared
        self._lessons = Lessons(workload, predictor, np.zeros((5, n)), tail=reads if tail is None else tail)
        filled = dataclasses.replace(prepared, predictions=self._lessons.predictions)
        formula, backfill = filled.formulas(policy)
        is_conservative = prepared.rules.backfill == "conservative"
        is_sorted = prepared.is_sorted(policy) and not is_conservative
        order = prepared.order(policy)
        keys = np.zeros(n if is_sorted else 0, dtype=np.int64)
        backfill_keys = np.zeros(n if is_sorted and order.own_order else 0, dtype=np.int64)
        jobs = new_jobs(
            *(workload.submit, prepared.run_time, prepared.estimate, workload.processors),
            key=keys,
            backfill_key=backfill_keys,
            noted=True,
        )
        space = new_space(n, machine, max(formula.depth, backfill.depth))
        self._keyed = SortedRun(space.state, space.heap, space.running, new_queue(n)) if is_sorted else None
        self._scored = None if is_sorted or is_conservative else backfill
        self._profile = new_profile(n, machine) if is_conservative else None
        self._run = PredictedRun(
            jobs=jobs,
            keys=keys,
            backfill_keys=backfill_keys,
            space=space,
            formula=formula,
            backfill_formula=backfill,
            order=order,
            processors=machine,
        )

    def run(self, follow: Callable[[float], object], stop: int = NEVER) -> None:
        """Go through the jobs, training now and then, up to the last instant before ``stop`` (ticks)."""
        lessons, jobs = self._lessons, len(self._prepared)
        run = self._run, self._keyed, self._scored, self._profile
        while self._run.space.state[STARTED] < jobs:
            until = lessons.next
            with np.errstate(all="ignore"):
                interruptible(predicted_until, *run, lessons.past, lessons.sight, min(until, stop))
            follow(int(lessons.past.progress[DESCRIBED]) / jobs)
            if stop <= until:
                break
            if until != NEVER:
                lessons.learn()

    def foreseen(self) -> Foreseen:
        """Return the schedule of a run that is over."""
        jobs, lessons = self._run.jobs, self._lessons
        return Foreseen(
            start=jobs.start,
            backfilled=jobs.backfilled,
            predictions=lessons.predictions,
            features=lessons.features,
            model_of=lessons.model_of,
            trainings=lessons.trainings,
        )

    def submission(self, job: int) -> Submission:
        """Return where a run stands that was stopped behind a submission."""
        lessons = self._lessons
        is_trained = len(lessons.sight.shortness.roots) > 0
        return Submission(self._run.jobs.start, lessons.predictions, lessons.features[job], lessons.past, is_trained)


class Lessons:
    """What a predictor sees of one run, what it makes of it, and its trainings: made as time goes on, or given.

    Parameters
    ----------
    workload : Workload
        In the order of submission.
    predictor : Predictor
        A model that it keeps is never replaced.
    predictions : float64 array (5, n)
        Filled in: e, s, e90, user_waiting and user_running as they were last made.
    tail : bool
        Whether to train for e90 too.

    Attributes
    ----------
    past : Past
        What has happened.
    sight : Foresight
        What predicts, with the features of the jobs, which are what is learned from.
    next : int
        The instant (ticks) from which on another model may be in force; `NEVER` if none will.
    model_of : int64 array (n,)
        The training whose model was in force when a job was submitted; -1 before the first.
    trainings : tuple of Training
        The models that have been in force, in the order of their trainings.
    """

    def __init__(self, workload: Workload, predictor: Predictor, predictions: FloatArray, *, tail: bool) -> None:
        n, options, model = len(workload), predictor.options, predictor.forests or Forests()
        self._submit, self._day = workload.submit, DAY * workload.ticks
        self._options, self._tail = options, tail
        self._given = list(predictor.trainings)
        self.trainings: tuple[Training, ...] = ()
        self.predictions = predictions
        self.past: Past = new_past(*known_of(workload), workload.ticks)
        begin = int(self._submit[0]) if n else 0
        self.sight = Foresight(
            *(model.shortness, model.share, model.tail),
            features=np.zeros((n + 1, FEATURES)),
            predictions=predictions,
            renewal=np.array([round(options.renew_s * workload.ticks), begin], dtype=np.int64),
            renewed=np.empty(n, dtype=np.int64),
        )
        self.model_of = np.full(n, -1, dtype=np.int64)
        learns = predictor.forests is None and not self._given
        self.next = begin if learns and n else self._given[0].instant if self._given else NEVER

    @property
    def features(self) -> FloatArray:
        """What was known of each job when it was submitted: float64 (n, FEATURES)."""
        return self.sight.features[:-1]

    def learn(self) -> None:
        """Put in force what predicts from `next` on, and set `next` to the instant after that.

        `past` has what had happened before `next`.
        """
        if self._given:
            self._use(self._given.pop(0))
            self.next = self._given[0].instant if self._given else NEVER
            return
        options, past, ended = self._options, self.past, int(self.past.progress[ENDS])
        days = options.first_days
        if ended >= options.least:
            rows = past.ended[max(0, ended - options.window) : ended]
            forests = train_forests(self.sight.features[rows], past.outcome[rows], options, tail=self._tail)
            self._use(Training(self.next, forests))
            days = options.every_days
        self.next += round(days * self._day)
        # A log may be silent for long.
        self.next = max(self.next, int(self._submit[min(past.progress[DESCRIBED], len(self._submit) - 1)]))
        if self.next > int(self._submit[-1]):
            self.next = NEVER

    def _use(self, training: Training) -> None:
        model = training.forests
        self.model_of[self.past.progress[DESCRIBED] :] = len(self.trainings)
        self.trainings += (training,)
        self.sight = self.sight._replace(shortness=model.shortness, share=model.share, tail=model.tail)
