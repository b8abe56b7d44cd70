"""Why a job that was predicted stands where it stands: what its user's past shows, and what that does to its score."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable

from policyfactory.core.errors import UsageError
from policyfactory.core.text import HOUR, format_duration
from policyfactory.policy.explain import PAST, Explanation, Job, explain, score_of
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.prediction.features import TAU_S
from policyfactory.prediction.history import Asked, History, features_from, predictions_from
from policyfactory.prediction.training import Forests, PastJob, UserSeen, sentences

_STALE_S = 6 * HOUR  # of an export, by default

# What a job is predicted by, as `policyfactory.policy.explain.explain` begins its sentences.
REQUEST = "By its request alone"
OTHERS = "By its request and by jobs of others"


@dataclasses.dataclass(frozen=True, slots=True)
class Submitter:
    """Who is about to submit jobs, and what predicts them.

    Parameters
    ----------
    past : tuple of History and function, or None
        As of `policyfactory.prediction.history_file.open_history`.
    forests : Forests
        A trained model.
    when : datetime
        Of the submission, on the clock of the site.
    user, group : int or None
        Numbers of user and Unix group; None if they are not known.
    """

    past: tuple[History, Callable[[str], str]] | None
    forests: Forests
    when: dt.datetime
    user: int | None = None
    group: int | None = None


def by_request_alone(job: Job) -> Job:
    """Return the job as it counts where nothing is predicted: its request stands for the run time."""
    return _with(job, [job.p, TAU_S / max(job.p, TAU_S), job.p, 0.0, 0.0])


def _with(job: Job, predictions: list[float], given: frozenset[str] = frozenset()) -> Job:
    return dataclasses.replace(job, **dict(zip(PREDICTIONS, predictions, strict=True)), given=job.given | given)


def explain_predicted(
    policy: Policy, job: Job, seen: UserSeen | None, *, basis: str = PAST, more: tuple[str, ...] = ()
) -> Explanation:
    """Return the explanation of a job's score with what is known of its user.

    Parameters
    ----------
    policy : Policy
        It reads predictions.
    job : Job
        With p, q and its predictions.
    seen : UserSeen or None
        What is known of its user; None: the user is not known.
    basis : str
        What it was predicted by: of a user's past, `OTHERS`, or `REQUEST`, where nothing is predicted.
    more : tuple of str
        Further sentences.

    Raises
    ------
    UsageError
        If the policy reads no predictions, or something that the job does not give.
    """
    if not policy.needs_predictions:
        raise UsageError(f"policy {policy.name} reads no predictions: no user's past moves a job; name another")
    words = list(sentences(seen, job.p, job.q))
    if {"user_waiting", "user_running"} <= policy.variables:
        words = words[:1]  # the rest is said of the predictions
    if basis == REQUEST:
        words.append("The request is taken for the run time.")
    plain = explain(policy, job, basis=basis, seen=(*words, *more))
    return plain if basis == REQUEST else dataclasses.replace(plain, changes=(_moved(plain), *plain.changes))


def explain_submission(policy: Policy, job: Job, submitter: Submitter) -> Explanation:
    """Return the explanation of a job that is about to be submitted, predicted as an export's script does it.

    Without a history, a user, or a job of that user that has ended, the request is taken for the run time.

    Parameters
    ----------
    policy : Policy
        It reads predictions.
    job : Job
        With p, q and what else the policy reads, but predictions.
    submitter : Submitter
        Who submits it.

    Raises
    ------
    UsageError
        If p or q is missing, a prediction is given, or the policy reads none, or e90, for which there is no model.
    InputError
        If what the history has of the user is damaged.
    """
    _check(policy, job, submitter.forests)
    read = policy.variables & frozenset(PREDICTIONS)
    unpredicted = dataclasses.replace(by_request_alone(job), given=job.given | read)
    if submitter.past is None:
        seen = None if submitter.user is None else UserSeen()
        return explain_predicted(policy, unpredicted, seen, basis=REQUEST, more=("There is no history yet.",))
    history, hashed = submitter.past
    more = (_age(history, submitter.when),)
    if submitter.user is None:
        return explain_predicted(policy, unpredicted, None, basis=REQUEST, more=more)
    user = history.user(hashed(f"u{submitter.user}"))
    if user is None or not user.ended:
        seen = UserSeen() if user is None else UserSeen(0, (), user.waiting, user.running)
        return explain_predicted(policy, unpredicted, seen, basis=REQUEST, more=more)
    group = -1 if submitter.group is None else submitter.group
    asked = Asked(submitter.user, round(job.p), round(job.q), submitter.when, group)
    predictions = predictions_from(submitter.forests, features_from(history, hashed, asked)).tolist()
    past = tuple(PastJob(job.request, job.processors, max(job.run, 1)) for job in reversed(user.jobs))
    seen = UserSeen(user.ended, past, user.waiting, user.running)
    return explain_predicted(policy, _with(job, predictions, read), seen, more=more)


def _check(policy: Policy, job: Job, forests: Forests) -> None:
    missing = [name for name in ("p", "q") if name not in job.given]
    if missing:
        raise UsageError(f"job '{job.describe()}': lacks {' and '.join(missing)}, from which it is predicted; give it")
    given = [name for name in PREDICTIONS if name in job.given]
    if given:
        raise UsageError(
            f"job '{job.describe()}': {', '.join(given)} is predicted from the history; leave one of the two out"
        )
    if "e90" in policy.variables and not len(forests.tail.roots):
        raise UsageError(
            f"policy {policy.name} reads e90, for which the model that is given has no trees; give another"
        )


def _age(history: History, when: dt.datetime) -> str:
    age = when.timestamp() - history.instant
    if age < 0:
        return "The history is of a later time."
    words = f"The history was brought up to date {format_duration(round(age))} before"
    return f"{words}; a script takes the request where it is older than its --stale." if age > _STALE_S else f"{words}."


def _moved(explanation: Explanation) -> str:
    """Say what the predictions do to the score."""
    without = score_of(explanation.policy, by_request_alone(explanation.job))
    if explanation.score == without:
        return f"The predictions do not move it: by its request alone its score would be {without:.6g}, too."
    where = "forward" if explanation.score < without else "back"
    return (
        f"By its request alone its score would be {without:.6g}; the predictions make it {explanation.score:.6g} and "
        f"so bring it {where}."
    )
