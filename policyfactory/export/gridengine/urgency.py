"""Formulas that Grid Engine computes itself, from the urgencies of resources and the weight of the waiting time."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.export.expressible import linear_coefficients
from policyfactory.export.queue import Queue
from policyfactory.policy.policy import Policy

__all__ = ["Urgencies", "urgencies"]

# qconf keeps six decimals of weight_waiting_time: the smallest factor is brought above this, for nine digits of it.
_LEAST = 1000.0


@dataclasses.dataclass(frozen=True, slots=True)
class Urgencies:
    """``time * p * q + slots * q + waiting * w``, by which Grid Engine sorts jobs, HIGHER first.

    Parameters
    ----------
    time : float
        Urgency of ``h_rt``; Grid Engine multiplies it by the requested seconds and by the slots.
    slots : float
        Urgency of ``slots``.
    waiting : float
        ``weight_waiting_time``, of each second since the submission.
    """

    time: float
    slots: float
    waiting: float

    def changes(self) -> dict[str, str]:
        """Return what apply.sh sets, by the names that its template has."""
        return {"SLOTS": _plain(self.slots), "H_RT": _plain(self.time), "WAITING": f"{self.waiting:.6f}"}

    def settings(self) -> tuple[str, ...]:
        """Return the lines of the complexes (``qconf -mc``, last column) and of the scheduler (``qconf -msconf``)."""
        changes = self.changes()
        return (
            f"h_rt urgency {changes['H_RT']}",
            f"slots urgency {changes['SLOTS']}",
            f"weight_waiting_time {changes['WAITING']}",
            "weight_urgency 1",
            "weight_ticket 0",
            "weight_priority 0",
        )

    def priorities(self, queue: Queue) -> NDArray[np.float64]:
        """Return what Grid Engine shows as urgency (``qstat -urg``); HIGHER runs first."""
        p, q, waited = (np.asarray(a, dtype=np.float64) for a in (queue.p, queue.q, queue.now - queue.submit))
        return self.time * p * q + self.slots * q + self.waiting * waited


def urgencies(policy: Policy) -> Urgencies | None:
    """Return the urgencies that sort jobs as the policy does; None where there are none.

    There are for a sum of constants times ``p*q``, ``q``, ``r`` and ``w``. ``r`` is now minus the time waited, and now
    is the same for all jobs; so the epoch does not matter, whatever its rule.

    Parameters
    ----------
    policy : Policy
    """
    terms = linear_coefficients(policy.expression, ("pq", "q", "r", "w"))
    if terms is None:
        return None
    # Lower scores run first, higher urgencies do. (0.0 - x has no negative zero.)
    factors = (0.0 - terms["pq"], 0.0 - terms["q"], terms["r"] - terms["w"])
    sizes = [abs(factor) for factor in factors if factor]
    if not sizes or not all(map(math.isfinite, sizes)):
        return None
    factor = 10.0 ** max(0, math.ceil(math.log10(_LEAST / min(sizes))))
    if not max(sizes) * factor < 1e100:
        return None
    return Urgencies(*(part * factor for part in factors))


def _plain(value: float) -> str:
    """Return a number as Grid Engine reads it."""
    return f"{value:.17g}"
