"""Why jobs wait, beside a real Slurm: priorities are those of sprio, reasons those of squeue, in every form."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyfactory.simulation.slurm.explanation import explain_queue
from policyfactory.site.model import Site
from policyfactory.site.slurm.accounts import read_fair_shares
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock, machine_zone
from policyfactory.workload.snapshot import SQUEUE, read_snapshot
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting

LINES = (
    "AccountingStorageEnforce=associations,limits,qos", "PriorityWeightFairshare=100000", "PriorityWeightAge=100000",
    "PriorityMaxAge=1-0", "PriorityWeightJobSize=1000", "PriorityWeightPartition=2000", "PriorityWeightQOS=3000",
    "PriorityWeightAssoc=500", "PriorityWeightTRES=CPU=700,Mem=300", "PriorityCalcPeriod=1",
    "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=10",
)  # fmt: skip
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES DefaultTime=60 PriorityJobFactor=10",
    "PartitionName=short Nodes=n[1-2] MaxTime=60 DefaultTime=10 PriorityJobFactor=30 PriorityTier=2",
    "PartitionName=away Nodes=n1 State=DOWN",
)
SLURMS_WORDS = {
    "QOSMaxCpuPerUserLimit": {"limit"}, "AssocGrpCpuLimit": {"limit"}, "JobHeldUser": {"held"}, "BeginTime": {"begin"},
    "Dependency": {"dependency"}, "PartitionDown": {"partition"}, "Resources": {"nodes", "limit"},
    "Priority": {"nodes", "priority", "limit"}, "JobArrayTaskLimit": {"array"}, "PartitionConfig": {"never"},
    "ReqNodeNotAvail": {"nodes", "priority", "limit"},
}  # fmt: skip
COMMANDS = {
    "queue.json": ("squeue", "--json"),
    "one-line.txt": ("scontrol", "-o", "show", "job"),
    "lines.txt": ("sh", "-c", SQUEUE),
}


@pytest.mark.usefixtures("start_cluster")
def test_priorities_and_reasons_are_those_of_the_real_slurm(tmp_path: Path) -> None:
    with short_directory() as first, short_directory() as second, Accounting(first) as accounting:
        lines = [*accounting.lines, *LINES]
        with Cluster(
            second, nodes=4, processors=4, scheduler="backfill", lines=lines, partitions=PARTITIONS
        ) as cluster:
            site = users_of(cluster, tmp_path)
            submit(cluster)
            compared = 0
            for name, command in COMMANDS.items():
                compared += compare(cluster, site, tmp_path / name, command)
    assert compared >= 3 * 6


def users_of(cluster: Cluster, folder: Path) -> Site:
    """Add two accounts of root, and return the site as it is imported."""
    for words in (
        ("qos", "high", "Priority=9", "MaxTRESPerUser=cpu=4"),
        ("account", "science", "Fairshare=60", "GrpTRES=cpu=12"),
        ("account", "physics", "parent=science"),
        ("account", "bio", "Fairshare=40"),
        ("user", "root", "account=physics", "Fairshare=3", "QOS=+high", "Priority=7"),
        ("user", "root", "account=bio", "Fairshare=1", "QOS=+high"),
    ):
        cluster.run("sacctmgr", "-i", "add", *words)
    wait_for("the association", lambda: "physics" in cluster.run("scontrol", "show", "assoc_mgr"))
    shown = [cluster.run("scontrol", "show", "config")]
    shown += [cluster.run("scontrol", "-o", "show", what) for what in ("node", "partition")]
    (folder / "config.txt").write_text("".join(shown))
    cluster.run("sacctmgr", "dump", "test", f"file={folder}/dump.cfg")
    (folder / "qos.txt").write_text(cluster.run("sacctmgr", "-P", "show", "qos"))
    reports = Reports(folder / "dump.cfg", folder / "qos.txt")
    return import_slurm(folder / "config.txt", reports, Clock())[0]


def submit(cluster: Cluster) -> None:
    """Fill the nodes, and let a job wait for each reason that there is."""
    sleep = "sleep 3600"
    first = cluster.submit(8, 20, "-N", 2, "-A", "physics", body=sleep)
    for cores, minutes, *more in ((3, 60, "-A", "bio", "--qos=high"), (4, 30, "-A", "bio"), (1, 50, "-A", "bio")):
        cluster.wait_state(cluster.submit(cores, minutes, *more, body=sleep), "RUNNING")
    waiting = [
        (2, "-A", "bio", "--qos=high"), (6, "-A", "physics"), (1, "-A", "bio", "--hold"),
        (1, "-A", "bio", "--begin=now+1hour"), (1, "-A", "bio", "-d", f"afterok:{first}"),
        (1, "-A", "bio", "-p", "away"), (5, "-A", "bio", "-p", "short", "--nice=50"),
        (9, "-A", "bio", "--mem-per-cpu=100"), (1, "-A", "bio", "-a", "1-5%2", "-c", 2),
        (4, "-A", "bio", "-N", 4, "--exclusive"),
    ]  # fmt: skip
    numbers = [cluster.submit(cores, 10, *more) for cores, *more in waiting]
    cluster.run("scontrol", "update", f"jobid={numbers[-1]}", "SiteFactor=70")
    # Once all have been looked at, and their priorities have been calculated since.
    wait_for("ages", lambda: all(int(row["AGE"]) > 0 for row in sprio(cluster)), 150, pause=1.0)


def sprio(cluster: Cluster) -> list[dict[str, str]]:
    """Return sprio's rows, by its columns."""
    names = (
        "JOB",
        "PART",
        "PRIORITY",
        "SITE",
        "AGE",
        "FAIRSHARE",
        "JOBSIZE",
        "PARTITION",
        "QOS",
        "ASSOC",
        "TRES",
        "NICE",
    )
    out = cluster.run("sprio", "-h", "-o", "%i|%r|%Y|%S|%A|%F|%J|%P|%Q|%B|%T|%N")
    return [dict(zip(names, line.split("|"), strict=True)) for line in out.splitlines()]


def compare(cluster: Cluster, site: Site, path: Path, command: tuple[str, ...]) -> int:
    """Compare all that sprio and squeue say of this moment; return how many priorities were compared."""
    for _ in range(5):
        before = sprio(cluster)
        path.write_text(cluster.run(*command))
        (path.parent / "shares.txt").write_text(cluster.run("sshare", "-a", "-l", "-P"))
        if sprio(cluster) == before:
            break
    shares = read_fair_shares(path.parent / "shares.txt")
    found = explain_queue(read_snapshot(path, Clock(machine_zone()[0])), site, shares)
    rows = {(int(row["JOB"]), row["PART"]): row for row in before}
    told = cluster.version >= (26, 5) and path.name == "lines.txt"  # whole nodes are not
    compared = 0
    for one in found.jobs:
        assert one.waits[0].kind in SLURMS_WORDS[one.job.reason], (one.job.name, one.job.reason, one.waits)
        row = rows.get((one.job.number, one.partition))
        if row is None or (told and one.job.nodes == 4):
            continue
        theirs = {
            name: float(row[name]) for name in ("SITE", "AGE", "FAIRSHARE", "JOBSIZE", "PARTITION", "QOS", "ASSOC")
        }
        theirs |= {f"TRES {part.split('=')[0].lower()}": float(part.split("=")[1]) for part in row["TRES"].split(",")}
        theirs["NICE"] = -float(row["NICE"])
        assert {name: pytest.approx(value, abs=1.01) for name, value in theirs.items()} == dict(one.terms), row
        assert sum(one.terms.values()) == pytest.approx(float(row["PRIORITY"]), abs=2.5)
        compared += 1
    return compared
