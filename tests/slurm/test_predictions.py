"""Predictions on a real Slurm: the script's numbers are ours, jobs start in their order, and updates are followed."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from naive.site_history import described, foreseen
from policyfactory.core.options import FloatArray
from policyfactory.exports.content import TARGETS, Export
from policyfactory.exports.foresight import SitePredictions
from policyfactory.exports.queue import Queue
from policyfactory.exports.slurm.job_submit import renewal_commands
from policyfactory.policy.store import Model
from policyfactory.prediction.history import HistoryLimits
from policyfactory.prediction.history_file import hash_with, key_of, read_history, read_jobs, update, write_history
from schedulers.processes import short_directory
from schedulers.slurm import Cluster
from site_history import COLUMNS, POLICY, make_site_past
from slurm.orders import at_submission, mixed_shapes, submit_plainly, usual_site, waiting

QUEUES = {"batch": 1, "closed": 2}
CLOSED = ("-p", "closed")
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
    "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=45 State=DOWN",
)
STALE_S = 3600


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A running cluster, the export that it runs, and the history that the export reads."""

    cluster: Cluster
    export: Export
    state: Path

    def past(self, run: int, at: int | None = None) -> None:
        """Write the history of a user of 80 jobs, whose small ones ran for so long (s), the others for hours."""
        draw = np.random.default_rng(run)
        now, lines = int(time.time()) - 1 if at is None else at, [COLUMNS]
        for job in range(80):
            size, minutes = int(draw.integers(1, 33)), int(draw.integers(1, 600))
            ran = run + job % 7 if size < 8 else 60 * minutes - 1
            submit = now - 400_000 + 4000 * job
            times = f"{submit}|{submit + 9}|{submit + 9 + ran}|{ran}"
            ids = f"{job + 1}|wrap|{os.getuid()}|{os.getgid()}|batch"
            lines.append(f"{ids}|COMPLETED|{times}|{minutes}|{size}|{size}|1")
        text = self.state.with_name("sacct.txt")
        text.write_text("\n".join(lines) + "\n")
        self.state.unlink(missing_ok=True)
        hashed = hash_with(key_of(self.state))
        history = read_history(self.state, hashed)
        update(history, read_jobs(text), now, hashed, HistoryLimits())
        write_history(history, self.state, hashed)

    def priorities(self, queue: int) -> Callable[[Queue], NDArray[np.float64]]:
        """Return the function from waiting jobs of a partition to what the export makes of them."""
        hashed, forests, scale = hash_with(key_of(self.state)), make_site_past().forests, self.export.scale
        assert scale is not None
        history = read_history(self.state, hashed)

        def numbers(jobs: Queue) -> NDArray[np.float64]:
            columns = [
                foreseen(forests, described(history, hashed, os.getuid(), os.getgid(), p, q, queue, submit, "wrap"), p)
                for p, q, submit in zip(jobs.p.tolist(), jobs.q.tolist(), jobs.submit.tolist(), strict=True)
            ]
            return scale.integers(scores(jobs, np.array(columns).T)).astype(np.float64)

        return numbers

    def without(self, jobs: Queue) -> NDArray[np.float64]:
        """Return the numbers of the formula without predictions."""
        assert self.export.scale is not None
        p = jobs.p.astype(np.float64)
        columns = np.array([p, 10 / np.maximum(p, 10), p, 0 * p, 0 * p])
        return self.export.scale.integers(scores(jobs, columns)).astype(np.float64)

    def said(self) -> list[str]:
        """Return what the log says of jobs without predictions."""
        text = (self.cluster.log / "slurmctld.log").read_text(errors="replace")
        return [line.partition("is taken: ")[2] for line in text.splitlines() if "policyfactory: no prediction" in line]


def scores(jobs: Queue, predictions: FloatArray) -> FloatArray:
    return POLICY.scores(jobs.p, jobs.q, jobs.submit, predictions=predictions)


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    with short_directory() as folder:
        state = folder / "history"
        foresight = SitePredictions(make_site_past().forests, str(state), STALE_S, QUEUES)
        export = TARGETS["slurm-site-factor-lua"].make(
            Model(POLICY), dataclasses.replace(usual_site(), foresight=foresight)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", "UTC")  # the clock of the naive twin
            with Cluster(
                folder,
                processors=32,
                lines=["JobSubmitPlugins=lua"],
                partitions=PARTITIONS,
                files={"job_submit.lua": export.text},
            ) as cluster:
                yield Site(cluster, export, state)


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """Give the site with a fresh history; whatever still waits at the end goes."""
    running.past(20)
    yield running
    running.cluster.empty()


def submit(site: Site, shapes: Sequence[tuple[int, int]]) -> Queue:
    jobs = [site.cluster.submit(size, minutes, *CLOSED) for size, minutes in shapes]
    return waiting(site.cluster, jobs)


def test_a_hundred_jobs_have_the_numbers_of_python(site: Site) -> None:
    before = len(site.said())
    queue = submit(site, [(shape.processors, shape.minutes) for shape in mixed_shapes(100, 64, seed=3)])
    at_submission(queue, site.priorities(2))
    assert queue.priority is not None
    assert len(set(queue.priority.tolist())) > 80
    assert (np.abs(queue.priority - site.without(queue)) > 1).all()
    assert len(site.said()) == before


def test_jobs_start_in_the_order_of_their_predictions(site: Site) -> None:
    cluster = site.cluster
    blocker = cluster.hold_all()
    jobs = [submit_plainly(cluster, shape) for shape in mixed_shapes(largest=cluster.total // 4)]
    queue = waiting(cluster, jobs)
    at_submission(queue, site.priorities(1))
    assert queue.priority is not None
    cluster.run("scancel", blocker)
    started = cluster.wait_starts(jobs)
    numbers = np.array(jobs)
    assert started == numbers[np.lexsort((numbers, queue.submit, -queue.priority))].tolist()
    assert started != jobs
    assert started != numbers[np.lexsort((numbers, queue.submit, -site.without(queue)))].tolist()


def test_an_update_between_two_submissions_changes_the_number(site: Site) -> None:
    first = submit(site, [(2, 60)])
    at_submission(first, site.priorities(2))
    site.past(3000)
    second = submit(site, [(2, 60)])
    at_submission(second, site.priorities(2))
    assert first.priority is not None
    assert second.priority is not None
    assert second.priority[0] < first.priority[0] - 1000


def test_waiting_jobs_are_scored_anew_by_the_commands_that_an_update_prints(site: Site) -> None:
    plain = submit(site, [(2, 60), (5, 90)])
    array = site.cluster.submit(2, 60, *CLOSED, "-a", "0-3", "--nice=7")
    site.past(3000)
    (command,) = renewal_commands([str(os.getuid())])
    site.cluster.run("sh", "-c", command)
    fresh = submit(site, [(2, 60), (5, 90)])
    renewed = waiting(site.cluster, [*map(int, plain.job), array])
    assert plain.priority is not None
    assert fresh.priority is not None
    assert renewed.priority is not None
    # Only the time since the last end and the last submission are others by now.
    assert renewed.priority[:2] == pytest.approx(fresh.priority, rel=0.01)
    assert renewed.priority[2] + 7 == pytest.approx(fresh.priority[0], rel=0.01)
    assert (np.abs(renewed.priority[:2] - plain.priority) > 0.05 * plain.priority).all()


def test_without_a_usable_history_the_request_counts_and_the_log_says_why(site: Site) -> None:
    def fallen(words: str) -> None:
        before = len(site.said())
        queue = submit(site, [(3, 50), (7, 500)])
        assert queue.priority is not None
        assert np.abs(queue.priority - site.without(queue)).max() <= 1
        said = site.said()[before:]
        assert len(said) == 2
        assert all(words in line for line in said)

    whole = site.state.read_bytes()
    site.state.write_bytes(whole[:-20])
    fallen("is damaged")
    site.state.write_bytes(whole[:100])
    fallen("is damaged")
    site.past(20, at=int(time.time()) - STALE_S - 60)
    fallen("is stale, of 20")
    site.state.unlink()
    fallen(f"no file {site.state}")
    site.past(20)
    at_submission(submit(site, [(3, 50)]), site.priorities(2))
