"""A real slurmctld with a fast clock stops running jobs for others, and the plain Slurm wants what it starts."""

from __future__ import annotations

import pytest

from schedulers.replay import replay
from schedulers.replay_preemption import CASES, by_partition, by_qos, count_stopped, record_of, site_of
from schedulers.replay_site import accounting_commands, partition_line, scheduler_parameters, settings
from schedulers.replays import RATE, compare, force
from support import NIGHTLY


@pytest.mark.skipif(not NIGHTLY, reason="minutes of Slurm's: make nightly")
@pytest.mark.parametrize("name", list(CASES))
def test_what_slurm_starts_now_is_wanted(name: str) -> None:
    record = replay(CASES[name](), RATE, seconds=600)
    assert count_stopped(record) > 3
    assert force(record, site_of(record)).agreement >= 0.96


@pytest.mark.parametrize("name", list(CASES))
def test_what_slurm_started_is_wanted(name: str) -> None:
    record = record_of(name)
    assert count_stopped(record) >= 6
    assert force(record, site_of(record)).agreement == 1.0
    # Mean waits of a whole schedule each.
    assert compare([record], site_of(record)).difference == pytest.approx(0, abs=0.03)


def test_a_site_with_preemption_is_told_to_slurm() -> None:
    of_idle = {"preempt_mode": "cancel", "grace_time": 60.0}
    site = by_partition("requeue", of_idle=of_idle, exempt_time=90.0, youngest_first=True)
    lines = settings(site)
    for line in ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE", "PreemptExemptTime=00:01:30"):
        assert line in lines
    assert "preempt_youngest_first" in list(scheduler_parameters(site))
    assert "PreemptMode=CANCEL GraceTime=60" in partition_line(site.partitions[1], "n[1-16]")
    assert "preempt=low" in next(words for words in accounting_commands(by_qos("cancel")) if "high" in words)
