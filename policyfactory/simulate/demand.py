"""What the jobs of a workload ask of a machine: in the engine's arrays, and what they held in the end."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.engine import placement, resources
from policyfactory.simulate.machine import Machine
from policyfactory.workload.assume import how_to_assume
from policyfactory.workload.requests import Requests

if TYPE_CHECKING:
    from policyfactory.simulate.rules import Rules
    from policyfactory.workload.jobs import Workload

__all__ = ["Demanded", "Held", "check_rules", "demand_of"]

_NAMES = ("processors", "memory", "gpus")
_WORDS = ("processors", "MB of memory", "GPUs")
_BITS = 63


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What each job of a schedule held while it ran.

    Parameters
    ----------
    names : tuple of str
        Of the resources: "processors", "memory" (MB), "gpus", and those of the licences.
    capacity : int64 array (R,)
        What the machine has of each.
    amount : int64 array (n, R)
        What each job held; of whole nodes all that they have.
    placed : int32 array
        The nodes of all jobs, by their places in the order in which nodes are taken.
    first, count : int64 array (n,)
        Where in it those of each job begin, and how many they are; 0 in a pool.
    """

    names: tuple[str, ...]
    capacity: Int64Array
    amount: Int64Array
    placed: NDArray[np.int32]
    first: Int64Array
    count: Int64Array

    def nodes(self, row: int) -> list[int]:
        """Return on which nodes the job of a row ran."""
        first = int(self.first[row])
        return [int(node) for node in self.placed[first : first + int(self.count[row])]]

    def select(self, rows: Any) -> Held:
        """Return what some jobs held: a slice or indices."""
        return dataclasses.replace(self, amount=self.amount[rows], first=self.first[rows], count=self.count[rows])

    def utilisation(self, time: Int64Array, makespan: int) -> dict[str, float]:
        """Return the share of each resource that was held, in %.

        Parameters
        ----------
        time : int64 array (n,), ticks
            How long each job ran.
        makespan : int, ticks
            Over which time.
        """
        work = (time.astype(np.float64)[:, None] * self.amount).sum(axis=0)
        whole = self.capacity.astype(np.float64) * makespan
        shares = np.divide(100.0 * work, whole, out=np.zeros(len(work)), where=whole > 0)
        return dict(zip(self.names, shares.tolist(), strict=True))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Demanded:
    """What the jobs of a workload ask of a machine, in its rows.

    Parameters
    ----------
    machine : Machine
        The machine.
    kinds : tuple of int
        Which columns of ``capacity`` and ``each`` are counted: 0 processors, 1 memory, 2 GPUs.
    capacity : int64 array (N, 3)
        What each node has.
    each : int64 array (n, 3)
        What a job asks for: on each of its nodes, or in all of a pool.
    nodes : int64 array (n,)
        On how many nodes; 0 in a pool.
    whole : bool array (n,)
        Whether it takes them whole.
    """

    machine: Machine
    kinds: tuple[int, ...]
    capacity: Int64Array
    each: Int64Array
    nodes: Int64Array
    whole: NDArray[np.bool_]

    @property
    def processors(self) -> Int64Array:
        """Processors that each job asks for in all, those of its nodes that it cannot use included."""
        return self.each[:, 0] * np.maximum(self.nodes, 1)

    @property
    def first(self) -> Int64Array:
        """Where the nodes of each job begin among those of all."""
        return np.cumsum(self.nodes) - self.nodes

    @property
    def all_processors(self) -> int:
        """Processors of the machine."""
        return int(self.capacity[:, 0].sum())

    def engine(self) -> tuple[resources.Demand, resources.Machine]:
        """Return the jobs' demand and the idle machine as the engine takes them."""
        counted = [licence.asked for licence in self.machine.licences]
        limits = [licence.count for licence in self.machine.licences]
        shifts, guard = np.zeros(3, dtype=np.int64), 0
        pool = self.machine.placement == "pool"
        if pool:
            counted = [*(self.each[:, kind] for kind in self.kinds), *counted]
            limits = [*(int(self.capacity[:, kind].sum()) for kind in self.kinds), *limits]
        else:
            shifts, guard = _fields(self.capacity, self.kinds)
        asked = np.stack(counted, axis=1) if counted else np.zeros((len(self.nodes), 0))
        counters = np.array(limits, dtype=np.int64)
        kinds = list(self.kinds)
        on_each = (self.each[:, kinds] << shifts[kinds]).sum(axis=1)
        capacity = (self.capacity[:, kinds] << shifts[kinds]).sum(axis=1)
        demand = resources.Demand(
            np.ascontiguousarray(asked, dtype=np.int64), self.nodes, on_each, self.whole, self.first
        )
        mask = (1 << max(int(self.capacity[:, 0].max()).bit_length(), 1)) - 1
        nodes = placement.new_nodes(
            capacity[:0] if pool else capacity,
            guard,
            mask,
            int(self.nodes.sum()),
            best_fit=self.machine.placement == "best",
        )
        return demand, resources.Machine(counters, np.zeros_like(counters), nodes)

    def held(self, placed: NDArray[np.int32]) -> Held:
        """Return what each job held in a run, by the nodes that all jobs had."""
        kinds, licences = list(self.kinds), self.machine.licences
        amount = self.each[:, kinds] * np.maximum(self.nodes, 1)[:, None]
        if self.whole.any():
            sums = np.add.reduceat(self.capacity[placed][:, kinds], self.first, axis=0)
            amount = np.where(self.whole[:, None], sums, amount)
        columns = [amount, *(licence.asked[:, None] for licence in licences)]
        limits = [*self.capacity[:, kinds].sum(axis=0).tolist(), *(licence.count for licence in licences)]
        names = (*(_NAMES[kind] for kind in kinds), *(licence.name for licence in licences))
        capacity = np.array(limits, dtype=np.int64)
        return Held(names, capacity, np.concatenate(columns, axis=1), placed, self.first, self.nodes)


def demand_of(workload: Workload, machine: Machine, rows: NDArray[np.intp] | None = None) -> Demanded:
    """Return what the jobs of a workload ask of a machine.

    Of a job on nodes, processors, memory and GPUs are divided evenly, and rounded up.

    Parameters
    ----------
    workload : Workload
        The jobs.
    machine : Machine
        The machine.
    rows : int array (n,), optional
        Which rows of the licences' arrays the jobs are; by default their own.

    Raises
    ------
    UsageError
        If a licence has another number of jobs, or a node has more than can be counted.
    EvaluationError
        If a job does not say what the machine counts, or asks for more than the idle machine has.
    """
    capacity = machine.columns()
    kinds = (0, *(kind for kind in (1, 2) if capacity[:, kind].any()))
    asks = workload.requests or Requests.unknown(len(workload))
    pool = machine.placement == "pool"
    nodes = np.zeros(len(workload), dtype=np.int64) if pool else _known(workload, "n", asks.nodes)
    totals = np.zeros((len(workload), 3), dtype=np.int64)
    totals[:, 0] = workload.processors
    if 1 in kinds:
        totals[:, 1] = _known(workload, "mem", asks.memory)
    if 2 in kinds:
        totals[:, 2] = _known(workload, "g", asks.gpus)
    each = totals if pool else -(-totals // nodes[:, None])
    whole = np.zeros(len(workload), dtype=np.bool_) if pool else (asks.exclusive == 1) | machine.exclusive
    each = _check_pool(workload, each, capacity) if pool else _check_nodes(workload, each, nodes, whole, capacity)
    licences = tuple(
        dataclasses.replace(licence, asked=_licence(workload, licence.asked, licence.name, licence.count, rows))
        for licence in machine.licences
    )
    return Demanded(dataclasses.replace(machine, licences=licences), kinds, capacity, each, nodes, whole)


def check_rules(rules: Rules) -> None:
    """Refuse rules that are for processors only.

    Raises
    ------
    UsageError
        If it is backfilling by Slurm's rules, or another program's rules.
    """
    if rules.backfill == "slurm":
        raise UsageError("backfill slurm has its machine in a site; with a machine choose easy, conservative or none")
    if rules.compatibility != "none":
        raise UsageError(f"the rules of {rules.compatibility} know processors only; leave out the machine, or them")


def _known(workload: Workload, name: str, column: Int64Array) -> Int64Array:
    """Return a column of the requests, which all jobs must have."""
    lacking = column < 0
    if not lacking.any():
        return column
    first = workload.job_id[int(np.argmax(lacking))]
    what = {"n": "on how many nodes they run", "mem": "how much memory they need", "g": "how many GPUs they need"}[name]
    raise EvaluationError(
        f"{workload.name}: {int(lacking.sum()):,} of {len(workload):,} jobs do not say {what} (job {first} is the "
        f"first), which the machine counts; {how_to_assume(name)}"
    )


def _check_pool(workload: Workload, each: Int64Array, capacity: Int64Array) -> Int64Array:
    limits = capacity.sum(axis=0)
    # What no node has is not counted.
    beyond = np.asarray((each > limits) & (limits > 0))
    if beyond.any():
        at = int(np.argmax(beyond.any(axis=1)))
        kind = int(np.argmax(beyond[at]))
        raise _too_much(
            workload, at, int(beyond.any(axis=1).sum()),
            f"{each[at, kind]:,} {_WORDS[kind]}; the machine has {limits[kind]:,}",
        )  # fmt: skip
    return each


def _check_nodes(
    workload: Workload, each: Int64Array, nodes: Int64Array, whole: NDArray[np.bool_], capacity: Int64Array
) -> Int64Array:
    """Refuse jobs that do not fit the idle machine; return ``each``, of jobs on whole nodes what these have at least.

    The nodes on which those fit stay the same, and bounds by their numbers are sharper.
    """
    counted = capacity.any(axis=0)
    fitting = np.zeros(len(workload), dtype=np.int64)
    least = np.full_like(each, np.iinfo(np.int64).max)
    for kind, count in zip(*np.unique(capacity, axis=0, return_counts=True), strict=True):
        fits = ((each <= kind) | ~counted).all(axis=1)
        fitting += count * fits
        least[fits] = np.minimum(least[fits], kind)
    beyond = np.asarray(fitting < nodes)
    if beyond.any():
        at = int(np.argmax(beyond))
        parts = ", ".join(f"{each[at, kind]:,} {_WORDS[kind]}" for kind in np.flatnonzero(counted).tolist())
        raise _too_much(
            workload, at, int(beyond.sum()),
            f"{nodes[at]:,} nodes with {parts} on each; {fitting[at]:,} nodes of the machine have that",
        )  # fmt: skip
    return np.where(whole[:, None], least, each)


def _too_much(workload: Workload, at: int, count: int, what: str) -> EvaluationError:
    return EvaluationError(
        f"{workload.name}: job {workload.job_id[at]} asks for {what} ({count:,} such jobs); leave such jobs out, "
        "or is the log of another machine?"
    )


def _licence(workload: Workload, asked: Int64Array, name: str, count: int, rows: NDArray[np.intp] | None) -> Int64Array:
    column = np.asarray(asked)
    if column.shape != (len(workload),) or column.dtype.kind not in "iu":
        raise UsageError(
            f"licence {name}: an array of shape {column.shape} and type {column.dtype}; give one whole number for each "
            f"of the {len(workload)} jobs"
        )
    column = column.astype(np.int64) if rows is None else column.astype(np.int64)[rows]
    wrong = np.asarray((column < 0) | (column > count))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _too_much(workload, at, int(wrong.sum()), f"{column[at]:,} licences of {name}; there are {count:,}")
    return column


def _fields(capacity: Int64Array, kinds: tuple[int, ...]) -> tuple[Int64Array, int]:
    """Return where the field of each resource begins in a packed integer, and its guard bits."""
    shifts, guard, at = np.zeros(3, dtype=np.int64), 0, 0
    for kind in kinds:
        shifts[kind] = at
        at += max(int(capacity[:, kind].max()).bit_length(), 1)
        guard |= 1 << at
        at += 1
    if at > _BITS:
        most = ", ".join(f"{capacity[:, kind].max():,} {_WORDS[kind]}" for kind in kinds)
        raise UsageError(
            f"nodes with up to {most} cannot be counted in {_BITS} bits; check the numbers (memory is in MB)"
        )
    return shifts, guard
