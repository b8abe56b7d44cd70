"""What a schedule says of running jobs that were stopped for others."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

from naive.slurm_cases import job
from naive.slurm_workload import workload_of
from policyfactory.evaluation.options import DEFAULT_METRICS, ExperimentTable, key_of
from policyfactory.evaluation.study import evaluate
from policyfactory.policy.store import resolve
from policyfactory.simulation.metrics import PREEMPTION_METRICS, measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.site.file import write_site
from policyfactory.site.model import NodeGroup, Partition, Preemption, Site
from support import OTHER_KERNEL

SITE = Site(
    "drawn",
    (NodeGroup("n[1-2]"),),
    (Partition("batch", default=True, exclusive=True, tier=2), Partition("idle", exclusive=True)),
    preemption=Preemption("partition_prio", "requeue"),
)
JOBS = [job(1, 0, 500, 60, 2, partition="idle"), job(2, 30, 100, 10, 2)]


def schedule_of(site: Site) -> Schedule:
    return simulate(workload_of(site, JOBS, 0), resolve("FCFS"), Rules(backfill="slurm", site=site))


@OTHER_KERNEL
def test_a_job_counts_with_its_last_run() -> None:
    schedule = schedule_of(SITE)
    assert schedule.start.tolist() == [161, 31]
    assert schedule.end.tolist() == [661, 131]
    assert schedule.wait.tolist() == [161, 1]
    assert schedule.stopped is not None
    assert schedule.stopped.times.tolist() == [1, 0]
    assert schedule.stopped.node_seconds.tolist() == [2 * 27, 0]
    assert schedule.frame()["preempted"].tolist() == [1, 0]
    assert "1 run of 1 job" in schedule.summary()
    assert schedule.after(1).stopped.times.tolist() == [0]


@OTHER_KERNEL
def test_one_that_is_cancelled_has_ended() -> None:
    schedule = schedule_of(dataclasses.replace(SITE, preemption=Preemption("partition_prio", "cancel")))
    assert list(zip(schedule.start.tolist(), schedule.end.tolist(), strict=True)) == [(3, 30), (31, 131)]
    assert schedule.stopped.node_seconds.tolist() == [2 * 27, 0]


def test_where_nobody_is_stopped_nothing_is_said() -> None:
    schedule = schedule_of(dataclasses.replace(SITE, preemption=Preemption()))
    assert schedule.start.tolist() == [3, 503]
    assert schedule.stopped is None
    assert "preempted" not in schedule.frame()


@OTHER_KERNEL
def test_a_table_counts_what_was_stopped_where_the_site_stops_jobs(tmp_path: Path) -> None:
    assert measure(schedule_of(SITE), PREEMPTION_METRICS) == {
        "preempted": 1,
        "lost_node_hours": 2 * 27 / 3600,
    }
    quiet = dataclasses.replace(SITE, preemption=Preemption())
    assert measure(schedule_of(quiet), "preempted") == {"preempted": 0}
    workload, path = workload_of(SITE, JOBS, 0), tmp_path / "site.toml"
    for site, more in ((SITE, PREEMPTION_METRICS), (quiet, ())):
        write_site(site, path)
        evaluated = functools.partial(evaluate, workload, ["FCFS", "SAF"], backfill="slurm", site=str(path))
        assert evaluated().outcome.evaluation.metrics == (*DEFAULT_METRICS, *more)
        # Who names metrics gets these.
        assert evaluated(metrics=list(DEFAULT_METRICS)).outcome.evaluation.metrics == DEFAULT_METRICS


def test_the_default_is_stated_with_what_a_site_stops() -> None:
    stated = key_of(ExperimentTable.model_fields["metrics"]).stated
    assert re.findall(r"\w+_\w+|utilisation|preempted", stated) == [*DEFAULT_METRICS, *PREEMPTION_METRICS]
