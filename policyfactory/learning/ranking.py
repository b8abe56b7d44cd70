"""Policies on replicas of a part of a log: ratios to the best published one, and which of them is to be taken.

One run of a log decides nothing: formulas that are nearly the same differ by a quarter on it. What is taken has to be
better than the best published policy over the replicas, by an interval, and may not cost more than is allowed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.process import Follower
from policyfactory.core.text import finite, format_duration, number_text
from policyfactory.search.environment.goals import EpisodeLimit
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.compare import Paired, compare_replicas, compare_values

if TYPE_CHECKING:
    from policyfactory.evaluation.results_folder import Result
    from policyfactory.fitting.fits import Fits
    from policyfactory.trials.files import Written
    from policyfactory.trials.table import GenerateOptions
    from policyfactory.workload.swf.log import SwfLog

_THIRDS = 3  # of the loads
PEERS = 3  # published policies that a choice has to be better than
_MOST = 700.0  # logarithm of a ratio that is still a number
_LEAST = 1.0  # added to seconds, so that a wait of none has a logarithm


@dataclasses.dataclass(frozen=True, slots=True)
class Ranked:
    """A policy on the replicas.

    Parameters
    ----------
    name : str
        Its name.
    ratios : tuple of float
        Of each aim to that of the best published policy: the geometric mean over the replicas.
    interval : tuple of float or None
        Of the first at 95 %: where halves stand beside the replicas, what other jobs of such users would give;
        else what more replicas of the same jobs would.
    verdict : str
        With halves, against the best published policy: ``better``, ``worse``, or that it cannot be told; a difference
        below half a percent is none. Without halves empty: a choice among many on the same jobs is no evidence.
    out : str
        What it costs too much of, in words; empty if nothing.
    by_load : tuple of float
        Ratios of the first aim on the replicas of the lowest, the middle and the highest third of loads.
    price_intervals : tuple of (tuple of float or None)
        With halves, those of the other aims at 95 %; else empty.
    """

    name: str
    ratios: tuple[float, ...]
    interval: tuple[float, float] | None
    verdict: str
    out: str
    by_load: tuple[float, ...] = ()
    price_intervals: tuple[tuple[float, float] | None, ...] = ()

    @property
    def ratio_text(self) -> str:
        """The ratio of the first aim with its interval."""
        low, high = self.interval or (self.ratios[0], self.ratios[0])
        return f"{self.ratios[0]:.2f} [{low:.2f}, {high:.2f}]"


@dataclasses.dataclass(frozen=True, slots=True)
class Ranking:
    """All policies on the replicas.

    Parameters
    ----------
    aims : tuple of str
        What was measured; the first is what is chosen by.
    peer : str
        The published policy that is best on them, to which the ratios are.
    rows : tuple of Ranked
        The best first.
    chosen : str
        The best at a price that is allowed; with halves, of those whose interval lies below the peer's value. The peer,
        if there is none.
    margin : Paired or None
        Logarithms of the choice against those of the next that may be taken; None if there is none.
    runner_up : str
        Its name, or empty.
    replicas : int
        How many whole ones there were.
    best : tuple of str
        The published policies that are best on them, at most three, the peer first.
    expected : float
        Ratio of the first aim that such a choice has on a replica that had no part in it (`expected_ratio`); NaN with
        halves, and of a single replica.
    part : str
        Of what part of the log they are replicas, in words.
    loads : tuple of tuple of float
        The lowest and the highest load of each third of the replicas, in units of the log's; empty if not known.
    """

    aims: tuple[str, ...]
    peer: str
    rows: tuple[Ranked, ...]
    chosen: str
    margin: Paired | None
    runner_up: str
    replicas: int
    best: tuple[str, ...] = ()
    expected: float = math.nan
    part: str = ""
    loads: tuple[tuple[float, float], ...] = ()

    @property
    def measured(self) -> tuple[str, ...]:
        """What the ratios are of, of which less is better."""
        return tuple(f"1/{aim}" if METRICS[aim].lower_is_better is False else aim for aim in self.aims)

    def row(self, name: str) -> Ranked:
        """Return the row of a policy."""
        return next(row for row in self.rows if row.name == name)

    def price(self, row: Ranked) -> str:
        """Return the ratios of all but the first aim, with their intervals where they are known."""
        intervals = row.price_intervals or (None,) * len(self.aims[1:])
        known = zip(self.measured[1:], row.ratios[1:], intervals, strict=True)
        return ", ".join(
            f"{aim} {ratio:.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")
            for aim, ratio, ends in known
            if math.isfinite(ratio)
        )

    def by_load(self, name: str) -> str:
        """Return the ratio of the first aim by load, in words; empty if loads are not known."""
        pairs = zip(self.loads, self.row(name).by_load, strict=True)
        parts = [f"{ratio:.2f} at loads of {low:.2f} to {high:.2f}" for (low, high), ratio in pairs]
        return f"{', '.join(parts)} of the log's" if parts else ""

    def in_words(self, name: str) -> str:
        """Return what a policy gains, and at what price."""
        row, price = self.row(name), self.price(self.row(name))
        return f"{name}, with {row.ratio_text} times the {self.measured[0]} of {self.peer}; as ratios: {price}"

    def as_dict(self) -> dict[str, object]:
        """Return the ranking as JSON values."""
        return {
            "replicas": self.replicas,
            "part": self.part,
            "loads": [list(bounds) for bounds in self.loads],
            "aims": list(self.measured),
            "best_published": list(self.best),
            "chosen": self.chosen,
            "runner_up": self.runner_up,
            "expected": finite(self.expected),
            "policies": [
                {
                    "policy": row.name,
                    "ratios": dict(zip(self.measured, map(finite, row.ratios), strict=True)),
                    "interval": None if row.interval is None else list(map(finite, row.interval)),
                    "verdict": row.verdict,
                    "out": row.out,
                    "by_load": list(map(finite, row.by_load)),
                    "price_intervals": [ends and list(map(finite, ends)) for ends in row.price_intervals],
                }
                for row in self.rows
            ],
        }


def rank(
    values: FloatArray,
    names: Sequence[str],
    published: Sequence[str],
    aims: Sequence[str],
    *,
    limits: Sequence[EpisodeLimit] = (),
    whole: int | None = None,
    loads: Sequence[float] = (),
    searched: Sequence[str] = (),
) -> Ranking:
    """Return the ranking of policies.

    Parameters
    ----------
    values : float64 array (replicas, policies, aims)
        As of `policyfactory.search.replicated.values_of`.
    names, published : sequence of str
        Names of the policies, and which of them are published.
    aims : sequence of str
        Metrics.
    limits : sequence of Limit
        What a policy may cost: the geometric mean of the ratios to the best published policy, or the mean in seconds.
    whole : int, optional
        How many of the replicas are whole; halves follow them, which give the intervals. All, if not given.
    loads : sequence of float
        Of the whole ones, in units of the log's.
    searched : sequence of str
        Policies that were made for jobs of the same part: one is taken only if it is shown to be better than the next.
    """
    judging = whole is not None
    count = len(values) if whole is None else whole
    logs = logarithms(values, aims)
    means = _Means(values[:count], logs[:count], names, published, aims, limits)
    peer, base = means.peer, logs[:, means.base, 0]
    thirds = np.array_split(np.argsort(loads), _THIRDS) if len(loads) else []
    rows, below = [], {}
    for index, name in enumerate(names):
        losses = logs[:, index, 0]
        paired = compare_replicas(losses, base, count) if judging else compare_values(losses, base, statistic="mean")
        ends = None if name == peer else _ends(paired)
        prices = [(logs[:, index, aim], logs[:, means.base, aim]) for aim in range(1, len(aims))]
        shown_prices = judging and name != peer
        price_ends = tuple(_ends(compare_replicas(*price, count)) for price in prices) if shown_prices else ()
        # What the two digits of a ratio show as 1.00 to 1.00 is as good as the peer, however narrow the interval is.
        verdict = "no difference" if ends and {round(end, 2) for end in ends} == {1.0} else paired.verdict
        below[name] = verdict == "better"
        ratios = tuple(means.ratios[index].tolist())
        by_load = tuple(math.exp((losses[third] - base[third]).mean()) for third in thirds)
        shown = "" if name == peer or not judging else verdict
        rows.append(Ranked(name, ratios, ends, shown, means.out[index], by_load=by_load, price_intervals=price_ends))
    rows.sort(key=lambda row: (_last(row.ratios[0]), row.name))
    expected = math.nan
    if not judging:
        expected = expected_ratio(values, names, published, aims, limits=limits, searched=searched)
    gains = below if judging else {row.name: round(row.ratios[0], 2) < 1 for row in rows}
    taken = [row for row in rows if row.name == peer or (gains[row.name] and not row.out)]

    def margin_of(first: Ranked, second: Ranked) -> Paired:
        return _margin(logs[:count], *(list(names).index(row.name) for row in (first, second)))

    while taken[0].name in searched and margin_of(*taken[:2]).verdict != "better":
        unproved = taken.pop(0)
        out = f"it was searched for such jobs, and is not shown to be better than {taken[0].name}"
        rows[rows.index(unproved)] = dataclasses.replace(unproved, out=out)
    chosen, others = taken[0], taken[1:]
    usable = [row.name for row in rows if row.name == peer or row.name in {names[index] for index in means.usable}]
    margin = margin_of(chosen, others[0]) if others else None
    second = others[0].name if others else ""
    return Ranking(
        aims=tuple(aims),
        peer=peer,
        rows=tuple(rows),
        chosen=chosen.name,
        margin=margin,
        runner_up=second,
        replicas=count,
        expected=expected,
        loads=tuple((float(min(those)), float(max(those))) for those in (np.asarray(loads)[third] for third in thirds)),
        best=tuple(sorted(usable, key=lambda name: name != peer))[:PEERS],
    )


def _margin(logs: FloatArray, first: int, second: int) -> Paired:
    """Return how much better one policy is than another over replicas."""
    return compare_values(logs[:, first, 0], logs[:, second, 0], statistic="mean")


def _ends(paired: Paired) -> tuple[float, float] | None:
    """Return the interval of a ratio, of that of its logarithm."""
    interval = paired.estimate.interval
    return None if interval is None else (math.exp(min(interval.low, _MOST)), math.exp(min(interval.high, _MOST)))


def expected_ratio(
    values: FloatArray,
    names: Sequence[str],
    published: Sequence[str],
    aims: Sequence[str],
    *,
    limits: Sequence[EpisodeLimit] = (),
    searched: Sequence[str] = (),
) -> float:
    """Return the ratio of the first aim to the best published policy's that a choice has where it was not made.

    The best of many is in part the luckiest of them on the replicas that choose. So each is left out in turn: the best
    at a price that is allowed, and the best published one, are those of the others. The mean over the replicas is
    geometric, NaN of a single one; the parameters are those of `rank`.
    """
    if len(values) == 1:
        return math.nan
    logs, left = logarithms(values, aims), []
    for replica in range(len(values)):
        others = [number for number in range(len(values)) if number != replica]
        means = _Means(values[others], logs[others], names, published, aims, limits)
        gains = np.round(means.ratios[:, 0], 2) < 1
        allowed = [index for index, out in enumerate(means.out) if index == means.base or (gains[index] and not out)]
        allowed.sort(key=lambda index: (_last(means.ratios[index, 0]), names[index]))
        while names[allowed[0]] in searched and _margin(logs[others], *allowed[:2]).verdict != "better":
            allowed.pop(0)
        left.append(logs[replica, allowed[0], 0] - logs[replica, means.base, 0])
    return float(np.exp(np.mean(left)))


class _Means:
    """The best published policy over replicas, ratios to it: float64 array (policies, aims), and who costs too much."""

    def __init__(
        self,
        values: FloatArray,
        logs: FloatArray,
        names: Sequence[str],
        published: Sequence[str],
        aims: Sequence[str],
        limits: Sequence[EpisodeLimit],
    ) -> None:
        of_logs, levels = logs.mean(axis=0), values.mean(axis=0)
        known = [list(names).index(name) for name in published]
        # Who waits for longer than some seconds allow is no policy to take, published or not.
        seconds = [limit for limit in limits if limit.times is None and limit.guard in aims]
        self.usable = [
            index
            for index in known
            if all(levels[index, list(aims).index(limit.guard)] <= limit.bound(0.0) for limit in seconds)
        ]
        self.base = min(self.usable or known, key=lambda index: (_last(of_logs[index, 0]), index))
        self.peer = names[self.base]
        self.ratios = np.exp(of_logs - of_logs[self.base])
        self.out = []
        for index, name in enumerate(names):
            costs = dict(zip(aims, zip(self.ratios[index].tolist(), levels[index].tolist(), strict=True), strict=True))
            bounds = seconds if name == self.peer else limits
            beyond = (_beyond(limit, costs, self.peer) for limit in bounds)
            self.out.append("; ".join(filter(None, beyond)))


def logarithms(values: FloatArray, aims: Sequence[str]) -> FloatArray:
    """Return the logarithms of metrics (the last axis), of which less is better; of 0 s that of a second."""
    better = [METRICS[name].lower_is_better is not False for name in aims]
    with np.errstate(all="ignore"):
        logs: FloatArray = np.log(values + [_LEAST if METRICS[name].unit == "s" else 0.0 for name in aims])
        return logs * np.where(better, 1.0, -1.0)


def _beyond(limit: EpisodeLimit, costs: Mapping[str, tuple[float, float]], peer: str) -> str:
    """Return what goes beyond a limit, in words; empty if nothing does, or it was not measured."""
    if limit.guard not in costs:
        return ""
    ratio, level = costs[limit.guard]
    if limit.times is not None:
        inside, words = ratio <= limit.times, f"{number_text(ratio)} times that of {peer}"
    else:
        inside, words = level <= limit.bound(0.0), f"{format_duration(level)} on average"
    return "" if inside else f"{limit.guard} is {words}, and at most {limit.text} is allowed"


def _last(value: float) -> float:
    """Return the value; infinity for what is no number."""
    return value if math.isfinite(value) else math.inf


# Who follows how far the work is; in a notebook nobody, on the command line the screen --------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A part of the work, and the command that does the same.

    Parameters
    ----------
    number, total : int
        Number of the step, from 1, and of all steps.
    title : str
        In words.
    command : tuple of str
        What stands behind ``policyfactory``; empty if no other command does this.
    before, share : float
        What part of all the work is done before it, and what part it is, by a rough guess.
    """

    number: int
    total: int
    title: str
    command: tuple[str, ...]
    before: float = 0.0
    share: float = 0.0


class Progress(Follower):
    """Follows how far the work is, and shows each result; this one says nothing."""

    def works_in(self, folder: Path) -> None:
        """Learn in which folder the results lie while they are made; called before the first step."""

    def begin(self, step: Step) -> None:
        """Begin a step; the one before it is done."""

    def warning(self, sentence: str) -> None:
        """Say why a result should not be trusted as it stands."""

    def cut(self, log: SwfLog) -> None:
        """Show a part of the log."""

    def scored(self, written: Written, options: GenerateOptions) -> None:
        """Show how precise the score table is."""

    def fitted(self, fits: Fits) -> None:
        """Show the formulas of a family."""

    def compared(self, study: Result) -> None:
        """Show how policies did."""

    def ranked(self, ranking: Ranking) -> None:
        """Show how policies did on replicas."""

    def wrote(self, paths: Sequence[Path]) -> None:
        """Name the files that were written."""
