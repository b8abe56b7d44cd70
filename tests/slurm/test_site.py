"""A live cluster's own files become a site: what Slurm says of itself is what was read from its slurm.conf."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.site.model import NodeGroup, Outage, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting

LINES = (
    "PriorityWeightAge=1000", "PriorityMaxAge=1:30", "PriorityDecayHalfLife=90", "PriorityFavorSmall=YES",
    "PriorityCalcPeriod=00:02:30", "OverTimeLimit=UNLIMITED", "DefMemPerNode=100",
    "SelectTypeParameters=CR_CPU_Memory", "PriorityFlags=SMALL_RELATIVE_TO_TIME,ACCRUE_ALWAYS",
    "PriorityUsageResetPeriod=Weekly",
)  # fmt: skip
PARTITIONS = (
    "PartitionName=DEFAULT MaxTime=2:30 DefaultTime=1",
    "PartitionName=a Nodes=ALLNODES Default=YES Priority=7",
    "PartitionName=b Nodes=n[1-2],n1 OverSubscribe=EXCLUSIVE MaxTime=INFINITE MinNodes=2 State=INACTIVE",
    "PartitionName=c Nodes=n2 Shared=NO PriorityTier=3 MaxNodes=1 AllowQos=Normal,HIGH",
)


def shown(cluster: Cluster, folder: Path) -> Site:
    """Import what ``scontrol`` shows."""
    parts = [("config",), ("node", "--oneliner"), ("partition", "--oneliner")]
    text = "".join(cluster.run("scontrol", *more, "show", what) for what, *more in parts)
    (folder / "shown.txt").write_text(text)
    return import_slurm(folder / "shown.txt", Reports(), Clock())[0]


def test_slurm_reads_its_own_file_as_we_do(start_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = start_cluster(
        nodes=3, processors=4, scheduler="backfill", parameters="bf_window=60", lines=LINES, partitions=PARTITIONS
    )
    version = ".".join(f"{number:02}" for number in cluster.version)
    written, _ = import_slurm(cluster.configuration, Reports(), Clock(), version)
    theirs = shown(cluster, tmp_path)
    # What is said of them differs.
    bare = [dataclasses.replace(one, not_modelled=(), remarks=()) for one in (theirs, written)]
    assert bare[0] == bare[1]
    assert written.nodes == (NodeGroup("n[1-3]", 4, 1000),)
    # 2.5 minutes are three to Slurm.
    assert (written.priority.calculation_period, written.partitions[0].max_time) == (180.0, 180.0)


@pytest.mark.usefixtures("start_cluster")
def test_the_reports_of_a_cluster_with_accounting_are_read(tmp_path: Path) -> None:
    with short_directory() as first, short_directory() as second, Accounting(first) as accounting:
        lines = [*accounting.lines, "AccountingStorageEnforce=limits,qos", "PriorityWeightFairshare=100"]
        with Cluster(second, nodes=2, processors=4, lines=lines) as cluster:
            for words in (
                ("qos", "high", "Priority=9", "MaxWall=1-12:00:00", "MaxTRESPerUser=cpu=2"),
                ("account", "science", "Fairshare=60", "GrpTRES=cpu=6,mem=1G"),
                ("account", "physics", "parent=science"),
                ("user", "nobody", "account=physics", "Fairshare=parent", "QOS=+high"),
            ):
                cluster.run("sacctmgr", "-i", "add", *words)
            cluster.run("scontrol", "update", "nodename=n2", "state=drain", "reason=a|b")
            reports = Reports(*(tmp_path / name for name in ("dump.cfg", "qos.txt", "events.txt", "reservations.txt")))
            assert reports.dump
            assert reports.qos
            assert reports.events
            assert reports.reservations
            unix = {"SLURM_TIME_FORMAT": "%s"}
            cluster.run("sacctmgr", "dump", "test", f"file={reports.dump}")
            reports.qos.write_text(cluster.run("sacctmgr", "-P", "show", "qos"))
            events = ("sacctmgr", "-P", "show", "event", "all_clusters", "start=2020-01-01")
            # slurmdbd has it about a second later.
            wait_for("the event", lambda: "a|b" in cluster.run(*events), 60)
            reports.events.write_text(cluster.run(*events, environment=unix))
            reports.reservations.write_text(cluster.run("scontrol", "-o", "show", "reservation", environment=unix))
            site, _ = import_slurm(cluster.configuration, reports, Clock())
    assert {(one.account, one.user) for one in site.associations} >= {("science", ""), ("physics", "nobody")}
    assert site.outages == (Outage("n2", site.outages[0].start, drained=True, reason="a|b"),)
    assert site.outages[0].start > 1.7e9
    assert {one.name: one.max_wall for one in site.qos}["high"] == 1.5 * 86400
    assert site.not_modelled == ()
