"""A stretch of two schedules of the same jobs, and its picture: what runs when, on which processors, who waits more."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.core.units import DAY, HOUR
from policyfactory.engine.binned import binned_integral
from policyfactory.simulate.schedule import Rectangles, draw_rectangles, rectangles_of
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.schedule import Schedule

__all__ = [
    "Colouring",
    "Excerpt",
    "KeptSchedule",
    "Why",
    "busiest",
    "draw_gantt",
    "ends_of",
    "excerpt_of",
    "keep",
    "worst",
]

Why = Literal["busiest", "worst", "first"]

_STEPS = 8  # places of the busiest stretch that are tried, in each of its lengths


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class KeptSchedule:
    """One schedule in a few bytes a job.

    Parameters
    ----------
    jobs : Workload
        Its jobs; the policies of a case share them.
    start : int64 array (n,), ticks
        Start of each job.
    end : int64 array (n,), ticks, or None
        Its end; None where each job ran for its run time.
    backfilled : uint8 array
        Bits (`numpy.packbits`): whether it was backfilled.
    """

    jobs: Workload
    start: Int64Array
    end: Int64Array | None
    backfilled: NDArray[np.uint8]


def keep(schedule: Schedule) -> KeptSchedule:
    """Return what is kept of a schedule."""
    as_run = bool((schedule.end - schedule.start == schedule.workload.run_time).all())
    end = None if as_run else schedule.end.copy()
    return KeptSchedule(schedule.workload, schedule.start.copy(), end, np.packbits(schedule.backfilled))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A stretch of one or two schedules of one case.

    Parameters
    ----------
    policies : tuple of str
        One or two.
    jobs : Workload
        All jobs of the case.
    first, last : int, ticks
        The stretch.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    waits : list of float64 array (n,), s
        Wait of every job under each policy.
    backfilled : list of bool array (n,)
        Whether it was backfilled.
    drawn : list of Rectangles
        What runs in the stretch, under each policy.
    """

    policies: tuple[str, ...]
    jobs: Workload
    first: int
    last: int
    why: Why
    waits: list[FloatArray]
    backfilled: list[NDArray[np.bool_]]
    drawn: list[Rectangles]

    @property
    def change(self) -> FloatArray:
        """Wait of every job under the second policy minus that under the first, in s."""
        return self.waits[-1] - self.waits[0]

    @property
    def shown(self) -> Int64Array:
        """Rows of the jobs that run in the stretch under either policy."""
        return np.unique(np.concatenate([rectangles.row for rectangles in self.drawn]))

    @property
    def loser(self) -> int | None:
        """Row of the job of the stretch that loses most under the second policy; None if none does."""
        rows = self.shown
        if len(self.policies) < 2 or not len(rows) or self.change[rows].max() <= 0:
            return None
        return int(rows[np.argmax(self.change[rows])])

    def utilisation(self, k: int) -> float:
        """Return the share of the machine in use under policy k, in %."""
        return 100.0 * float(self.drawn[k].area.sum()) / (float(self.last - self.first) * self.jobs.machine)

    def moved(self, most: int) -> list[int]:
        """Return the rows of the jobs of the stretch that lose most, then of those that gain most."""
        rows = self.shown
        order = rows[np.argsort(-self.change[rows], kind="stable")]
        up = [int(row) for row in order[:most] if self.change[row] > 0]
        down = [int(row) for row in order[::-1][:most] if self.change[row] < 0]
        return up + down


def busiest(kept: KeptSchedule, length: int) -> tuple[int, int]:
    """Return the stretch of ``length`` ticks with the largest backlog; where nothing waits, with most work.

    Parameters
    ----------
    kept : KeptSchedule
        The schedule.
    length : int
        Ticks, at least 1.
    """
    jobs = kept.jobs
    origin, end = int(jobs.submit[0]), ends_of(kept)
    span = max(int(end.max()) - origin, 1)
    if span <= length:
        return origin, origin + length
    width = max(length // _STEPS, 1, span // 100_000)
    grid = (origin, width, span // width + 1)
    amount = binned_integral(jobs.submit, kept.start, jobs.processors, *grid)
    if not amount.any():
        amount = binned_integral(kept.start, end, jobs.processors, *grid)
    together = np.convolve(amount, np.ones(max(length // width, 1)), "valid")
    begin = origin + width * int(np.argmax(together))
    return begin, begin + length


def worst(kept: Sequence[KeptSchedule], length: int) -> tuple[int, int]:
    """Return the wait of the job that loses most under the second policy, with a margin; at least ``length`` ticks.

    Parameters
    ----------
    kept : sequence of KeptSchedule
        The two schedules.
    length : int
        Ticks, at least 1.
    """
    job = int(np.argmax(kept[1].start - kept[0].start))
    begin, end = int(kept[0].start[job]), int(ends_of(kept[1])[job])
    margin = max((end - begin) // 20, (length - (end - begin) + 1) // 2)
    begin = max(begin - margin, int(kept[0].jobs.submit[0]))
    return begin, max(end + margin, begin + length)


def ends_of(kept: KeptSchedule) -> Int64Array:
    """Return when each job ends, in ticks."""
    return kept.start + kept.jobs.run_time if kept.end is None else kept.end


def excerpt_of(policies: tuple[str, ...], kept: Sequence[KeptSchedule], stretch: tuple[int, int], why: Why) -> Excerpt:
    """Return the stretch of the schedules.

    Parameters
    ----------
    policies : tuple of str
        Their names.
    kept : sequence of KeptSchedule
        One schedule a policy.
    stretch : tuple of int, ticks
        From when to when.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    """
    jobs = kept[0].jobs
    return Excerpt(
        policies,
        jobs,
        *stretch,
        why,
        [(one.start - jobs.submit) / jobs.ticks for one in kept],
        [np.unpackbits(one.backfilled, count=len(jobs)).astype(np.bool_) for one in kept],
        [rectangles_of(jobs, one.start, ends_of(one), stretch) for one in kept],
    )


# The picture. ---------------------------------------------------------------------------------------------------------


Colouring = Literal["wait", "user"]
_LESS, _MORE, _SAME = COLOURS[5], COLOURS[4], "#c8c8c8"
_USERS = COLOURS[:7]


def draw_gantt(excerpt: Excerpt, colour: Colouring, most: int) -> Figure:
    """Draw a stretch of one or two schedules.

    Parameters
    ----------
    excerpt : Excerpt
        The stretch.
    colour : {"wait", "user"}
        What the colours mean; of one policy alone it is the users.
    most : int
        Rectangles in all; the largest are drawn.

    Returns
    -------
    Figure
    """
    count = len(excerpt.policies)
    figure = new_figure(7.0, 0.8 + 3.0 * count)
    panels = figure.subplots(count, 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    if count == 1:
        colour = "user"
    users = _largest_users(excerpt)
    for k, axes in enumerate(panels):
        drawn = excerpt.drawn[k].largest(max(1, most // count))
        kinds = _by_wait(excerpt, k, drawn) if colour == "wait" else _by_user(excerpt, users, drawn)
        _chart(axes, excerpt, k, drawn, kinds)
    panels[-1].set_xlabel(f"time since the first submission ({_unit(excerpt)[1]})")
    _legend(figure, excerpt, colour, users)
    return figure


def _by_wait(excerpt: Excerpt, k: int, drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return which rectangles have which colour: the job waits less, more or as long as under the other policy."""
    own = (excerpt.change if k else -excerpt.change)[drawn.row]
    return [(_SAME, own == 0), (_LESS, own < 0), (_MORE, own > 0)]


def _largest_users(excerpt: Excerpt) -> Int64Array:
    """Return the known users with most work in the stretch, under all policies together."""
    rows = np.concatenate([rectangles.row for rectangles in excerpt.drawn])
    area = np.concatenate([rectangles.area for rectangles in excerpt.drawn])
    user, code = np.unique(excerpt.jobs.user[rows], return_inverse=True)
    work = np.bincount(code, area, len(user))
    order = [at for at in np.argsort(-work, kind="stable") if user[at] >= 0]
    return user[order[: len(_USERS)]]


def _by_user(excerpt: Excerpt, users: Int64Array, drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    own = excerpt.jobs.user[drawn.row]
    named = [(colour, own == user) for colour, user in zip(_USERS, users, strict=False)]
    return [(_SAME, ~np.isin(own, users)), *named]


def _chart(axes: Any, excerpt: Excerpt, k: int, drawn: Rectangles, kinds: list[tuple[str, NDArray[np.bool_]]]) -> None:
    scale, _ = _unit(excerpt)
    origin = int(excerpt.jobs.submit[0])
    times = ((drawn.begin - origin) / scale, (drawn.end - origin) / scale)
    corners = [*times, drawn.low.astype(np.float64), drawn.high.astype(np.float64) + 1.0]
    backfilled = excerpt.backfilled[k][drawn.row]
    for colour, mask in kinds:
        for chosen, hatch in ((mask & ~backfilled, ""), (mask & backfilled, "/////")):
            draw_rectangles(axes, [side[chosen] for side in corners], colour, hatch)
    axes.set_xlim((excerpt.first - origin) / scale, (excerpt.last - origin) / scale)
    axes.set_ylim(0, excerpt.jobs.machine)
    if excerpt.loser is not None:
        own = drawn.row == excerpt.loser
        _outline(axes, [side[own] for side in corners], f"job {excerpt.jobs.job_id[excerpt.loser]}")
    axes.set_ylabel("processor")
    name = shortened(excerpt.policies[k], 40)
    axes.set_title(f"{name}: {excerpt.utilisation(k):.0f} % in use", loc="left", fontsize=10)
    axes.grid(visible=False)


def _unit(excerpt: Excerpt) -> tuple[float, str]:
    """Return the ticks of the unit in which time is shown, and its name."""
    seconds = (excerpt.last - excerpt.first) / excerpt.jobs.ticks
    length, name = (DAY, "d") if seconds >= 2 * DAY else (HOUR, "h") if seconds >= 2 * HOUR else (60, "min")
    return float(excerpt.jobs.ticks * length), name


def _outline(axes: Any, corners: list[FloatArray], name: str) -> None:
    from matplotlib.patches import Rectangle

    for left, right, low, high in zip(*corners, strict=True):
        axes.add_patch(
            Rectangle((left, low), right - left, high - low, fill=False, edgecolor="black", linewidth=1.6, zorder=5)
        )
    if len(corners[0]):
        at = int(np.argmax((corners[1] - corners[0]) * (corners[3] - corners[2])))
        left, right, low, high = (side[at] for side in corners)
        first, last = axes.get_xlim()
        # Beside a narrow rectangle there is room on one side at least.
        narrow = right - left < 0.12 * (last - first)
        leftwards = (left + right) / 2 > (first + last) / 2
        x, align = (
            (left, "right") if narrow and leftwards else (right, "left") if narrow else ((left + right) / 2, "center")
        )
        axes.text(
            x, (low + high) / 2, name, ha=align, va="center", fontsize=8, zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
        )  # fmt: skip


def _legend(figure: Figure, excerpt: Excerpt, colour: Colouring, users: Int64Array) -> None:
    from matplotlib.patches import Patch

    if colour == "wait":
        named = [(_LESS, "waits less than under the other"), (_MORE, "waits more"), (_SAME, "as long")]
    else:
        named = [(own, f"user {user}") for own, user in zip(_USERS, users, strict=False)]
        named.append((_SAME, "others"))
    handles = [Patch(facecolor=own, edgecolor="white", label=label) for own, label in named]
    if any(own.any() for own in excerpt.backfilled):
        handles.append(Patch(facecolor="#888888", edgecolor="white", hatch="/////", label="backfilled"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8.5)
