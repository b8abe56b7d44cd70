"""What competes: a policy, or a tuner that chooses among policies as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from policyfactory.core.errors import UsageError
from policyfactory.policy.policy import Policy
from policyfactory.simulate.cases import Case
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.simulate import simulated
from policyfactory.tuning.tuner import Tuner
from policyfactory.workload.jobs import Workload

__all__ = ["Contender", "check_contenders", "run_contender"]

Contender: TypeAlias = "Policy | Tuner"


def check_contenders(contenders: Sequence[Contender]) -> None:
    """Refuse no contender, and two of one name.

    Raises
    ------
    UsageError
        If there is none, or two names differ in nothing but upper and lower case.
    """
    if not contenders:
        raise UsageError("no policy was named; give for example --policies FCFS,SPF,SAF")
    seen: set[str] = set()
    for contender in contenders:
        if contender.name.casefold() in seen:
            raise UsageError(
                f"two policies are called {contender.name}; leave one out, or give one another name (the key name of "
                "its model file)"
            )
        seen.add(contender.name.casefold())


def run_contender(
    contender: Contender, case: Case, workload: Workload, rules: Rules, scratch: dict[Any, Any]
) -> Schedule:
    """Return the schedule of one case under one contender.

    Parameters
    ----------
    contender : Policy or Tuner
        What orders the queue.
    case : Case
        What is simulated; its rules, if it has any, come before ``rules``.
    workload : Workload
        Its jobs, as ``case.make()`` returns them.
    rules : Rules
        The rules of the experiment.
    scratch : dict
        Shared by the tuners of the case, which run one after the other: what one computed, the others reuse.
    """
    own = case.rules or rules
    if isinstance(contender, Policy):
        # A log may have predictions, and one of its experiments decide by something else.
        prediction = case.prediction if own.decide_by == "prediction" else None
        return simulated(workload, contender, own, prediction)
    return contender.run(workload, own, seed=case.seed, number=case.number, scratch=scratch)
