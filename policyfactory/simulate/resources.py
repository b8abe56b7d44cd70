"""Run a policy on a machine of several resources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.core.interruptible import interruptible
from policyfactory.engine.resources_easy import resources_easy
from policyfactory.engine.resources_plan import resources_conservative
from policyfactory.engine.resources_timed import resources_timed
from policyfactory.policy.policy import Policy
from policyfactory.simulate.prepare import Prepared

__all__ = ["run_on"]


def run_on(prepared: Prepared, policy: Policy) -> tuple[Int64Array, NDArray[np.bool_], NDArray[np.int32]]:
    """Run a policy on a machine of several resources; return start, backfilled, and the nodes of all jobs.

    All are in the order of ``prepared``.

    Raises
    ------
    UsageError
        If the policy, or the order for backfilling, reads predictions.
    """
    demanded, own = prepared.demanded, prepared.own_order(policy)
    if demanded is None:
        raise UsageError("the jobs were prepared without a machine; give prepare one")
    for one in (policy, own):
        if one is not None and one.needs_predictions and prepared.predictions is None:
            raise UsageError(
                f"{one.name} reads predictions, which are made for processors only; leave out the machine, or choose "
                "another policy"
            )
    demand, machine = demanded.engine()
    processors, order = demanded.processors, prepared.order(policy)
    processors.flags.writeable = False
    if not len(prepared):
        jobs = prepared.columns()
    elif prepared.rules.backfill == "conservative":
        scored = prepared.columns()
        jobs = scored._replace(processors=processors)
        formula = prepared.formula(policy)
        interruptible(resources_conservative, jobs, scored, demand, machine, formula, order, demanded.all_processors)
    elif prepared.is_sorted(policy):
        jobs = prepared.sorted_jobs(policy)._replace(processors=processors)
        interruptible(resources_easy, jobs, demand, machine, order, demanded.all_processors)
    else:
        scored = prepared.columns()
        jobs = scored._replace(processors=processors)
        formulas = prepared.formulas(policy)
        interruptible(resources_timed, jobs, scored, demand, machine, *formulas, order, demanded.all_processors)
    return jobs.start, jobs.backfilled, machine.nodes.placed
