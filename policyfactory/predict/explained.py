"""Why a job that was predicted stands where it stands: what its user's past shows, and what that does to its score."""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError
from policyfactory.policy.explain import PAST, Explanation, Job, explain, score_of
from policyfactory.policy.nodes import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.predict.features import TAU_S
from policyfactory.predict.seen import UserSeen, sentences

__all__ = ["OTHERS", "REQUEST", "by_request_alone", "explain_predicted"]

# What a job is predicted by, as `policyfactory.policy.explain.explain` begins its sentences.
REQUEST = "By its request alone"
OTHERS = "By its request and by jobs of others"


def by_request_alone(job: Job) -> Job:
    """Return the job as it counts where nothing is predicted: its request stands for the run time."""
    predictions = (job.p, TAU_S / max(job.p, TAU_S), job.p, 0.0, 0.0)
    return dataclasses.replace(
        job, **dict(zip(PREDICTIONS, predictions, strict=True)), given=job.given | set(PREDICTIONS)
    )


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
        raise UsageError(f"policy {policy.name} reads no predictions, so that a user's past does not move a job")
    words = list(sentences(seen, job.p, job.q))
    if {"user_waiting", "user_running"} <= policy.variables:
        words = words[:1]  # the rest is said of the predictions
    if basis == REQUEST:
        words.append("The request is taken for the run time.")
    made = explain(policy, job, basis=basis, seen=(*words, *more))
    return made if basis == REQUEST else dataclasses.replace(made, changes=(_moved(made), *made.changes))


def _moved(made: Explanation) -> str:
    """Say what the predictions do to the score."""
    without = score_of(made.policy, by_request_alone(made.job))
    if made.score == without:
        return f"The predictions do not move it: by its request alone its score would be {without:.6g}, too."
    where = "forward" if made.score < without else "back"
    return (
        f"By its request alone its score would be {without:.6g}; the predictions make it {made.score:.6g} and so bring "
        f"it {where}."
    )
