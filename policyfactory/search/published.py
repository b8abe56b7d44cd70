"""The published policy that a log's own past speaks for: what anybody could run without learning anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, StopCheck, Workers
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Policy
from policyfactory.search.families import REFERENCES
from policyfactory.search.replicated import Replicated

__all__ = ["NAMES", "PUBLISHED", "Best", "best_published"]

# Of the catalogue all that run small or early jobs first.
_POLYNOMIALS, _TRACES = ("LIN", "QDR", "CUB", "QUA"), ("SYNTHETIC", "CTC-SP2", "SDSC-BLUE")
NAMES = (
    *("FCFS", "SPF", "SQF", "SAF", "SRF", "WFP3", "UNICEF", "F1", "F2", "F3", "F4"),
    *(f"{polynomial}-{trace}" for trace in _TRACES for polynomial in _POLYNOMIALS),
)
PUBLISHED: tuple[Policy, ...] = (*(CATALOGUE[name] for name in NAMES), REFERENCES["P*SQRT(Q)"])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best published policy on replicas.

    Parameters
    ----------
    policy : Policy
        It.
    values : float64 array (replicas, len(AIMS))
        Its aims.
    means : dict of str to float
        Of every published policy the mean bounded slowdown, as the geometric mean over the replicas.
    """

    policy: Policy
    values: FloatArray
    means: dict[str, float]


def best_published(
    arena: Replicated,
    workers: Workers | int = 1,
    *,
    among: Sequence[Policy] = PUBLISHED,
    notify: Notify = lambda _: None,
) -> Best:
    """Return the published policy with the least mean logarithm of the mean bounded slowdown over replicas.

    Parameters
    ----------
    arena : Replicated
        The replicas.
    workers : Workers or int
        Who works; a number means so many threads.
    among : sequence of Policy
        The policies; the first of equal ones is taken.
    notify : callable
        Is told when a worker was lost.
    """
    made = dict(results(_values, arena, enumerate(among), workers, notify=notify))
    logs = [float(np.log(made[at][:, 0]).mean()) for at in range(len(among))]
    best = int(np.argmin(logs))
    means = {one.name: float(np.exp(value)) for one, value in zip(among, logs, strict=True)}
    return Best(among[best], made[best], means)


def _values(arena: Replicated, unit: tuple[int, Policy], go_on: StopCheck) -> tuple[int, FloatArray]:
    rows = []
    for at in range(len(arena)):
        go_on()
        rows.append(arena.aims(at, unit[1]))
    return unit[0], np.array(rows)
