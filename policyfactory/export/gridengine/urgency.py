"""Formulas that Grid Engine computes itself, from the urgencies of resources and the weight of the waiting time."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FormulaError
from policyfactory.export.queue import Queue
from policyfactory.policy.multiplied import Term, multiply_out
from policyfactory.policy.policy import Policy

__all__ = ["Urgencies", "urgencies"]

# qconf keeps six decimals of weight_waiting_time: the smallest factor is brought above this, for nine digits of it.
_LEAST = 1000.0
# What a formula may be a sum of: p*q, q, r, w.
_TERMS: tuple[Term, ...] = tuple(tuple((name, Fraction(1)) for name in names) for names in ("pq", "q", "r", "w"))


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
        """Return the new value of every setting that the formula needs, by its name."""
        return {
            "slots": _plain(self.slots),
            "h_rt": _plain(self.time),
            "weight_waiting_time": f"{self.waiting:.6f}",
        }

    def settings(self) -> tuple[str, ...]:
        """Return the lines of the complexes (``qconf -mc``, last column) and of the scheduler (``qconf -msconf``)."""
        return (
            f"h_rt urgency {_plain(self.time)}",
            f"slots urgency {_plain(self.slots)}",
            f"weight_waiting_time {self.waiting:.6f}",
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
    if "m" in policy.variables:
        return None
    try:
        terms = dict(multiply_out(policy.expression).terms)
        product, of_q, of_r, of_w = (float(terms.pop(term, 0)) for term in _TERMS)
    except (FormulaError, OverflowError):
        return None
    if any(terms):
        return None
    # Lower scores run first, higher urgencies do. (0.0 - x has no negative zero.)
    factors = (0.0 - product, 0.0 - of_q, of_r - of_w)
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
