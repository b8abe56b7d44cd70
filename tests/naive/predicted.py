"""Predictions in the closed loop, plainly: what engine/past.py, forest.py and predicted.py do.

Whenever a job is described, everything is worked out anew from the list of all jobs: nothing is kept from one to the
next. Comments name the rules.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from naive.online import Job, Online, Score

UNKNOWN = -1.0


@dataclasses.dataclass
class Tree:
    """A regression tree: a leaf with a value, or two branches at a feature's threshold."""

    value: float = 0.0
    feature: int = -1
    threshold: float = 0.0
    left: Tree | None = None
    right: Tree | None = None

    def at(self, features: Sequence[float]) -> float:
        """Return the value of the leaf that a job comes to."""
        if self.left is None or self.right is None:
            return self.value
        return (self.left if features[self.feature] <= self.threshold else self.right).at(features)


@dataclasses.dataclass
class Known:
    """What is given of a job; see `policyfactory.engine.past.Past`."""

    user: int
    facts: Sequence[float]
    groups: Sequence[int]
    outcome: Sequence[float]


@dataclasses.dataclass
class Predicted(Online):
    """The simulator that predicts jobs as they are submitted, and anew every ``period`` ticks (0: never)."""

    known: Sequence[Known] = ()
    forests: tuple[Sequence[Tree], Sequence[Tree], Sequence[Tree]] = ((), (), ())
    period: int = 0
    ticks: int = 1

    def run(self) -> None:
        self.features: dict[int, list[float]] = {}
        self.predictions: dict[int, list[float]] = {}
        self.due = min(job.submit for job in self.jobs)
        self.noted: set[int] = set()
        super().run()

    def schedule(self) -> None:
        if self.period and self.now >= self.due:
            for job in self.to_renew():
                self.predictions[job.id][:3] = self.predicted(self.described(job))
            self.due = (self.now // self.period + 1) * self.period
        for job in sorted(self.queue, key=lambda job: job.id):
            if job.id not in self.features:
                self.features[job.id] = self.described(job)
                others = self.of_user(self.known[job.id].user)
                waiting = sum(one.start < 0 for one in others if self.is_before(one, job))
                running = sum(one.start >= 0 and one.end > self.now for one in others)
                known_user = self.known[job.id].user >= 0
                counts = [float(waiting), float(running)] if known_user else [0.0, 0.0]
                self.predictions[job.id] = [*self.predicted(self.features[job.id]), *counts]
        super().schedule()

    def to_renew(self) -> list[Job]:
        """Return the waiting jobs, described already, of users of whom a job has ended since the last renewal."""
        waiting = [job for job in self.queue if job.id in self.features]
        ended = {job.id for job in self.ended(self.jobs)}
        users = {self.known[one].user for one in ended - self.noted}
        self.noted = ended
        to_renew = []
        for user in users - {-1}:
            mine = sorted((job for job in waiting if self.known[job.id].user == user), key=lambda job: job.id)
            to_renew += mine[:500]
        return to_renew

    def is_before(self, one: Job, job: Job) -> bool:
        """Say whether ``one`` was submitted before ``job``, in the order of the list at one instant."""
        return one.id in self.features and one is not job

    def of_user(self, user: int) -> list[Job]:
        return [job for job in self.jobs if self.known[job.id].user == user]

    def ended(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those that have ended, in the order of their ends, at one instant in that of the list."""
        return sorted(
            (job for job in jobs if job.start >= 0 and job.end <= self.now), key=lambda job: (job.end, job.id)
        )

    def predicted(self, features: list[float]) -> list[float]:
        """Return e, s and e90."""
        request = math.exp(features[0])
        shortness, share, tail = (sum(tree.at(features) for tree in forest) for forest in self.forests)

        def within(value: float) -> float:
            return min(max(value, 1e-6), 1.0)

        if not self.forests[0]:
            return [request, 10.0 / max(request, 10.0), request]
        e90 = within(tail) * request if self.forests[2] else request
        return [within(math.exp(share)) * request, within(math.exp(shortness)), e90]

    def described(self, job: Job) -> list[float]:
        """Return the features of a job that is submitted now, or waits."""
        known = self.known[job.id]
        features = list(known.facts)
        if known.user >= 0:
            mine = self.of_user(known.user)
            last_first = self.ended(mine)[::-1]
            features += self.recent(last_first) + self.alike(known, last_first) + self.present(job, mine, last_first)
        else:
            features += [UNKNOWN] * 22
        for kind, group in enumerate(known.groups):
            features += self.of_group(kind, group)
        return features

    def recent(self, ended: list[Job]) -> list[float]:
        if not ended:
            return [UNKNOWN] * 8
        runs = [self.known[job.id].outcome[0] for job in ended[:20]]
        last = (runs + [UNKNOWN] * 3)[:3]
        mean = sum(runs) / len(runs)
        deviation = math.sqrt(max(sum(run * run for run in runs) / len(runs) - mean * mean, 0.0))
        short = sum(run < math.log(60.0) for run in runs) / len(runs)
        age = math.log(1.0 + (self.now - ended[0].end) / self.ticks)
        return [*last, self.known[ended[0].id].outcome[3], age, mean, deviation, short]

    def alike(self, known: Known, ended: list[Job]) -> list[float]:
        """Return weighted means over the last 60: one that is e times as large, or 20 jobs ago, counts 1/e."""
        others = [self.known[job.id] for job in ended[:60]]
        weights = [
            math.exp(-0.05 * count) * math.exp(-abs(one.facts[0] - known.facts[0]) - abs(one.facts[1] - known.facts[1]))
            for count, one in enumerate(others)
        ]
        total = sum(weights)
        if not total:
            return [UNKNOWN] * 3 + [0.0, 0.0]
        means = [
            sum(weight * one.outcome[column] for weight, one in zip(weights, others, strict=True)) / total
            for column in range(3)
        ]
        return [*means, total, max(weights)]

    def present(self, job: Job, mine: list[Job], ended: list[Job]) -> list[float]:
        known = self.known[job.id]
        before = [one for one in mine if one.id in self.features]
        waiting = [one for one in before if one.start < 0]
        running = [one for one in mine if one.start >= 0 and one.end > self.now]
        features = [float(len(waiting)), float(len(running)), float(len(ended)), UNKNOWN, UNKNOWN]
        if before:
            # Of a job that waits and is described anew, its own submission is the last one, or a later one's.
            last = max(one.submit for one in before)
            is_burst = self.now - last < 600 * self.ticks
            features[3] = math.log(1.0 + (self.now - last) / self.ticks)
            features[4] = self.burst(before) + 1.0 if is_burst else 0.0
        features += [UNKNOWN] * 4
        other = self.last_started(mine)
        if other is not None:
            if other.end > self.now:
                features[5] = math.log(1.0 + (self.now - other.start) / self.ticks)
            features[6] = abs(self.known[other.id].facts[0] - known.facts[0])
            features[7] = abs(self.known[other.id].facts[1] - known.facts[1])
        if ended:
            features[8] = abs(self.known[ended[0].id].facts[0] - known.facts[0])
        return features

    def last_started(self, mine: list[Job]) -> Job | None:
        started = [one for one in mine if one.start >= 0]
        return max(started, key=lambda one: one.sequence, default=None)

    def burst(self, before: list[Job]) -> int:
        """Return how many submissions of the present burst came before the last one."""
        count = 0
        for one, other in itertools.pairwise(before):
            count = count + 1 if other.submit - one.submit < 600 * self.ticks else 0
        return count

    def of_group(self, kind: int, group: int) -> list[float]:
        members = [job for job in self.jobs if group >= 0 and self.known[job.id].groups[kind] == group]
        ended = self.ended(members)
        if not ended:
            return [UNKNOWN] * 3 + [0.0]
        means = [0.0, 0.0, 0.0]
        for count, job in enumerate(ended, start=1):
            part = max(1.0 / count, 0.1)
            for column in range(3):
                means[column] += part * (self.known[job.id].outcome[column] - means[column])
        return [*means, float(len(ended))]


def random_tree(rng: np.random.Generator, features: int, depth: int, scale: float) -> Tree:
    """Return a tree with some depth over features that are mostly between -1 and 4."""
    if depth == 0 or rng.random() < 0.2:
        return Tree(value=float(rng.normal() * scale))
    branches: dict[str, Any] = {side: random_tree(rng, features, depth - 1, scale) for side in ("left", "right")}
    return Tree(feature=int(rng.integers(features)), threshold=float(rng.uniform(-1, 4)), **branches)


def predicted_until(jobs: Sequence[Job], machine: int, score: Score, until: int, **rules: Any) -> list[Job]:
    """The jobs that are started before ``until``: nothing that comes later could change that."""
    Predicted(jobs, machine, score, **rules).run()
    return [job for job in jobs if job.start < until]


def usual_requests(requests: Sequence[int], minute: int) -> list[int]:
    """A request that is neither of whole minutes nor was made ten times before is the largest usual one below."""
    made = []
    for job, request in enumerate(requests):
        before = requests[:job]
        usual = [value for value in set(before) if before.count(value) >= 10 and value <= request]
        is_usual = request % minute == 0 or before.count(request) >= 10
        made.append(request if is_usual or not usual else max(usual))
    return made
