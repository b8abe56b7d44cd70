"""The sum of weighted factors that Slurm's priority/multifactor computes: as configuration, as numbers, as a formula.

What of it depends on the job alone (Slurm 22.05.8, seen): the age factor, min(age, PriorityMaxAge)/PriorityMaxAge;
the processors, times any number, with the flag NO_NORMAL_TRES; and, with SMALL_RELATIVE_TO_TIME, the size factor, the
larger of the job's processors and those of its nodes, over its minutes and over the processors of the cluster.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.units import DAY
from policyfactory.export.queue import UNLIMITED_S
from policyfactory.policy.nodes import format_number

__all__ = ["LONGEST_AGE", "TERMS", "Machine", "Weights", "make_weights", "terms"]

# PriorityMaxAge, s. Jobs that have waited longer are alike to the age factor.
LONGEST_AGE = 28 * DAY
# What the priority is a sum of multiples of.
TERMS = ("age", "processors", "size")
_LARGEST_SUM = 2_000_000_000
_LARGEST_PRIORITY = 2**32 - 1
# The sum must be above 0, where a job would be held; some room is left for a site's own factors below it.
_LEAST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """What the factors depend on beside the job.

    Parameters
    ----------
    processors : int
        Of the cluster.
    nodes : int or None
        Of the cluster; without it the size factor is not used.
    """

    processors: int
    nodes: int | None = None

    @property
    def per_node(self) -> float:
        """Processors of a node, the mean; Slurm counts no job as smaller in the size factor."""
        return self.processors / self.nodes if self.nodes else 1.0


def terms(p: FloatArray, q: FloatArray, w: FloatArray, machine: Machine) -> FloatArray:
    """Return age (s), processors and size (1) of every job, as Slurm has them.

    Parameters
    ----------
    p, q, w : float64 array (n,)
        Requested time (s), processors, time since the submission (s).
    machine : Machine

    Returns
    -------
    float64 array (n, 3)
        In the order of `TERMS`.
    """
    minutes = np.where(p >= UNLIMITED_S, np.inf, np.maximum(np.ceil(p / 60.0), 1.0))
    size = np.maximum(q, machine.per_node) / minutes / machine.processors
    return np.column_stack([np.clip(w, 0.0, LONGEST_AGE), q, np.clip(size, 0.0, 1.0)])


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """A configuration of priority/multifactor.

    Parameters
    ----------
    base : int
        PriorityWeightPartition: the same for all jobs.
    age : int
        PriorityWeightAge: what a job has gained after `LONGEST_AGE`.
    processor : float
        What each processor counts, of any sign, with at most six decimals.
    size : int
        PriorityWeightJobSize; negative: with PriorityFavorSmall, which counts 1 less the factor.
    machine : Machine
    """

    base: int
    age: int
    processor: float
    size: int
    machine: Machine

    def priorities(self, p: FloatArray, q: FloatArray, w: FloatArray) -> FloatArray:
        """Return the whole number by which Slurm sorts each job, 1 to 2**32 - 1, HIGHER first."""
        age, processors, size = terms(p, q, w, self.machine).T
        if self.size < 0:
            size = 1.0 - size
        sums = self.base + self.age * age / LONGEST_AGE + self.processor * processors + abs(self.size) * size
        return np.asarray(np.floor(np.clip(sums, 1.0, _LARGEST_PRIORITY)), dtype=np.float64)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of slurm.conf."""
        flags = ["ACCRUE_ALWAYS", "NO_NORMAL_TRES", *(["SMALL_RELATIVE_TO_TIME"] if self.size else [])]
        return (
            "PriorityType=priority/multifactor",
            f"PriorityFlags={','.join(flags)}",
            f"PriorityWeightPartition={self.base}",
            f"PriorityWeightTRES=CPU={self.processor:.6f}",
            f"PriorityWeightAge={self.age}",
            *([f"PriorityMaxAge={LONGEST_AGE // DAY}-0", "PriorityCalcPeriod=1"] if self.age else []),
            f"PriorityWeightJobSize={abs(self.size)}",
            *(["PriorityFavorSmall=YES" if self.size < 0 else "PriorityFavorSmall=NO"] if self.size else []),
            "PriorityWeightFairshare=0",
            "PriorityWeightQOS=0",
            "PriorityWeightAssoc=0",
        )

    @property
    def formula(self) -> str:
        """A formula that orders jobs as this configuration does, LOWER first, but for what rounding makes equal."""
        parts = [
            (-self.processor, "q"),
            (-self.age / LONGEST_AGE, f"min(w, {LONGEST_AGE})"),
            (-60.0 * self.size / self.machine.processors, f"max(q, {format_number(self.machine.per_node)})/p"),
        ]
        text = ""
        for factor, what in parts:
            if factor:
                sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
                text += f"{sign}{format_number(float(f'{abs(factor):.9g}'))}*{what}"
        return text


def make_weights(gains: tuple[float, float, float], machine: Machine) -> Weights:
    """Return the configuration in which one more second, processor and unit of size count as given.

    They may have any common factor: the sums are spread over whole numbers up to some 2e9.

    Parameters
    ----------
    gains : tuple of float
        In the order of `TERMS`; the first is not negative; one at least is not 0.
    machine : Machine
    """
    reach = np.abs(gains) * (LONGEST_AGE, machine.processors, 1.0)
    age, processor, size = np.asarray(gains, dtype=np.float64) * (_LARGEST_SUM / reach.sum())
    processor = round(float(processor), 6)
    base = _LEAST + max(0, int(np.ceil(-processor * machine.processors)))
    return Weights(base, round(age * LONGEST_AGE), processor, round(size), machine)
