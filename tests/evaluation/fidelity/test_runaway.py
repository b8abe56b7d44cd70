"""A replay whose queue runs away is stopped early, and what holds its jobs is named."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError
from policyfactory.evaluation.fidelity.compare import fidelity, sections_of, verdict_of
from policyfactory.evaluation.study import evaluate
from policyfactory.evaluation.verdict import refuse_runaway, replay_logs
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.slurm.run import Watch, run_slurm
from policyfactory.site.file import write_site
from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Qos, Site
from policyfactory.workload.jobs import Requests, Workload
from recorded_sites import LIMITED, SITE, recorded
from refusals import refused
from support import some_by_day

JOBS = 2_500
WIDE = Site(
    "wide",
    (NodeGroup("n[01-16]", cores=8, memory=64_000, gpus=4),),
    (Partition("batch", default=True),),
    qos=(Qos("normal"),),
    associations=(Association("lab"), Association("lab", "ann"), Association("lab", "bob")),
    enforced=("limits",),
)


def steady(**asked: Any) -> Workload:
    """Return jobs of two users, of which ten run at once, and which wait a second in the record."""
    number = np.arange(JOBS)
    columns = {name: np.full(JOBS, value) for name, value in asked.items()}
    requests = dataclasses.replace(
        Requests.unknown(JOBS),
        account=np.zeros(JOBS, np.int64),
        user_name=number % 2,
        qos=np.zeros(JOBS, np.int64),
        **columns,
        names={"account": ("lab",), "user": ("ann", "bob"), "qos": ("normal",), "partition": ("batch",)},
    )
    submit, whole = 60 * number, np.ones(JOBS, np.int64)
    return Workload(
        "steady", 128, number + 1, submit, 600 * whole, 900 * whole, 2 * whole, number % 2, submit + 1,
        unix_start=1_700_000_000, requests=requests,
    )  # fmt: skip


def limited(**most: Limits) -> Site:
    return dataclasses.replace(WIDE, qos=(Qos("normal", **most),))


def associated(*few: Association) -> Site:
    named = {(one.account, one.user): one for one in (*WIDE.associations, *few)}
    return dataclasses.replace(WIDE, associations=tuple(named.values()))


TIGHT: list[tuple[Site, dict[str, int], str]] = [
    (limited(total=Limits(jobs=4)), {}, "the limit of 4 running jobs of QOS normal together (GrpJobs)"),
    (limited(total=Limits(nodes=1)), {}, "the limit of 1 node of QOS normal together (GrpTRES=node)"),
    (limited(per_user=Limits(jobs=1)), {}, "the limit of 1 running job of one user in QOS normal (MaxJobsPerUser)"),
    (limited(per_user=Limits(cores=4)), {}, "the limit of 4 cores of one user in QOS normal (MaxTRESPerUser=cpu)"),
    (
        limited(per_account=Limits(memory=8_000)), {"memory": 4_000, "nodes": 1},
        "the limit of 8,000 MB of memory of one account in QOS normal (MaxTRESPerAccount=mem)",
    ),
    (
        associated(Association("lab", total=Limits(cores=6))), {},
        "the limit of 6 cores of account lab and those below it together (GrpTRES=cpu)",
    ),
    (
        associated(Association("lab", own=Limits(jobs=2))), {},
        "the limit of 2 running jobs of one user in account lab (GrpJobs or MaxJobs)",
    ),
    (WIDE, {"array": 7, "array_limit": 3}, "the limit of 3 running jobs of one array (ArrayTaskThrottle)"),
    (
        dataclasses.replace(WIDE, nodes=(NodeGroup("n1", cores=8),)), {},
        "partition batch, whose nodes are in use or wait for jobs before them",
    ),
    (
        dataclasses.replace(WIDE, partitions=(Partition("batch", default=True, up=False),)), {},
        "partition batch, which is not up",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("site", "asked", "holds"), some_by_day(TIGHT, 2), ids=[holds for *_, holds in TIGHT])
def test_what_holds_the_jobs_is_named_and_the_work_is_bounded(site: Site, asked: dict[str, int], holds: str) -> None:
    submitted = [0]
    found = fidelity(steady(**asked), site, twice=True, progress=submitted.append)
    assert found.stopped
    assert found.light == "far"
    first = found.reasons[0]
    assert first.name == "queue"
    assert f"of them are held by {holds}, and the replay was stopped there" in first.text
    # In the record one job waits at once; the replay ends when a thousand more than ten times as many do.
    assert re.search(
        r" after the first submission 1,0[12]\d jobs wait at once, where the record never has more than 1;", first.text
    )
    assert max(submitted) < JOBS
    assert found.itself is None
    verdict = verdict_of(found)
    assert "the length of the queue, which runs away" in verdict.sentences[0]
    assert "none of which is compared" in verdict.caveats[0]
    assert [one.name for one in sections_of(found)] == ["lacking"]
    assert found.as_dict()["stopped"] is True


def test_on_the_site_of_the_record_nothing_is_stopped_and_progress_is_told() -> None:
    told: list[int] = []
    found = fidelity(steady(), WIDE, twice=True, progress=told.append)
    assert not found.stopped
    assert told == sorted(told)
    assert told[-1] == 2 * JOBS
    assert told[0] == 0
    assert len(told) > 100


def test_a_watched_run_is_the_run_itself() -> None:
    log, watch = recorded(), Watch(3, 10**9)
    plain, watched = run_slurm(log, SITE), run_slurm(log, SITE, watch=watch)
    for name in ("start", "end", "by", "restarts"):
        assert np.array_equal(getattr(plain, name), getattr(watched, name))
    assert watch.stopped is None
    assert watch.held is not None


def test_of_a_short_log_too_the_limit_is_named_though_nothing_is_stopped() -> None:
    tight = dataclasses.replace(LIMITED, qos=(Qos("normal", total=Limits(jobs=1)), Qos("high")))
    found = fidelity(recorded(), tight)
    assert found.light == "far"
    assert not found.stopped
    assert found.reasons[0].name == "queue"
    assert "the limit of 1 running job of QOS normal together (GrpJobs)" in found.reasons[0].text


def test_no_policy_is_simulated_where_the_queue_runs_away(tmp_path: Path) -> None:
    site = limited(total=Limits(jobs=4))
    gate = replay_logs(Rules(backfill="slurm", site=site), {"log": steady()})
    refused(EvaluationError, "GrpJobs simulated 1d steady", refuse_runaway, [gate])
    write_site(site, tmp_path / "s.toml")
    refused(
        EvaluationError,
        "GrpJobs simulated 1d steady",
        evaluate,
        steady(),
        ["FCFS", "SAF"],
        site=str(tmp_path / "s.toml"),
    )
