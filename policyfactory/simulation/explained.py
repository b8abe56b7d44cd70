"""Why a job of a log stood where it stood in the queue when it was submitted, in a simulation under a policy.

Also what a network makes of the jobs that wait in the queues of a schedule: what a policy with w and f really sees.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted
from policyfactory.engine.past import ENDED, ENDED_LAST, LN_RUN
from policyfactory.policy.explain import PAST, Explanation, Job, JobSample, NetworkEffects, explain, network_effects
from policyfactory.policy.expression import ASKED, PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.prediction.explained import OTHERS, REQUEST, by_request_alone, explain_predicted
from policyfactory.prediction.features import NAMES, requests_of
from policyfactory.prediction.training import Forests, PastJob, Predictor, UserSeen
from policyfactory.simulation.predicted import Submission, run_to_submission
from policyfactory.simulation.prepare import Prepared, asked_of, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

_LOOKED_AT = 60  # of the user's ended jobs, as many as the features look at


def explain_job(
    policy: PolicyLike,
    workload: Workload | Path | str,
    job_id: int,
    predictor: Predictor | None = None,
    *,
    estimate_missing: str = "error",
    processors: int | None = None,
    progress: Callable[[float], object] = lambda _: None,
) -> Explanation:
    """Return why a job stands where it stands when it is submitted, and, if it was predicted, what from.

    The log is simulated up to that instant, with EASY backfilling and decisions by request. What is known of
    a user is what has ended, runs or waits in the simulation.

    Parameters
    ----------
    policy : Policy, or name of one, or model, or its file
        The order of the queue.
    workload : Workload, or path of a log
        The jobs.
    job_id : int
        The job.
    predictor : Predictor, optional
        What predicts, for a policy that reads predictions; with its defaults if not given.
    estimate_missing, processors
        As for `policyfactory.workload.clean.read`, of a log that is read.
    progress : callable
        Is told the part of the jobs that were submitted, from 0 to 1, at each training.

    Raises
    ------
    UsageError
        If the log has no such job.
    EvaluationError
        As of `policyfactory.simulation.predicted.run_predicted`.
    """
    policy = resolve(policy)
    if not isinstance(workload, Workload):
        workload = read(workload, processors=processors, estimate_missing=estimate_missing)
    prepared = prepare(workload, Rules())
    row = _row_of(prepared.workload, job_id)
    # Where nothing is read nothing is trained.
    predictor = predictor if policy.needs_predictions else Predictor(forests=Forests())
    submission = run_to_submission(prepared, policy, row, predictor, follow=progress)
    queue = _Queue(prepared, policy, submission, row)
    job = queue.job()
    if not policy.needs_predictions:
        return explain(policy, job, seen=(queue.sentence(job),))
    seen, basis = _seen(prepared, submission, row), PAST
    if not submission.is_trained:
        basis = REQUEST
    elif seen is None or not seen.ended:
        basis = OTHERS
    places = [queue.sentence(job)]
    if submission.is_trained and not queue.is_alone:
        places.append(queue.place_without(job))
    untrained = () if submission.is_trained else ("Too few jobs had ended in the log for a model to be trained.",)
    return explain_predicted(policy, job, seen, basis=basis, more=(*untrained, *places))


def _row_of(workload: Workload, job_id: int) -> int:
    rows = np.flatnonzero(workload.job_id == job_id)
    if not len(rows):
        ids = workload.job_id
        known = f"its {len(ids):,} jobs have numbers from {ids.min()} to {ids.max()}" if len(ids) else "it has no job"
        raise UsageError(
            f"{workload.name}: has no job {job_id}, or it was left out when the log was cleaned (policyfactory "
            f"workload clean says why); {known}"
        )
    return int(rows[0])


def _seen(prepared: Prepared, submission: Submission, row: int) -> UserSeen | None:
    """Return what was known of the user when the job was described; None if it has none."""
    past, user = submission.past, submission.past.user[row]
    if user < 0:
        return None
    ended, waiting, running = (int(submission.features[NAMES.index(name)]) for name in ("ended", "waiting", "running"))
    requests = requests_of(prepared.workload)
    jobs: list[PastJob] = []
    other, newer = int(past.by_user[user, ENDED_LAST]), int(past.by_user[user, ENDED]) - ended
    while other >= 0 and len(jobs) < _LOOKED_AT:
        # What was started and over in the very pass of the submission was not known before.
        if newer > 0:
            newer -= 1
        else:
            processors = float(prepared.workload.processors[other])
            jobs.append(PastJob(float(requests[other]), processors, float(np.exp(past.outcome[other, LN_RUN]))))
        other = int(past.before[other])
    return UserSeen(ended, tuple(jobs), waiting, running)


class _Queue:
    """The jobs that wait at the instant of a submission, before the scheduling pass."""

    def __init__(self, prepared: Prepared, policy: Policy, submission: Submission, row: int) -> None:
        jobs, now = prepared.workload, prepared.workload.submit[row]
        self._policy, self._machine = policy, jobs.machine
        # Predictions stand in for those that are made in a run; what is asked for is r alone.
        r = dataclasses.replace(prepared, predictions=submission.predictions).formula(policy).r
        started_before = (submission.start >= 0) & (submission.start < now)
        self._rows: Int64Array = np.flatnonzero((jobs.submit <= now) & ~started_before)
        runs = started_before & (submission.start + prepared.run_time > now)
        rows = self._rows
        self._here = int(np.flatnonzero(rows == row)[0])
        self._free = float(jobs.machine - jobs.processors[runs].sum())
        self._waited: FloatArray = (now - jobs.submit[rows]) / jobs.ticks
        self._p: FloatArray = prepared.estimate[rows] / jobs.ticks
        self._q: FloatArray = jobs.processors[rows].astype(np.float64)
        self._r: FloatArray = r[rows] - (r[rows].min() if policy.epoch.rule == "oldest-waiting" else 0.0)
        self._predictions: FloatArray = submission.predictions[:, rows]
        asked = asked_of(jobs, policy)
        self._asked = None if asked is None else asked[:, rows]
        self._overdue = now - jobs.submit[rows] > prepared.threshold(policy)
        self._started = bool(submission.start[row] == now)

    @property
    def is_alone(self) -> bool:
        """Whether no other job waits."""
        return len(self._rows) == 1

    def job(self) -> Job:
        """Return the job as the policy sees it."""
        here = self._here
        values: dict[str, Any] = {
            "p": self._p[here],
            "q": self._q[here],
            "r": self._r[here],
            "w": 0.0,
            "m": self._machine,
            "f": self._free,
            **dict(zip(PREDICTIONS, self._predictions[:, here], strict=True)),
            **({} if self._asked is None else dict(zip(ASKED, self._asked[:, here], strict=True))),
        }
        given = frozenset({"p", "q"} | set(self._policy.variables))
        return Job(**{name: float(value) for name, value in values.items()}, given=given)

    def sentence(self, job: Job) -> str:
        """Say how many jobs are ahead of it, and whether it is started at once."""
        others, ahead = len(self._rows) - 1, self._ahead(job)
        if self.is_alone:
            where = "No other job waited when it was submitted"
        else:
            where = f"{counted(others, 'other job')} waited when it was submitted, {ahead:,} of them ahead of it"
        return f"{where}; it {'was started at once' if self._started else 'had to wait'}."

    def place_without(self, job: Job) -> str:
        """Say how many would be ahead of it if it alone were not predicted."""
        ahead = self._ahead(by_request_alone(job))
        return f"By its request alone, all others as they are, {counted(ahead, 'job')} would be ahead of it."

    def _ahead(self, job: Job) -> int:
        predictions, here = self._predictions.copy(), self._here
        predictions[:, here] = [getattr(job, name) for name in PREDICTIONS]
        given = predictions if self._policy.needs_predictions else None
        with np.errstate(all="ignore"):
            scores = self._policy.scores(
                self._p,
                self._q,
                self._r,
                self._waited,
                self._machine,
                self._free,
                predictions=given,
                asked=self._asked,
            )
        # Rows are in submit order, which decides between equal scores; a job without a value goes last.
        keys = np.where(np.isnan(scores), np.inf, scores)
        first = self._overdue | (keys < keys[here]) | ((keys == keys[here]) & (np.arange(len(keys)) < here))
        first[here] = False
        return int(first.sum())


# Jobs as they wait in the queues of a schedule. -----------------------------------------------------------------------

_INSTANTS = 200
_EACH = 5  # jobs of one queue


def explain_network(
    policy: PolicyLike,
    workload: Workload | Path | str | None = None,
    *,
    estimate_missing: str = "error",
    processors: int | None = None,
) -> NetworkEffects:
    """Return what each input of a network does to the scores of jobs; `draw_effects` draws it.

    Parameters
    ----------
    policy : Policy, or a network file
        The network.
    workload : Workload, or path of a log, optional
        Over the jobs that wait when the network orders this log; without it over jobs of all sizes.
    estimate_missing, processors
        As for `policyfactory.workload.clean.read`, of a log that is read.

    Raises
    ------
    UsageError
        If the policy is no network, or there are no jobs.
    """
    policy = resolve(policy)
    if policy.network is None:
        raise UsageError(
            f"policy {policy.name} is no network; explain a job's score: policyfactory policy explain --job"
        )
    if workload is None:
        return network_effects(policy.network)
    if not isinstance(workload, Workload):
        workload = read(workload, processors=processors, estimate_missing=estimate_missing)
    return network_effects(policy.network, queued_jobs(simulate(workload, policy)))


def queued_jobs(schedule: Schedule, *, instants: int = _INSTANTS, each: int = _EACH) -> JobSample:
    """Return jobs that wait when others start, the same number of each queue, evenly over the schedule.

    Parameters
    ----------
    schedule : Schedule
        Of a log, under the policy in question or another.
    instants : int
        At most so many starts of jobs are looked at.
    each : int
        At most so many jobs of each queue.
    """
    workload, start, end = schedule.workload, schedule.start, schedule.end
    ticks, machine = workload.ticks, workload.machine
    times = np.unique(start)
    times = times[np.linspace(0, len(times) - 1, min(instants, len(times))).astype(np.intp)] if len(times) else times
    rows: list[int] = []
    waited: list[float] = []
    free: list[float] = []
    for now in times:
        queue = np.flatnonzero((workload.submit <= now) & (start >= now))
        held = int(workload.processors[(start < now) & (end > now)].sum())
        some = queue[np.linspace(0, len(queue) - 1, min(each, len(queue))).astype(np.intp)]
        rows.extend(some.tolist())
        waited.extend(((now - workload.submit[some]) / ticks).tolist())
        free.extend([float(machine - held)] * len(some))
    p, q = (column[rows].astype(np.float64) for column in (workload.requested_time / ticks, workload.processors))
    about = f"{len(rows):,} waiting jobs of {workload.name} under {schedule.policy_name}"
    return JobSample(p, q, np.array(waited), np.array(free), float(machine), about)
