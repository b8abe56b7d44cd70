"""What slurm.conf and the table of QOS say of running jobs that are stopped for others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from policyfactory.core.errors import SiteError
from policyfactory.site.file import read_site, write_site
from policyfactory.site.model import Preemption, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.site.values import LONGEST_TIME
from policyfactory.workload.accounting.times import Clock
from refusals import refused

HEAD = "ClusterName=here\nSelectType=select/cons_tres\nNodeName=n[1-4] CPUs=4\n"
BATCH = "PartitionName=batch Nodes=ALL Default=YES PriorityTier=10\n"
QOS = "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode\n"


def site_of(folder: Path, text: str, qos: str = "") -> Site:
    path, table = folder / "slurm.conf", folder / "qos.txt"
    path.write_text(HEAD + text)
    table.write_text(QOS + qos)
    return import_slurm(path, Reports(qos=table if qos else None), Clock(), "24.11")[0]


def test_partitions_say_whose_jobs_are_stopped(tmp_path: Path) -> None:
    text = f"""PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PreemptExemptTime=00:10:00
PreemptParameters=youngest_first,reorder_count=3,strict_order,send_user_signal,min_exempt_priority=500
{BATCH}PartitionName=idle Nodes=ALL PreemptMode=CANCEL GraceTime=120
PartitionName=safe Nodes=ALL PreemptMode=off
"""
    site = site_of(tmp_path, text)
    assert site.preemption == Preemption("partition_prio", "requeue", 600.0, True, True, 3, 500.0)
    assert [one.preempt_mode for one in site.partitions] == ["", "cancel", "off"]
    assert [one.grace_time for one in site.partitions] == [0.0, 120.0, 0.0]
    assert not site.not_modelled
    write_site(site, tmp_path / "site.toml")
    assert read_site(tmp_path / "site.toml") == site


def test_so_do_qos(tmp_path: Path) -> None:
    rows = "normal|0|00:00:00|||cluster\nidle|0|00:02:00|||cancel\nhigh|9|00:00:00|normal,idle|00:01:30|off\n"
    site = site_of(tmp_path, f"PreemptType=preempt/qos\nPreemptMode=REQUEUE\nJobRequeue=0\n{BATCH}", rows)
    assert site.preemption == Preemption("qos", "requeue", job_requeue=False)
    assert [one.preempts for one in site.qos] == [(), (), ("normal", "idle")]
    assert [one.preempt_mode for one in site.qos] == ["", "cancel", ""]
    assert [one.grace_time for one in site.qos] == [0.0, 120.0, 0.0]
    assert [one.exempt_time for one in site.qos] == [math.inf, math.inf, 90.0]
    write_site(site, tmp_path / "site.toml")
    assert read_site(tmp_path / "site.toml") == site


def test_what_it_was_called_before_is_read(tmp_path: Path) -> None:
    text = "SchedulerParameters=preempt_youngest_first,preempt_reorder_count=2,preempt_strict_order\n"
    site = site_of(tmp_path, f"PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n{text}{BATCH}")
    assert site.preemption == Preemption("partition_prio", "cancel", 0.0, True, True, 2)
    assert not site.not_modelled


def test_a_cluster_without_says_nothing(tmp_path: Path) -> None:
    rows = "normal|0|00:00:00|||cluster\nhigh|9|00:02:00|normal|00:01:00|requeue\n"
    text = "PreemptParameters=youngest_first\nPreemptExemptTime=-1\n"
    site = site_of(tmp_path, f"{text}{BATCH}PartitionName=idle Nodes=ALL PreemptMode=CANCEL GraceTime=9\n", rows)
    assert site.preemption == Preemption()
    assert {one.preempt_mode for one in (*site.partitions, *site.qos)} == {""}
    assert not site.not_modelled


@pytest.mark.parametrize("mode", ["SUSPEND,GANG", "GANG,SUSPEND"])
def test_jobs_that_are_suspended_are_listed(tmp_path: Path, mode: str) -> None:
    site = site_of(tmp_path, f"PreemptType=preempt/partition_prio\nPreemptMode={mode}\n{BATCH}")
    assert not site.preemption.on
    (listed,) = site.not_modelled
    assert (listed.name, listed.value, listed.place) == ("PreemptMode", mode, "slurm.conf:5")
    assert "suspended" in listed.effect


def test_so_are_those_of_one_partition_or_qos_and_those_within_a_qos(tmp_path: Path) -> None:
    text = f"PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n{BATCH}"
    site = site_of(tmp_path, f"{text}PartitionName=idle Nodes=ALL PreemptMode=SUSPEND\n")
    assert [one.preempt_mode for one in site.partitions] == ["", "off"]
    assert [one.name for one in site.not_modelled] == ["PartitionName=idle PreemptMode"]
    rows = "normal|0|00:00:00|||suspend\nhigh|9|00:00:00|normal|00:01:00|cancel,within\n"
    site = site_of(tmp_path, f"PreemptType=preempt/qos\nPreemptMode=REQUEUE,GANG\n{BATCH}", rows)
    assert [one.preempt_mode for one in site.qos] == ["off", "cancel"]
    assert [one.name for one in site.not_modelled] == ["PreemptMode", "QOS normal PreemptMode", "QOS high PreemptMode"]


def test_what_slurm_does_not_take_is_refused(tmp_path: Path) -> None:
    text = f"PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n{BATCH}"
    refused(SiteError, "slurm.conf:5 PreemptMode SOMETIMES", site_of, tmp_path, text.replace("REQUEUE", "SOMETIMES"))
    refused(SiteError, "GraceTime soon", site_of, tmp_path, f"{text}PartitionName=idle Nodes=ALL GraceTime=soon\n")
    refused(SiteError, "PreemptExemptTime later", site_of, tmp_path, f"PreemptExemptTime=later\n{text}")


def test_a_qos_stops_only_those_that_are_there(tmp_path: Path) -> None:
    rows = "normal|0|00:00:00|||cluster\nhigh|9|00:00:00|normal,gone||cluster\n"
    site = site_of(tmp_path, f"PreemptType=preempt/qos\nPreemptMode=CANCEL\n{BATCH}", rows)
    assert site.qos[1].preempts == ("normal",)
    assert any("left out" in remark for remark in site.remarks)
    write_site(site, tmp_path / "site.toml")
    text = (tmp_path / "site.toml").read_text()
    (tmp_path / "site.toml").write_text(text.replace('preempts = [\n  "normal"', 'preempts = [\n  "gone"'))
    refused(SiteError, "QOS high gone", read_site, tmp_path / "site.toml")


BY_TIER = f"PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n{BATCH}"


def test_a_grace_time_without_an_end_is_the_longest_time(tmp_path: Path) -> None:
    for text, grace in (("UNLIMITED", LONGEST_TIME), ("infinite", LONGEST_TIME), ("4294967295", 2**32 - 1)):
        site = site_of(tmp_path, f"{BY_TIER}PartitionName=idle Nodes=ALL GraceTime={text}\n")
        assert site.partitions[1].grace_time == grace
        write_site(site, tmp_path / "site.toml")
        assert read_site(tmp_path / "site.toml") == site


def test_parameters_that_slurmctld_does_not_take_are_refused_or_corrected(tmp_path: Path) -> None:
    for value in ("-5", "99999999999999999999"):
        text = f"PreemptParameters=min_exempt_priority={value}\n{BY_TIER}"
        refused(SiteError, f"slurm.conf:4 min_exempt_priority {value}", site_of, tmp_path, text)
        site = site_of(tmp_path, f"PreemptParameters=reorder_count={value}\n{BY_TIER}")
        assert site.preemption.reorder_count == 1
        assert any(f"reorder_count={value} (slurm.conf:4)" in remark for remark in site.remarks)
        write_site(site, tmp_path / "site.toml")
        assert read_site(tmp_path / "site.toml") == site


def test_preemption_without_a_mode_is_listed(tmp_path: Path) -> None:
    text = f"PreemptType=preempt/partition_prio\n{BATCH}PartitionName=idle Nodes=ALL PreemptMode=REQUEUE\n"
    site = site_of(tmp_path, text)
    assert not site.preemption.on
    assert [one.name for one in site.not_modelled] == ["PreemptType"]


def test_unknown_parameters_are_listed(tmp_path: Path) -> None:
    site = site_of(tmp_path, f"PreemptParameters=send_user_signal,yongest_first,reclaim_licenses\n{BY_TIER}")
    names = ["PreemptParameters yongest_first", "PreemptParameters reclaim_licenses"]
    assert [one.name for one in site.not_modelled] == names
    assert "did you mean youngest_first" in site.not_modelled[0].effect
