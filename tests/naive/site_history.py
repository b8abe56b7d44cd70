"""What is known of a job at its submission on a site, written to be read: one feature after the other, of a history."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.engine.past import Forest
from policyfactory.prediction.history import History, Means, UserPast
from policyfactory.prediction.training import Forests

__all__ = ["described", "foreseen"]


def described(
    history: History,
    hashed: Callable[[str], str],
    user: int,
    group: int,
    p: int,
    q: int,
    queue: int,
    now: int,
    name: str = "",
) -> list[float]:
    """Return the 57 features of a job that a user submits now (Unix s), on a clock in UTC."""
    executable = hashed(f"n{re.sub('[0-9]+', '#', name)}") if history.names and name else "-"
    past = history.user(hashed(f"u{user}")) or UserPast()
    request, processors = math.log(p), math.log(q)
    clock = dt.datetime.fromtimestamp(now, dt.UTC)
    seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
    features: list[float] = [request, processors, -1, queue, -1, seconds / 3600, (clock.isoweekday() - 4) % 7]

    newest = past.jobs[::-1]
    runs = [math.log(max(job.run, 1)) for job in newest]
    features += (runs + [-1.0] * 3)[:3]
    if newest:
        some = runs[:20]
        mean = sum(some) / len(some)
        deviation = math.sqrt(max(sum(run * run for run in some) / len(some) - mean * mean, 0))
        short = sum(run < math.log(60) for run in some) / len(some)
        features += [newest[0].status, math.log(1 + now - newest[0].end), mean, deviation, short]
    else:
        features += [-1.0] * 5

    weights = [
        math.exp(-abs(math.log(job.request) - request) - abs(math.log(job.processors) - processors) - 0.05 * place)
        for place, job in enumerate(newest[:60])
    ]
    total = sum(weights)
    for values in (
        runs,
        [10 / max(job.run, 10) for job in newest],
        [min(max(job.run, 1) / job.request, 1) for job in newest],
    ):
        mean = sum(weight * value for weight, value in zip(weights, values, strict=False))
        features.append(mean / total if total else -1.0)
    features += [total, max(weights, default=0.0)]

    ago = now - past.submitted
    features += [past.waiting, past.running, past.ended]
    features += [math.log(1 + ago), past.burst + 1 if ago < 600 else 0] if past.submitted >= 0 else [-1.0, -1.0]
    last = past.started
    features.append(math.log(1 + now - last.start) if last is not None and last.running else -1.0)
    features += [-1.0, -1.0] if last is None else [abs(math.log(last.request / p)), abs(math.log(last.processors / q))]
    features.append(abs(math.log(newest[0].request / p)) if newest else -1.0)

    for key in ((0, p, q, executable), (1, 0, q, "-"), (2, p, 0, "-"), (3, 0, 0, executable), (4, 0, 0, "-")):
        features += _means(past.groups.get(key))
    features += _means(history.groups.get(hashed(f"g{group}")))
    features += _means(history.shapes.get(hashed(f"s{p}/{q}")))
    return features


def _means(means: Means | None) -> list[float]:
    return [-1.0, -1.0, -1.0, 0.0] if means is None else [means.ln_run, means.shortness, means.share, means.count]


def foreseen(forests: Forests, features: list[float], p: int) -> FloatArray:
    """Return e, s, e90, user_waiting and user_running."""

    def bounded(value: float) -> float:
        return min(max(value, 1e-6), 1.0)

    shortness, share = (bounded(math.exp(_sum(one, features))) for one in (forests.shortness, forests.share))
    tail = bounded(_sum(forests.tail, features)) if len(forests.tail.roots) else 1.0
    return np.array([share * p, shortness, tail * p, features[20], features[21]])


def _sum(forest: Forest, features: list[float]) -> float:
    total = forest.base
    for root in forest.roots.tolist():
        node = root
        while forest.feature[node] >= 0:
            goes_left = features[forest.feature[node]] <= forest.threshold[node]
            node = int(forest.left[node] if goes_left else forest.right[node])
        total += float(forest.threshold[node])
    return total
