"""Jobs of users with habits, their schedule in the closed loop, and what sacct would print of it at any instant."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.engine.past import FEATURES
from policyfactory.policy.policy import Policy
from policyfactory.prediction.features import known_of
from policyfactory.prediction.history import HistoryLimits
from policyfactory.prediction.history_file import (
    Update,
    hash_with,
    key_of,
    read_history,
    read_jobs,
    update,
    write_history,
)
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor, train_forests
from policyfactory.simulation.predicted import Foreseen, run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Attributes, Workload

__all__ = ["BEGIN", "COLUMNS", "POLICY", "QUEUES", "Site", "make_site_past", "name_of", "small_forests"]

BEGIN = 1_790_000_000
POLICY = Policy("PREDICTED", "-ln(s) + ln(e) + 0.4*ln(q)")
QUEUES = {"batch": 1, "day": 2}
COLUMNS = "JobID|JobName|UID|GID|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|AllocNodes"
_STATES = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED by 0"}
FIRST_USER, FIRST_GROUP = 1000, 50


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Jobs, a schedule of theirs, and what predicted it.

    Parameters
    ----------
    workload : Workload
        Second 0 is `BEGIN`.
    foreseen : Foreseen
        The schedule, what was known of each job at its submission, and what was predicted of it.
    forests : Forests
        The model.
    """

    workload: Workload
    foreseen: Foreseen
    forests: Forests

    def comparable(self) -> list[int]:
        """Return the jobs of users with history at whose submission nothing else happened."""
        jobs, start = self.workload, self.foreseen.start
        busy = np.concatenate([start + jobs.run_time, jobs.submit])
        values, counts = np.unique(busy, return_counts=True)
        alone = set(values[counts == 1].tolist())
        ended = self.foreseen.features[:, 22]

        def is_clear(job: int) -> bool:
            # Of two starts in one second the accounting does not say which was the last.
            own = start[(jobs.user == jobs.user[job]) & (start < jobs.submit[job])]
            return ended[job] > 0 and int(jobs.submit[job]) in alone and int((own == own.max()).sum()) == 1

        return [job for job in range(len(jobs)) if is_clear(job)]

    def sacct(self, at: int) -> str:
        """Return what sacct prints of the jobs at a second of the log."""
        jobs, start, lines = self.workload, self.foreseen.start.tolist(), [COLUMNS]
        assert jobs.attributes is not None
        for job in range(int(np.searchsorted(jobs.submit, at, side="right"))):
            run, status = int(jobs.run_time[job]), int(jobs.attributes.status[job])
            end = start[job] + run
            began, over = start[job] <= at, end <= at
            partition = list(QUEUES)[int(jobs.attributes.queue[job]) - 1]
            words = [
                *(
                    job + 1,
                    name_of(jobs, job),
                    FIRST_USER + int(jobs.user[job]),
                    FIRST_GROUP + int(jobs.attributes.group[job]),
                    partition,
                ),
                _STATES[status] if over else "RUNNING" if began else "PENDING",
                BEGIN + int(jobs.submit[job]),
                BEGIN + start[job] if began else "Unknown",
                BEGIN + end if over else "Unknown",
                run if over else max(at - start[job], 0),
                *(int(jobs.requested_time[job]) // 60, int(jobs.processors[job]), int(jobs.processors[job])),
                1 if began else 0,
            ]
            lines.append("|".join(map(str, words)))
        return "\n".join(lines) + "\n"

    def bring_up(self, state: Path, at: int) -> Update:
        """Update the history of a file to a second of the log, as the command does."""
        text = state.with_name("sacct.txt")
        text.write_text(self.sacct(at))
        hashed = hash_with(key_of(state))
        history = read_history(state, hashed)
        done = update(history, read_jobs(text), BEGIN + at, hashed, HistoryLimits())
        write_history(history, state, hashed)
        return done


@functools.cache
def make_site_past(seed: int = 1, jobs: int = 700) -> Site:
    """Return jobs of users with habits, of whom half run for seconds and half for hours, whatever they ask for."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 6, jobs)
    run = np.where(user % 2 == 0, rng.integers(0, 200, jobs), rng.integers(300, 9000, jobs))
    submit = np.sort(rng.integers(0, 5 * 86_400, jobs))
    request = rng.choice([600, 3600, 7200, 14_400], jobs)
    columns = (np.arange(1, jobs + 1), submit, np.minimum(run, request), request, rng.integers(1, 5, jobs))
    unknown = np.full(jobs, -1)
    attributes = Attributes(
        unknown,
        user % 3,
        rng.integers(0, 4, jobs),
        rng.integers(1, 3, jobs),
        unknown,
        rng.choice([0, 1, 1, 1, 5], jobs),
    )
    workload = Workload("habits", 8, *columns, user, unknown, unix_start=BEGIN, time_zone="UTC", attributes=attributes)
    options = PredictorOptions(trees=25, leaves=8, renew_s=0)
    first = run_predicted(prepare(workload, Rules()), POLICY, Predictor(options, Forests()))
    forests = train_forests(first.features, known_of(workload).outcome, options, tail=True)
    return Site(workload, run_predicted(prepare(workload, Rules()), POLICY, Predictor(options, forests)), forests)


def name_of(jobs: Workload, job: int) -> str:
    """Return the name of a job: one of a few, with numbers in it; none of the executable 0."""
    assert jobs.attributes is not None
    executable = int(jobs.attributes.executable[job])
    return f"run{'x' * executable}_{job}" if executable else ""


def small_forests(seed: int = 1) -> Forests:
    """Return forests of random features and outcomes."""
    rng = np.random.default_rng(seed)
    features: FloatArray = rng.uniform(-1, 10, (800, FEATURES))
    outcome = np.clip(rng.random((800, 4)) * features[:, :1] / 10, 0.01, 1)
    return train_forests(features, outcome, PredictorOptions(trees=5, leaves=4), tail=True)
