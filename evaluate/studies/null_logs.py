"""How often a verdict is wrong where no order can matter, and how often it is given where one does.

    python evaluate/studies/null_logs.py --traces traces --output docs

Logs without any effect are of three kinds. ``noise``: jobs of one processor whose requests say nothing. ``habits``:
jobs of one processor in campaigns; a user's requests are a habit, the run times of each campaign are its own, and say
nothing of the next one's. ``permuted``: twelve weeks of a real log whose run times were exchanged among the jobs of one
user and request, ordered by when a job came within 128 seconds, or by the contrary. On all of them "better" and "worse"
are false. ``effect`` is noise whose requests are correlated with the run times (0.3 in their logarithms; 0.9 for
`learn`): there the order by request is better than its contrary, by the ratio that `true_ratio` tells.

Each kind of verdict judges one policy against another on 400 logs of each kind and 100 with an effect: the windows of a
log (10 of a week), its weeks, 10 resampled logs, 8 replicas as `learn` has them, what `judge` holds out; and `learn`
from end to end, 150 times, on the first two kinds. It writes ``data/null-logs.csv``; an hour of two cores.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import math
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import policyfactory as pf
from policyfactory.core.files import atomic_write
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.learning.ranking import rank
from policyfactory.policy.policy import Policy
from policyfactory.report.terminal import note
from policyfactory.search.arena import Arena
from policyfactory.search.replicated import AIMS, Part, best_published, replicated, values_of
from policyfactory.simulation.rules import Rules
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

__all__ = ["KINDS", "VERDICTS", "Pair", "count", "main", "null_log", "true_ratio"]

TRACES = ("KTH-SP2-1996-2.1-cln.swf.gz", "SDSC-BLUE-2000-4.2-cln.swf.gz", "HPC2N-2002-2.1-cln.swf.gz")
WEEKS, JOBS, MACHINE, USERS = 12, 4_000, 8, 30
_SHORTEST, _LONGEST = 200_000, 800_000  # requests, s
_WAVE = 5, 22  # powers of 2 at which the time of submission is folded
FALSE, FOUND = 400, 100


class Pair(NamedTuple):
    """A log and two orders of its queue, of which the first is judged against the second."""

    log: Workload
    policy: Policy
    other: Policy


# Logs. ----------------------------------------------------------------------------------------------------------------


def null_log(
    kind: str,
    seed: int,
    traces: Path | None = None,
    weeks: int = WEEKS,
    *,
    correlation: float = 0.3,
    jobs: int = JOBS,
) -> Pair:
    """Return log ``seed`` of a kind, as the head of this file has it."""
    random = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    if kind == "permuted":
        if traces is None:
            raise ValueError("permuted logs are made of real ones; say where these are (--traces)")
        return _permuted(random, traces, seed, weeks)
    made = _campaigns(random, weeks) if kind == "habits" else _noise(random, weeks, jobs)
    submit, run, request, user = made
    load = 0.7 + 0.25 * random.random()
    run = np.clip(run * load * MACHINE * weeks * WEEK / run.sum(), 1, _SHORTEST).astype(np.int64)
    if kind == "effect":
        logs = stats.zscore(np.log(run))
        mixed = correlation * logs + math.sqrt(1 - correlation**2) * random.normal(size=len(run))
        request = _SHORTEST + (_LONGEST - _SHORTEST) * stats.norm.cdf(mixed)
    ones = np.ones(len(run), dtype=np.int64)
    log = Workload(
        *(f"{kind} {seed}", MACHINE, np.arange(1, len(run) + 1), submit, run, np.rint(request).astype(np.int64), ones),
        *(user, -ones),
    )
    return Pair(log, Policy("ASKED", "p"), Policy("CONTRARY", "-p"))


def _noise(random: np.random.Generator, weeks: int, jobs: int) -> tuple[np.ndarray, ...]:
    user = random.choice(USERS, jobs, p=random.dirichlet(np.full(USERS, 0.5)))
    submit = np.sort(random.integers(0, weeks * WEEK, jobs))
    return submit, np.exp(random.normal(0, 1.5, jobs)), random.uniform(_SHORTEST, _LONGEST, jobs), user


def _campaigns(random: np.random.Generator, weeks: int) -> tuple[np.ndarray, ...]:
    active = random.dirichlet(np.full(USERS, 0.5))
    habit = random.uniform(_SHORTEST, _LONGEST, USERS)
    rows, jobs = [], 0
    while jobs < JOBS:
        user, size = int(random.choice(USERS, p=active)), 1 + int(random.geometric(1 / 15))
        begin = random.uniform(0, weeks * WEEK)
        submit = (begin + random.uniform(0, 2 * DAY, size)) % (weeks * WEEK)
        run = np.exp(random.normal(0, 1.2) + random.normal(0, 0.8, size))
        request = habit[user] + random.uniform(-HOUR, HOUR, size)
        rows.append(np.stack([submit, run, request, np.full(size, user)]))
        jobs += size
    submit, run, request, user = np.concatenate(rows, axis=1)
    order = np.argsort(submit, kind="stable")
    return submit[order].astype(np.int64), run[order], request[order], user[order].astype(np.int64)


def _permuted(random: np.random.Generator, traces: Path, seed: int, weeks: int) -> Pair:
    log = read(traces / TRACES[seed % len(TRACES)])
    span, some = weeks * WEEK, log[:0]
    # Not where the machine stood still: what judge holds out are the last 40 % of the jobs.
    while not len(some) or some.submit[-1] - some.submit[6 * len(some) // 10] < 3 * WEEK:
        begin = random.integers(0, max(int(log.submit[-1]) - span, 1))
        some = log.select(slice(*np.searchsorted(log.submit, [begin, begin + span]).tolist()), rebase=True)
    alike = np.unique(np.stack([some.user, some.requested_time]), axis=1, return_inverse=True)[1].ravel()
    order = np.argsort(alike, kind="stable")
    mixed = np.lexsort((random.random(len(some)), alike))
    run = some.run_time.copy()
    run[order] = some.run_time[mixed]
    # From where the wave begins is chance, so that an order and its contrary are one.
    submit = some.submit + random.integers(0, 2 ** (_WAVE[0] + 2))
    some = dataclasses.replace(some, name=f"permuted {seed}", submit=submit, run_time=run, start=np.full(len(run), -1))
    wave = "r"
    for power in range(_WAVE[1], _WAVE[0], -1):
        wave = f"abs({wave} - {2**power})"
    return Pair(some, Policy("WAVE", wave), Policy("CONTRARY", f"-{wave}"))


# Verdicts. ------------------------------------------------------------------------------------------------------------


def _evaluated(pair: Pair, **cases: object) -> str:
    study = pf.evaluate(
        pair.log, policies=[pair.other, pair.policy], metrics=[AIMS[0]], recorded=False, analyses=(), **cases
    )
    return study.outcomes[0].comparisons[0].verdict


def _replicas(pair: Pair) -> str:
    made = replicated(pair.log, Part(0, len(pair.log)), Rules(), count=8, halves=True)
    names = pair.other.name, pair.policy.name
    ranking = rank(values_of(made, (pair.other, pair.policy)), names, names[:1], AIMS, whole=made.whole)
    return ranking.row(pair.policy.name).verdict


def _judged(pair: Pair) -> str:
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(pair.log, ledger=Path(folder) / "ledger.json")
        # In the place of the published policy that is best there.
        vars(arena)["baseline"] = best_published(arena._training, among=(pair.other,))  # noqa: SLF001
        held = arena.judge([pair.policy], held_out=True).candidates[0].verdict
    return "" if held is None else held.verdict


def _learned(pair: Pair) -> str:
    # With a record, without which nothing is recommended: that of first come, first served.
    log = dataclasses.replace(pair.log, start=pf.simulate(pair.log, "FCFS").start)
    # Without limits on the price, which would hide a false gain as they hide a true one.
    free: dict[str, Any] = dict.fromkeys(("max_p99", "max_longest", "max_area"))
    learned = pf.learn(log, tuples=32, trials=256, backfill="easy", predictions=False, **free)
    return learned.verdict.light


VERDICTS: dict[str, Callable[[Pair], str]] = {
    "windows": partial(_evaluated, windows="10x7d"),
    "weeks": _evaluated,
    "resampled logs": partial(_evaluated, resamples=10),
    "replicas": _replicas,
    "judge": _judged,
    "learn": _learned,
}
KINDS = {"noise": FALSE, "habits": FALSE, "permuted": FALSE, "effect": FOUND}
_LEARNED = {"noise": 75, "habits": 75, "effect": 30}  # each takes seconds


def true_ratio(logs: int = FOUND) -> float:
    """Return the ratio of the mean bounded slowdowns on ``effect`` logs: the geometric mean over some."""
    ratios = []
    for seed in range(logs):
        pair = null_log("effect", seed)
        own, other = (pf.simulate(pair.log, one).bounded_slowdown.mean() for one in (pair.policy, pair.other))
        ratios.append(math.log(own / other))
    return math.exp(float(np.mean(ratios)))


# Counting. ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Count:
    """How often a verdict was given on the logs of a kind."""

    verdict: str
    kind: str
    logs: int
    better: int
    worse: int

    @property
    def upper(self) -> float:
        """The upper bound of the share of both, at 95 % (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934)."""
        called = self.better + self.worse
        return 1.0 if called >= self.logs else float(stats.beta.ppf(0.95, called + 1, self.logs - called))


def count(verdict: str, kind: str, logs: Iterable[int], traces: Path | None = None, workers: int = 1) -> Count:
    """Return how often a verdict is given on logs of a kind, by their numbers."""
    ask = partial(_ask, verdict, kind, traces)
    if workers == 1:
        said = [ask(seed) for seed in logs]
    else:
        with ProcessPoolExecutor(workers) as pool:
            said = list(pool.map(ask, logs, chunksize=4))
    return Count(verdict, kind, len(said), said.count("better"), said.count("worse"))


def _ask(verdict: str, kind: str, traces: Path | None, seed: int) -> str:
    if verdict == "learn":
        # Half of a log is what it judges on; and the choice has to be better than the record too, by weeks.
        size = {"weeks": 26, "jobs": 3 * JOBS, "correlation": 0.9} if kind == "effect" else {"weeks": 16}
        return _learned(null_log(kind, seed, **size))
    return VERDICTS[verdict](null_log(kind, seed, traces))


def main() -> None:
    """Read the command line, and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=list(VERDICTS))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    path = given.output / "data" / "null-logs.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    note(f"true ratio on logs with an effect: {true_ratio():.2f}")
    for verdict in given.only or VERDICTS:
        for kind, logs in (_LEARNED if verdict == "learn" else KINDS).items():
            one = count(verdict, kind, range(logs), given.traces, given.workers)
            note(f"{one} at most {100 * one.upper:.1f} %")
            kept = [row for row in kept if row[:2] != [verdict, kind]]
            kept.append([verdict, kind, *map(str, (one.logs, one.better, one.worse)), f"{one.upper:.4f}"])
            text = io.StringIO()
            table = csv.writer(text, lineterminator="\n")
            table.writerows([["verdict", "logs of", "logs", "better", "worse", "upper bound"], *kept])
            atomic_write(path, text.getvalue())


if __name__ == "__main__":
    main()
