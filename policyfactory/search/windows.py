"""The windows of a log: early ones to learn from, later ones to choose by, and the latest to judge on.

They are drawn at random places of three parts of the log that follow each other in time and share no job. Those for
judging do not overlap either, since overlapping windows are not independent and would make intervals too narrow.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError
from policyfactory.core.random import generator
from policyfactory.search.options import TrainOptions
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import parse_windows, slices_of

__all__ = ["STEPS", "Windows", "draw_windows"]

STEPS = ("training", "choosing", "judged")
_PURPOSE = 71  # of the random stream; see core.random


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Where the windows begin.

    Parameters
    ----------
    training, choosing, judged : int64 array (k, 2)
        First row of each, and the row after its last, ascending.
    held_out : bool
        Whether the three share no job; they are the same windows otherwise.
    noun : str
        ``windows``, or ``replicas`` of the parts: each then is a row, that of its part.
    """

    training: Int64Array
    choosing: Int64Array
    judged: Int64Array
    held_out: bool
    noun: str = "windows"

    def cut(self, workload: Workload, step: str) -> list[Workload]:
        """Return the windows of a step, each re-based to its first job."""
        return [
            workload.select(slice(first, end), name=f"{workload.name}[{first}:{end}]", rebase=True)
            for first, end in getattr(self, step).tolist()
        ]


def draw_windows(workload: Workload, options: TrainOptions) -> Windows:
    """Return the windows of a log.

    Parameters
    ----------
    workload : Workload
        The jobs, in the order of their submission.
    options : TrainOptions
        How many, how long, and from which parts.

    Raises
    ------
    WorkloadError
        If a window is longer than the part of the log that it is drawn from, or the log has no such windows.
    UsageError
        If given windows cannot be read.
    """
    if options.windows is not None:
        slices = slices_of(parse_windows(options.windows), workload.submit, workload.name, workload.ticks)
        given = np.array(sorted((one.start, one.stop) for one in slices), dtype=np.int64)
        return Windows(given, given, given, held_out=False)
    size, total = options.window_jobs, len(workload)
    edges = np.cumsum([0, *options.parts]) * total // 100
    if options.replicas:
        training, choosing, judged = (np.tile(edges[at : at + 2], (options.replicas, 1)) for at in range(3))
        return Windows(training, choosing, judged, held_out=True, noun="replicas")
    shortest = int(np.diff(edges).min())
    if size > shortest:
        raise WorkloadError(
            f"{workload.name}: windows of {size:,} jobs, and the shortest of the parts to learn from, choose by and "
            f"judge on has {shortest:,} of the log's {total:,} jobs; give a smaller --window-jobs, other --parts or a "
            "longer log"
        )
    counts = (options.training_windows, options.choosing_windows, options.judged_windows)
    drawn = []
    for step, (first, end, count) in enumerate(zip(edges[:-1], edges[1:], counts, strict=True)):
        places = _places(int(first), int(end), size, count, options.seed, step)
        drawn.append(np.stack([places, places + size], axis=1))
    return Windows(drawn[0], drawn[1], drawn[2], held_out=True)


def _places(first: int, end: int, size: int, count: int, seed: int, step: int) -> Int64Array:
    """Return where the windows of a part begin; those to judge on side by side, as many as fit."""
    random = generator(seed, _PURPOSE, step)
    if STEPS[step] != "judged":
        return first + np.sort(random.integers(0, end - first - size + 1, count))
    count = min(count, (end - first) // size)
    # Gaps between windows, drawn uniformly: where they begin if the jobs in them are left out.
    gaps = np.sort(random.integers(0, end - first - count * size + 1, count))
    return first + gaps + np.arange(count, dtype=np.int64) * size
