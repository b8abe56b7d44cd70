"""The way of an export through a live Slurm: logged only, compared, installed, and removed with its own script."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policyfactory.exports.export import export
from policyfactory.policy.policy import Policy
from policyfactory.review.shadow import read_shadow, shadow
from policyfactory.review.times import Reading
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from slurm.plugin import slurm_source

JOBS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        accounting = stack.enter_context(Accounting(stack.enter_context(short_directory())))
        folder = stack.enter_context(short_directory())
        lines = (*accounting.lines, "PriorityCalcPeriod=1")
        yield stack.enter_context(Cluster(folder, nodes=4, lines=lines))


@pytest.fixture(autouse=True)
def _nothing_waits(cluster: Cluster) -> None:
    cluster.empty()


def write_conf(cluster: Cluster, name: str, value: str | None) -> None:
    """Set a line of slurm.conf, or take it out, as an administrator with an editor."""
    lines = [line for line in cluster.configuration.read_text().splitlines() if not line.startswith(f"{name}=")]
    cluster.configuration.write_text("\n".join([*lines, *([f"{name}={value}"] if value else [])]) + "\n")


def script(cluster: Cluster, path: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        ["sh", path, *arguments], env=cluster.environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def run_jobs(cluster: Cluster) -> list[int]:
    """Let jobs wait behind one that has the machine, then run; return them in the order of their starts."""
    drawn = random.Random(3)
    blocker = cluster.hold_all()
    jobs = [cluster.submit(drawn.choice((1, 8, 24, 32)), drawn.randint(1, 90), body="sleep 1") for _ in range(JOBS)]
    cluster.run("scancel", blocker)
    return cluster.wait_starts(jobs, 200)


def dump(cluster: Cluster, folder: Path) -> Path:
    """Write the accounting as docs/afternoon.md says."""
    wait_for(
        "the jobs in the accounting",
        lambda: cluster.run("sacct", "-a", "-X", "-n", "-P", "-o", "State").split().count("COMPLETED") >= JOBS,
        60,
    )
    file = folder / "accounting.txt"
    environment = cluster.environment | {"SLURM_TIME_FORMAT": "%s"}
    line = RECOMMENDED.partition("sacct")[2]
    done = subprocess.run(
        ["bash", "-c", f"sacct {line}".split(">")[0]], env=environment, capture_output=True, text=True, check=True
    )
    file.write_text(done.stdout)
    return file


def site_factor(cluster: Cluster, job: int) -> int:
    return int(cluster.run("sprio", "-h", "-j", job, "-o", "%S"))


def test_from_log_only_to_shadow_to_installed_to_removed(cluster: Cluster, tmp_path: Path) -> None:
    policy = Policy("SAFT", "p*q")
    lua = cluster.folder / "job_submit.lua"
    # Log only: scores are logged, and nothing is changed.
    export(policy, "slurm-site-factor-lua", tmp_path / "job_submit.lua", log_only=True)
    lua.write_text((tmp_path / "job_submit.lua").read_text())
    write_conf(cluster, "JobSubmitPlugins", "lua")
    cluster.restart()
    started = run_jobs(cluster)
    waiting = [cluster.hold_all(), cluster.submit(4, 10)]
    assert site_factor(cluster, waiting[1]) == 0
    cluster.run("scontrol", "update", f"JobId={waiting[1]}", "Nice=0")
    log = cluster.log / "slurmctld.log"
    lines = read_shadow(log).lines
    assert len(lines) == JOBS + 3 + 1  # two that hold the machine, one that waits, and its update
    assert lines[-1].job == str(waiting[1])
    assert site_factor(cluster, waiting[1]) == 0
    assert all(0 <= line.cost_us < 1e5 for line in lines)
    # Shadow: the numbers are those of the formula, and the order of the starts was another.
    found = shadow(log, [dump(cluster, tmp_path)], Reading(processors=cluster.total))
    assert found.log.policies == ("saft",)
    by_job = {
        found.accounting.job[row]: line for row, line in zip(found.matched.rows, found.matched.lines, strict=True)
    }
    assert {str(job) for job in started} <= set(by_job)
    areas = [by_job[str(job)].time * by_job[str(job)].processors for job in started]
    numbers = [by_job[str(job)].number for job in started]
    assert sorted(range(JOBS), key=lambda at: areas[at]) == sorted(range(JOBS), key=lambda at: -numbers[at])
    assert found.pairs.pairs > 300
    assert found.pairs.tau < 0.9
    # Removing a log-only export changes no job.
    uninstall = tmp_path / "job_submit.uninstall.sh"
    assert "would: move" in script(cluster, uninstall)
    assert lua.exists()
    script(cluster, uninstall, "jobs", code=1)
    assert "doing: take lua out" in script(cluster, uninstall, "remove")
    cluster.restart()
    assert "changed no job" in script(cluster, uninstall, "jobs")
    assert "nothing of this export" in script(cluster, uninstall, "remove")
    # Installed: the same formula sets the numbers that were logged.
    cluster.run("scancel", *waiting)
    export(policy, "slurm-site-factor-lua", tmp_path / "job_submit.lua", overwrite=True)
    lua.write_text((tmp_path / "job_submit.lua").read_text())
    write_conf(cluster, "JobSubmitPlugins", "lua")
    cluster.restart()
    waiting = [cluster.hold_all(), cluster.submit(4, 10), cluster.submit(2, 10, "-a", "1-3"), cluster.submit(1, 5)]
    cluster.run("scontrol", "hold", waiting[3])
    assert site_factor(cluster, waiting[1]) == lines[-1].number
    # Removed: what is another's stays, then all is as before; again, there is nothing to do.
    own = lua.read_text()
    lua.write_text("-- the site's own\nfunction slurm_job_submit() return slurm.SUCCESS end\n")
    assert "not of policyfactory" in script(cluster, uninstall, "remove")
    lua.write_text(own)
    script(cluster, uninstall, "remove")
    assert not lua.exists()
    assert "JobSubmitPlugins" not in cluster.configuration.read_text()
    cluster.restart()
    said = script(cluster, uninstall, "jobs")
    assert f"job {waiting[1]}: site_factor" in said
    assert site_factor(cluster, waiting[1]) == 0
    cluster.run("scontrol", "release", waiting[3])
    assert cluster.show(waiting[3])["Priority"] != "0"
    again = script(cluster, uninstall, "jobs").splitlines()
    assert all("not shown" in line for line in again), again
    cluster.empty()


def test_the_plugin_logs_changes_nothing_and_is_removed(cluster: Cluster, tmp_path: Path) -> None:
    source = slurm_source()
    export(Policy("AGED", "p - 100*w"), "slurm-site-factor-c", tmp_path / "c", log_only=True)
    build = ["make", "-C", str(tmp_path / "c"), f"SLURM_SOURCE={source}", "CFLAGS=-O2 -Werror"]
    subprocess.run(build, check=True, capture_output=True)
    (own,) = Path("/usr/lib").glob("*/slurm-wlm")
    write_conf(cluster, "PluginDir", f"{tmp_path / 'c'}:{own}")
    write_conf(cluster, "PrioritySiteFactorPlugin", "site_factor/policyfactory")
    cluster.restart()
    log = cluster.log / "slurmctld.log"
    blocker = cluster.hold_all()
    job = cluster.submit(4, 10)
    array = cluster.submit(2, 20, "-a", "5-6")
    time.sleep(2)
    cluster.run("scontrol", "update", f"JobId={job}", "Nice=0")
    assert site_factor(cluster, job) == 0
    lines = [line for line in read_shadow(log).lines if line.job == str(job)]
    assert len(lines) >= 2
    assert lines[-1].number > lines[0].number  # it has waited
    assert (lines[-1].time, lines[-1].processors) == (600, 4)
    assert lines[-1].present > 0
    assert any(line.job.startswith(str(array)) for line in read_shadow(log).lines)
    uninstall = tmp_path / "c" / "uninstall.sh"
    plugin = tmp_path / "c" / "site_factor_policyfactory.so"
    script(cluster, uninstall)
    assert plugin.exists()
    script(cluster, uninstall, "jobs", code=1)
    said = script(cluster, uninstall, "remove")
    assert "PrioritySiteFactorPlugin" in said
    assert not plugin.exists()
    assert "PrioritySiteFactorPlugin" not in cluster.configuration.read_text()
    cluster.restart()
    assert "changed no job" in script(cluster, uninstall, "jobs")
    assert site_factor(cluster, job) == 0
    write_conf(cluster, "PluginDir", None)
    cluster.run("scancel", blocker)
    cluster.empty()
    assert "nothing of this export" in script(cluster, uninstall, "remove")


def test_scripts_of_the_queue_log_and_are_removed(
    cluster: Cluster, tmp_path: Path, start_cluster: Callable[..., Cluster]
) -> None:
    policy = Policy("SQF", "q")
    blocker = cluster.hold_all()
    jobs = [cluster.submit(size, 10) for size in (8, 2, 5)]
    tasks = cluster.submit(1, 10, "-a", "3-4")
    before = cluster.run("squeue", "-h", "-a", "-r", "-o", "%i %Q %y")
    for target in ("slurm-nice", "slurm-weights"):
        file = tmp_path / f"{target}.sh"
        export(policy, target, file, log_only=True, processors=32, nodes=4)
        logged = tmp_path / f"{target}.log"
        logged.write_text(script(cluster, file, "log"))
        found = {line.job: line for line in read_shadow(logged).lines}
        assert set(found) == {*map(str, jobs), f"{tasks}_3", f"{tasks}_4"}
        assert found[str(jobs[1])].number >= found[str(jobs[2])].number >= found[str(jobs[0])].number
        assert "only logs" in script(cluster, file, "set", code=2)
    assert cluster.run("squeue", "-h", "-a", "-r", "-o", "%i %Q %y") == before
    # Nice values that were set are taken away again.
    export(policy, "slurm-nice", tmp_path / "nice.sh", overwrite=True)
    script(cluster, tmp_path / "nice.sh", "set")
    set_now = cluster.run("squeue", "-h", "-a", "-r", "-o", "%y").split()
    uninstall = tmp_path / "nice.uninstall.sh"
    assert script(cluster, uninstall).count("would: set") == sum(value != "0" for value in set_now)
    script(cluster, uninstall, "remove")
    assert set(cluster.run("squeue", "-h", "-a", "-r", "-o", "%y").split()) == {"0"}
    assert not script(cluster, uninstall, "remove")
    cluster.run("scancel", blocker)
    cluster.empty()


def test_weights_are_taken_out_and_the_lines_of_before_count_again(cluster: Cluster, tmp_path: Path) -> None:
    export(Policy("SQF", "q"), "slurm-weights", tmp_path / "policyfactory_weights.conf", processors=32, nodes=4)
    before = cluster.configuration.read_text()
    write_conf(cluster, "PriorityWeightAge", "7")
    lines = cluster.configuration.read_text().replace("PriorityWeightAge", "#policyfactory PriorityWeightAge")
    cluster.configuration.write_text(lines + "Include policyfactory_weights.conf\n")
    (cluster.folder / "policyfactory_weights.conf").write_text((tmp_path / "policyfactory_weights.conf").read_text())
    cluster.restart()
    uninstall = tmp_path / "policyfactory_weights.uninstall.sh"
    assert "would: take the line Include" in script(cluster, uninstall)
    script(cluster, uninstall, "remove")
    assert cluster.configuration.read_text() == before + "PriorityWeightAge=7\n"
    assert not (cluster.folder / "policyfactory_weights.conf").exists()
    cluster.restart()
    assert "PriorityWeightAge       = 7" in cluster.run("scontrol", "show", "config")
    assert "nothing of this export" in script(cluster, uninstall, "remove")
    assert os.access(uninstall, os.X_OK)
