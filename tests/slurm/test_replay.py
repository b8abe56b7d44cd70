"""A real slurmctld with a fast clock schedules a workload now, and the plain Slurm wants what it starts.

Thirty jobs in each run of the tests; at night every case of `schedulers.replay_cases`, as long as its record, and those
of `schedulers.replay_mixed` and `schedulers.replay_settings` on Slurms of other releases.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from policyfactory.site.model import Association, NodeGroup, Partition, Priority, Qos, Site
from schedulers.processes import require_root
from schedulers.replay import Case, replay, submission
from schedulers.replay_cases import CASES, plain
from schedulers.replay_mixed import MIXED
from schedulers.replay_settings import SETTINGS
from schedulers.replay_site import accounting_commands, minutes, scheduler_parameters, settings
from schedulers.replay_workloads import make_jobs
from schedulers.replays import NIGHT, RATE, case_of, compare, force, record_of, records_of, replay_elsewhere
from support import NIGHTLY

nightly = pytest.mark.skipif(not NIGHTLY, reason="an hour of Slurm's: make nightly")


def test_thirty_jobs_are_started_as_the_plain_slurm_wants() -> None:
    case = Case("thirty", plain(bf_interval=10.0), make_jobs(99, 30))
    record = replay(case, 200, seconds=240)
    assert [len(past.runs) for past in record.past] == [1] * 30
    # Launch and end take some real milliseconds; what is longer was not Slurm's doing.
    lengths = [past.runs[0].end / 1000 - past.start / 1000 for past in record.past]
    assert all(job.run_time <= length < job.run_time + 120 for job, length in zip(case.jobs, lengths, strict=True))
    assert all(len(past.runs[0].nodes) == job.nodes for job, past in zip(case.jobs, record.past, strict=True))
    result = force(record, case.site)
    assert len(result.starts) == 30
    # A machine that is busy with other things is late, and then the state is not quite what the log says.
    assert result.agreement >= 0.96, result
    assert result.lag(0.8) <= 60.0, result


@nightly
@pytest.mark.parametrize("name", list(CASES))
def test_a_replay_repeats_its_record(name: str) -> None:
    case = CASES[name]()
    record = replay(case, RATE)
    result = force(record, case.site)
    assert result.agreement >= 0.98
    before = record_of(name).waits()
    assert sum(record.waits()) == pytest.approx(sum(before), rel=0.35)


@nightly
@pytest.mark.parametrize("name", [*MIXED, *SETTINGS])
@pytest.mark.parametrize("release", ["trixie", "sid"])
def test_a_modern_slurm_starts_what_the_plain_one_wants(release: str, name: str, tmp_path: Path) -> None:
    require_root()
    if not (NIGHT / release / "ready").exists():
        pytest.skip(f"no Slurm of {release} in {NIGHT.name} (.ci/modern-slurm sets it up)")
    replay_elsewhere(release, [name], tmp_path)
    result = force(record_of(name, tmp_path), case_of(name).site)
    # A machine that is busy with other things is late, and then the state is not quite what the log says.
    assert result.agreement >= 0.98


def test_the_settings_of_a_site_are_those_of_slurm() -> None:
    site = Site(
        "test",
        (NodeGroup("n[1-2]", 4, 8000, gpus=2),),
        (Partition("batch", default=True),),
        priority=Priority(age=5, tres={"cpu": 2.5}, flags=("FAIR_TREE",)),
        enforced=("limits",),
    )
    lines = settings(site)
    for line in (
        "PriorityType=priority/multifactor",
        "SelectTypeParameters=CR_CPU",
        "GresTypes=gpu",
        "PriorityWeightAge=5",
        "PriorityMaxAge=7-00:00:00",
        "PriorityCalcPeriod=5",
        "PriorityWeightTRES=cpu=2.5",
        "PriorityFlags=FAIR_TREE",
        "AccountingStorageEnforce=limits",
    ):
        assert line in lines
    parameters = list(scheduler_parameters(dataclasses.replace(site, scheduling=plain(bf_continue=True).scheduling)))
    assert {"bf_interval=30", "bf_window=1440", "bf_continue", "default_queue_depth=100"} <= set(parameters)


def test_qos_and_associations_are_told_to_sacctmgr() -> None:
    site = dataclasses.replace(
        plain(),
        qos=(Qos("normal"), Qos("high", priority=3, flags=("NoReserve",))),
        associations=(Association("physics", shares=2.0), Association("physics", "bin", "physics", float("nan"))),
    )
    assert list(accounting_commands(site)) == [
        ["modify", "qos", "normal", "set", "priority=0"],
        ["add", "qos", "high", "priority=3", "Flags=NoReserve"],
        ["add", "account", "physics", "fairshare=2"],
        ["add", "user", "bin", "account=physics", "fairshare=parent"],
    ]


def test_a_job_is_submitted_as_its_users_would() -> None:
    case = CASES["gpus"]()
    job = next(job for job in case.jobs if job.gpus and job.nodes == 2)
    words = submission(job, 100, 0)
    assert {"-N", "2", "--ntasks-per-node=4", "--gres=gpu:4", f"--mem={job.memory // 2}M"} <= set(words)
    later = next(job for job in CASES["begin"]().jobs if job.eligible > job.submit)
    assert any(word.startswith("--begin=1970-01-01T") for word in submission(later, 100, 0))
    after = next(job for job in CASES["dependencies"]().jobs if job.dependency)
    assert f"--dependency={after.dependency}" in submission(after, 100, 0)


@pytest.mark.parametrize(("seconds", "text"), [(60.0, "1"), (90_000.0, "1-01:00:00"), (float("inf"), "INFINITE")])
def test_times_are_written_as_slurm_reads_them(seconds: float, text: str) -> None:
    assert minutes(seconds) == text


def test_whole_schedules_are_as_near_as_slurm_is_to_itself() -> None:
    schedules = compare(records_of("fifo"), CASES["fifo"]().site)
    assert len(schedules.real) >= 2
    assert schedules.difference == pytest.approx(0, abs=0.1)
    assert schedules.away <= 1.5 * schedules.itself
