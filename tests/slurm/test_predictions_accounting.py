"""The commands of docs/predictions.md on a live Slurm with accounting: the first update, the script of cron."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyfactory.exports.content import TARGETS
from policyfactory.exports.foresight import SitePredictions
from policyfactory.policy.store import Model
from policyfactory.prediction.history_file import hash_with, key_of, read_history
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from site_history import POLICY, make_site_past
from slurm.orders import usual_site
from support import ROOT

PLACE = "/var/spool/policyfactory/history"
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
    "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=45 State=DOWN",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A cluster with accounting, and the commands of the page for its own history."""

    cluster: Cluster
    state: Path
    first: str
    cron: str

    def run(self, script: str) -> str:
        """Run a script of the page; return what it says."""
        done = subprocess.run(
            ["sh", "-c", script], env=self.cluster.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def end_jobs(self, count: int, body: str) -> None:
        """Let jobs run to their end, and wait until the accounting has them and their last second is over."""

        before = self.accounted("COMPLETED")
        for _ in range(count):
            self.cluster.submit(2, 60, body=body)
        wait_for("the ends in the accounting", lambda: self.accounted("COMPLETED") >= before + count, 60)
        time.sleep(2)

    def accounted(self, state: str) -> int:
        """Return how many jobs the accounting knows in this state: slurmctld tells it of them when it has time."""
        return self.cluster.run("sacct", "-a", "-X", "-n", "-P", "-o", "State").split().count(state)

    def ended(self) -> list[int]:
        """Return how many jobs of each user have ended, by the history."""
        hashed = hash_with(key_of(self.state))
        history = read_history(self.state, hashed)
        past = history.user(hashed(f"u{os.getuid()}"))
        assert past is not None
        assert len(history.users) + len(history.asleep) == 1
        return [past.ended, past.waiting, past.running]

    def priority(self, job: int) -> int:
        return int(self.cluster.show(job)["Priority"])

    def without(self) -> int:
        """Return how many jobs got no prediction."""
        return (self.cluster.log / "slurmctld.log").read_text(errors="replace").count("policyfactory: no prediction")


@pytest.fixture
def site() -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        accounting = stack.enter_context(Accounting(stack.enter_context(short_directory())))
        folder = stack.enter_context(short_directory())
        state = folder / "history"
        foresight = SitePredictions(make_site_past().forests, str(state), 3600.0)
        export = TARGETS["slurm-site-factor-lua"].make(
            Model(POLICY), dataclasses.replace(usual_site(), foresight=foresight)
        )
        cluster = stack.enter_context(
            Cluster(
                folder,
                lines=[*accounting.lines, "JobSubmitPlugins=lua"],
                partitions=PARTITIONS,
                files={"job_submit.lua": export.text},
            )
        )
        command = folder / "bin/policyfactory"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m policyfactory "$@"\n')
        command.chmod(0o755)
        cluster.environment["PATH"] = f"{folder / 'bin'}:{cluster.environment['PATH']}"
        cluster.environment["PYTHONPATH"] = str(ROOT)
        page = (ROOT / "docs/predictions.md").read_text()
        texts = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        first, cron = (text for text in texts if "history update" in text)
        # The folder is there already.
        first = first.partition("\n")[2]
        yield Site(cluster, state, *(block.replace(PLACE, str(state)) for block in (first, cron)))


def test_the_commands_of_the_page_keep_the_history_and_renew(site: Site) -> None:
    site.end_jobs(4, "true")
    before = site.without()
    assert before >= 4
    assert "4 jobs have ended since the last update, 0 wait and 0 run" in site.run(site.first)
    assert site.ended() == [4, 0, 0]
    waits, other = (site.cluster.submit(2, 60, "-p", "closed", *more) for more in ((), ("--nice=5",)))
    assert site.without() == before
    first = site.priority(waits)
    assert site.priority(other) == pytest.approx(first - 5, rel=0.001)
    # Nothing has ended: nothing is renewed. Of the present second more may come.
    wait_for("the waiting jobs in the accounting", lambda: site.accounted("PENDING") == 2, 60)
    time.sleep(2)
    assert site.run(site.cron) == ""
    assert site.ended() == [4, 2, 0]
    assert site.priority(waits) == first
    site.end_jobs(3, "sleep 3")
    assert site.run(site.cron) == ""
    assert site.ended() == [7, 2, 0]
    assert site.priority(waits) != first
    assert site.priority(other) == pytest.approx(site.priority(waits) - 5, rel=0.001)
    assert site.without() == before
    assert site.run(site.cron) == ""
    assert site.ended() == [7, 2, 0]
