"""Slurm's own files as a site. Those in real/ were written by a Slurm 22.05.8; folders and host are renamed."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from pathlib import Path

import pytest

from policyfactory.core.errors import InputError, SiteError
from policyfactory.site.file import UNKNOWN, check_site, dump_site, read_site, write_site
from policyfactory.site.fits import lay_out
from policyfactory.site.model import (
    Association,
    Limits,
    NodeGroup,
    NotModelled,
    Outage,
    Partition,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
)
from policyfactory.site.slurm.conf import read_conf
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock

REAL = Path(__file__).parent / "real"
REPORTS = Reports(REAL / "dump.cfg", REAL / "qos.txt", REAL / "events.txt", REAL / "reservations.txt")
SMALL = "ClusterName=test\nNodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n"


def site_of(folder: Path, text: str, reports: Reports | None = None) -> Site:
    (folder / "slurm.conf").write_text(text)
    return import_slurm(folder / "slurm.conf", reports or Reports(), Clock())[0]


def missing(site: Site) -> dict[str, str]:
    return {one.name: one.place for one in site.not_modelled}


# Genuine files. ------------------------------------------------------------------------------------------------------


def test_a_real_cluster_is_read() -> None:
    site, inputs = import_slurm(REAL / "slurm.conf", REPORTS, Clock())
    assert set(inputs) == {"slurm.conf", "dump.cfg", "qos.txt", "events.txt", "reservations.txt"}
    assert site.name == "test"
    assert site.nodes == (NodeGroup("n[1-4]", cores=8, memory=1000),)
    assert site.partitions == (
        Partition("batch", "n[1-4]", default=True, tier=10, max_time=172800.0, default_time=3600.0),
        Partition(
            "short", "n[1-2]", job_factor=5, max_time=3600.0, default_time=3600.0, max_nodes=1, qos="normal",
            allowed_accounts=("phys", "chem"), allowed_qos=("normal", "high"),
            default_memory_per_core=20,
        ),
        Partition("whole", "n[3-4]", max_time=172800.0, default_time=3600.0, exclusive=True),
    )  # fmt: skip
    assert site.enforced == ("associations", "limits", "qos", "safe")
    assert site.priority == Priority(
        age=1000, fair_share=10000, job_size=100, partition=500, qos=2000,
        tres={"cpu": 1000.0, "mem": 200.0, "gres/gpu": 3000.0}, max_age=7.5 * 86400, calculation_period=180.0,
        half_life=14 * 86400.0, flags=("SMALL_RELATIVE_TO_TIME", "MAX_TRES"),
    )  # fmt: skip
    assert site.scheduling == Scheduling(
        select="cores+memory", default_queue_depth=1000, partition_job_depth=1000, sched_interval=1.0,
        batch_sched_delay=0.0, bf_interval=1.0, bf_window=7 * 86400.0, bf_resolution=120.0, bf_max_job_user=10,
        bf_continue=True, default_memory_per_core=10, kill_overrun=300.0,
    )  # fmt: skip


def test_its_accounts_and_times_are_read() -> None:
    site, _ = import_slurm(REAL / "slurm.conf", REPORTS, Clock())
    assert site.qos == (
        Qos("normal"),
        Qos(
            "high", 100, 1.5 * 86400, Limits(20, 40, cores=16, memory=1024), Limits(3, 5, cores=8, gpus=2),
            Limits(7, 9, nodes=3), Limits(nodes=2), 0.5, ("NoReserve",), ("normal",),
        ),
    )  # fmt: skip
    assert Association("root", qos=("normal",)) in site.associations
    assert (
        Association("science", shares=60.0, max_wall=36000.0, total=Limits(10, cores=24, memory=3000))
        in site.associations
    )
    assert Association("phys", "", "science", 20.0, own=Limits(4), per_job=Limits(cores=8)) in site.associations
    assert Association("chem", "nobody", shares=math.nan) in site.associations
    assert (
        Association("phys", "daemon", "", 3.0, own=Limits(submitted=6), default_qos="high", qos=("high", "normal"))
        in site.associations
    )
    down, drained = site.outages
    assert down == Outage("n3", 1795454727.0, 1795454729.0, reason="test")
    assert drained == Outage("n4", 1795454727.0, drained=True, reason="bad disk|x")
    first = site.reservations[0]
    flags = ("MAINT", "ALL_NODES")
    assert first == Reservation("maint", "n[1-4]", 1893484800.0, 1893492000.0, ("root",), flags=flags)


def test_what_it_has_and_is_not_modelled_is_listed_with_its_place() -> None:
    site, _ = import_slurm(REAL / "slurm.conf", REPORTS, Clock())
    lines = (REAL / "slurm.conf").read_text().splitlines()
    found = missing(site)
    assert lines[int(found["Licenses"].rpartition(":")[2]) - 1].startswith("Licenses=")
    assert {
        "SchedulerParameters defer", "SchedulerParameters bf_busy_nodes",
        "QOS high GrpTRESMins", "QOS high GrpWall", "QOS high MinTRES",
        "Account phys GrpTRESRunMins", "User games Partition", "reservation class Flags DAILY",
        "reservation cores CoreCnt", "reservation maint Users", "reservation class Accounts", "reservation cores Users",
    } == set(found) - {"Licenses"}  # fmt: skip
    assert not any(one.effect.startswith(UNKNOWN) for one in site.not_modelled)


def test_what_scontrol_shows_is_the_same_site() -> None:
    """Slurm writes its defaults out there: so ours are its own."""
    written, _ = import_slurm(REAL / "slurm.conf", Reports(), Clock(), "22.05")
    shown, _ = import_slurm(REAL / "shown.txt", Reports(), Clock())
    assert dataclasses.replace(shown, not_modelled=(), remarks=()) == dataclasses.replace(
        written, not_modelled=(), remarks=()
    )
    # It also shows which nodes are away now.
    assert set(missing(shown)) - {"NodeName=n4 State"} == set(missing(written))
    assert "give --events" in next(its.effect for its in shown.not_modelled if its.name == "NodeName=n4 State")


def test_an_imported_site_is_written_and_read_again(tmp_path: Path) -> None:
    site, _ = import_slurm(REAL / "slurm.conf", REPORTS, Clock())
    write_site(site, tmp_path / "site.toml")
    again = read_site(tmp_path / "site.toml")
    assert again == site
    assert dump_site(again) == dump_site(site)


# slurm.conf. ---------------------------------------------------------------------------------------------------------


def test_defaults_are_those_of_slurm(tmp_path: Path) -> None:
    site = site_of(tmp_path, SMALL)
    assert site.scheduling == Scheduling(select="cores+memory")
    assert site.priority == Priority()
    assert site.partitions == (Partition("batch", "ALL"),)
    assert site.not_modelled == ()


def test_lines_are_read_as_slurm_reads_them(tmp_path: Path) -> None:
    text = r"""
# a comment
clustername = test  # behind a line
nodename=DEFAULT cpus=4 RealMemory=64000 \
    Gres=gpu:a100:4(S:0-1),gpu:h100:2    # on the next line
NodeName=a[1-2]
NodeName=a3 Weight=5 \
 Gres=(null)
NodeName=DEFAULT CPUs=16
NodeName=b1 Feature="big, fast"
PartitionName=DEFAULT MaxTime=90 PriorityTier=7
PartitionName=x Nodes=a[1-2],b1,a1 Default=yes
PartitionName=y Nodes=ALL MaxTime=UNLIMITED Priority=3
PriorityMaxAge=1:30
PriorityMaxAge=2-0 PriorityFavorSmall=YES
"""
    site = site_of(tmp_path, text)
    assert site.nodes[0] == NodeGroup("a[1-2]", cores=4, memory=64000, gpus=6)
    assert site.nodes[1:] == (NodeGroup("a3", 4, 64000, 0, 5), NodeGroup("b1", 16, 64000, 6))
    x, y = site.partitions
    assert (x.nodes, x.default, x.max_time, x.tier, x.job_factor) == ("a[1-2],b1", True, 5400.0, 7, 1)
    assert (y.nodes, y.max_time, y.tier, y.job_factor) == ("ALL", math.inf, 3, 3)
    assert site.priority.max_age == 172800.0
    assert site.priority.favor_small


@pytest.mark.parametrize(
    ("settings", "cores", "memory"),
    [
        ("", 1, 0),
        ("CPUs=48 RealMemory=1", 48, 0),
        ("Sockets=2 CoresPerSocket=12 ThreadsPerCore=2 RealMemory=1000", 48, 1000),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", 12, 0),
        ("Boards=2 CoresPerSocket=3", 6, 0),
        ("Procs=7", 7, 0),
        ("CPUs=48 CoreSpecCount=2 RealMemory=1000 MemSpecLimit=200", 46, 800),
        ("Sockets=2 CoresPerSocket=12 ThreadsPerCore=2 CoreSpecCount=2", 44, 0),
        ("CPUs=48 CPUSpecList=0-1,24-25", 44, 0),
    ],
)
def test_cores_and_memory_of_nodes_are_those_that_jobs_can_have(
    tmp_path: Path, settings: str, cores: int, memory: int
) -> None:
    site = site_of(tmp_path, f"NodeName=n1 {settings}\nPartitionName=p Nodes=n1\n")
    assert (site.nodes[0].cores, site.nodes[0].memory) == (cores, memory)


def test_what_cannot_be_printed_or_is_very_long_does_not_reach_the_site_file(tmp_path: Path) -> None:
    site = site_of(tmp_path, f'{SMALL}Licenses=a\x1bb\nTopologyPlugin={"x" * 20_000}\nDownNodes=n1 Reason="a\tb"\r\n')
    write_site(site, tmp_path / "site.toml")
    assert read_site(tmp_path / "site.toml") == site
    assert [one.value[:3] for one in site.not_modelled] == ["a?b", "xxx"]


def test_node_sets_and_states(tmp_path: Path) -> None:
    text = """
NodeName=a[1-3] CPUs=2 Feature=old
NodeName=b[1-2] CPUs=2 State=DOWN Reason="no fan"
NodeName=c[1-2] CPUs=2 State=FUTURE
NodeName=d1 CPUs=2 State=CLOUD
DownNodes=a3 State=DRAIN Reason=disk
NodeSet=olds Feature=old
NodeSet=some Nodes=b1,d1
PartitionName=one Nodes=olds,c1
PartitionName=two Nodes=some,b2 State=INACTIVE
PartitionName=three Nodes=ALL State=DRAIN
"""
    site = site_of(tmp_path, text)
    assert site.node_names == ("a1", "a2", "a3", "b1", "b2", "d1")
    assert [one.nodes for one in site.partitions] == ["a[1-3]", "b[1-2],d1", "ALL"]
    assert [one.up for one in site.partitions] == [True, False, True]
    assert lay_out(site).members.sum(axis=1).tolist() == [3, 3, 6]
    assert site.outages == (
        Outage("b[1-2]", 0.0, reason="no fan"),
        Outage("a3", 0.0, drained=True, reason="disk"),
    )
    assert "NodeName=c[1-2] State" in missing(site)
    assert "NodeName Features" in missing(site)


@pytest.mark.parametrize(
    ("text", "select"),
    [
        ("", "cores+memory"),
        ("SelectType=select/cray_aries", "nodes"),
        ("SelectType=select/cray_aries SelectTypeParameters=OTHER_CONS_TRES,CR_Core", "cores"),
        ("SelectType=select/linear SelectTypeParameters=CR_Memory", "nodes"),
        ("SelectType=select/cons_tres", "cores+memory"),
        ("SelectType=select/cons_tres SelectTypeParameters=CR_Core", "cores"),
        ("SelectType=select/cons_res SelectTypeParameters=CR_CPU_Memory,CR_LLN", "cores+memory"),
        ("SelectTypeParameters=CR_CPU", "cores"),
        ("SelectType=select/cons_tres SelectTypeParameters=CR_CORE_DEFAULT_DIST_BLOCK", "cores+memory"),
    ],
)
def test_what_jobs_take_of_nodes(tmp_path: Path, text: str, select: str) -> None:
    site = site_of(tmp_path, f"{SMALL}{text}\n")
    assert site.scheduling.select == select
    assert ("SelectTypeParameters CR_LLN" in missing(site)) == ("LLN" in text)


def test_flags_of_priorities_that_stand_for_others(tmp_path: Path) -> None:
    site = site_of(tmp_path, f"{SMALL}PriorityFlags=no_normal_all,depth_oblivious,FAIR_TREE,SWIFT,MAX_TRES_GRES\n")
    normal = tuple(f"NO_NORMAL_{kind}" for kind in ("ASSOC", "PART", "QOS", "TRES"))
    assert site.priority.flags == ("NO_FAIR_TREE", *normal, "MAX_TRES_GRES")
    assert set(missing(site)) == {f"PriorityFlags {flag}" for flag in ("SWIFT", "DEPTH_OBLIVIOUS")}


def test_parameters_have_their_own_units_and_bounds(tmp_path: Path) -> None:
    words = "bf_window=2880,bf_interval=60,BF_CONTINUE,bf_resolution=9999"
    site = site_of(tmp_path, f"{SMALL}SchedulerParameters={words},bf_min_prio_reserve=5000,no_such=1,bf_continu\n")
    found = site.scheduling
    assert (found.bf_window, found.bf_interval) == (172800.0, 60.0)
    assert (found.bf_continue, found.bf_min_prio_reserve, found.bf_resolution) == (True, 5000.0, 60.0)
    effects = {one.name: one.effect for one in site.not_modelled}
    assert any("bf_resolution=9999 (slurm.conf:4): it is none from 1 to 3,600; slurm" in one for one in site.remarks)
    assert effects["SchedulerParameters no_such"] == UNKNOWN
    assert effects["SchedulerParameters bf_continu"] == f"{UNKNOWN} (did you mean bf_continue?)"


def test_what_matters_is_named_and_what_does_not_is_silent(tmp_path: Path) -> None:
    text = f"""{SMALL}
SlurmctldPort=6817 StateSaveLocation=/var/spool PreemptMode=REQUEUE TopologyPlugin=topology/tree
JobSubmitPlugins=lua,throttle PriorityWeightFairshare=10 Prioritywieght=3 CompleteWait=0 JobRequeue=0
SlurmctldHost=head
PartitionName=gpu Nodes=n1 LLN=YES OverSubscribe=FORCE:4 MaxCPUsPerNode=4 \\
  TRESBillingWeights="CPU=1,Mem=0.25G" OverTimeLimit=5
PartitionName=own Nodes=n1 OverSubscribe=FORCE:1 ExclusiveUser=NO Foo=bar
AccountingStorageEnforce=safe,qos
"""
    site = site_of(tmp_path, text)
    found = missing(site)
    assert set(found) == {
        "TopologyPlugin", "JobSubmitPlugins", "Prioritywieght", "JobRequeue", "PartitionName=gpu LLN",
        "PartitionName=gpu OverSubscribe", "PartitionName=gpu MaxCPUsPerNode", "PartitionName=gpu OverTimeLimit",
        "PartitionName=own Foo", "AccountingStorageEnforce",
    }  # fmt: skip
    assert found["TopologyPlugin"] == "slurm.conf:5"
    assert site.enforced == ("associations", "limits", "qos", "safe")
    assert sum("give --qos" in one.effect or "give --sacctmgr" in one.effect for one in site.not_modelled) == 2


# Wrong use. ----------------------------------------------------------------------------------------------------------


def test_included_files_are_read_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=Big\nInclude parts/%c.conf\ninclude /etc/no/such/folder/partitions.conf\n"
    )
    (tmp_path / "parts/big.conf").write_text("Include nodes.conf\n")
    (tmp_path / "parts/nodes.conf").write_text("NodeName=n[1-2]\n")
    (tmp_path / "partitions.conf").write_text("\n\nPartitionName=p Nodes=n3\n")
    with pytest.raises(SiteError, match=r"partitions\.conf:3: partition p names node n3, which no NodeName has"):
        import_slurm(tmp_path / "slurm.conf", Reports(), Clock())
    conf = read_conf(tmp_path / "slurm.conf")
    assert list(conf.inputs) == ["slurm.conf", "big.conf", "nodes.conf", "partitions.conf"]


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("Include a.conf\n")
    (tmp_path / "a.conf").write_text("\nInclude slurm.conf\n")
    with pytest.raises(
        SiteError, match=r"a\.conf:2: slurm\.conf includes itself \(slurm\.conf > a\.conf > slurm\.conf"
    ):
        read_conf(tmp_path / "slurm.conf")
    for number in range(12):
        (tmp_path / f"c{number}").write_text(f"Include c{number + 1}\n")
    with pytest.raises(SiteError, match="more than 10 files deep"):
        read_conf(tmp_path / "c0")


def test_files_that_multiply_are_refused(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"c{number}").write_text(f"Include c{number + 1}\n" * 20)
    (tmp_path / "c5").write_text("\n")
    with pytest.raises(SiteError, match="write the files into one"):
        read_conf(tmp_path / "c0")


def test_a_file_that_is_missing_or_binary_is_named(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("Include gone.conf\n")
    with pytest.raises(
        InputError, match=r"slurm\.conf:1: includes gone\.conf: .*no such file.*copy it there from the cluster"
    ):
        read_conf(tmp_path / "slurm.conf")
    (tmp_path / "slurm.conf").write_text("Include /no/such/gone.conf\n")
    with pytest.raises(InputError, match=r"it is neither there nor in the folder of slurm\.conf: copy it into"):
        read_conf(tmp_path / "slurm.conf")
    (tmp_path / "parts").mkdir()
    (tmp_path / "slurm.conf").write_text("Include parts\n")
    with pytest.raises(
        InputError, match=r"slurm\.conf:1: includes parts: .*; name the files in it, each on an Include"
    ):
        read_conf(tmp_path / "slurm.conf")
    (tmp_path / "slurm.conf").write_bytes(b"\0\1")
    with pytest.raises(SiteError, match="is no text"):
        read_conf(tmp_path / "slurm.conf")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NodeName=n1\nPartitionName=p Nodes=n1 MaxTime=soon\n", "slurm.conf:2: MaxTime is 'soon'; expected minutes"),
        ("NodeName=n1 CPUs=many\n", "slurm.conf:1: CPUs is 'many'; expected a whole number from 0 to 65,535"),
        ("NodeName=n[1-9999999]\n", "slurm.conf:1: host list 'n[1-9999999]' names more than 200,000 hosts"),
        ("NodeName=n[1-2\n", "a bracket is not closed"),
        ("NodeName=n1\nthis is no setting\n", "slurm.conf:2: 'this is no setting' is not KEY=VALUE; quote a value"),
        (
            "JobID|User|Start|End\n1|a|b|c\n",
            "slurm.conf:1: 'JobID|User|Start|End' is not KEY=VALUE; it looks like the",
        ),
        ("Cluster - 'a':Fairshare=1\n", "it looks like sacctmgr dump: name that with --sacctmgr"),
        ("NodeName=n1\nPartitionName=p Nodes=n1 State=OPEN\n", "State is 'OPEN'; expected UP, DOWN, DRAIN or INACTIVE"),
        ("NodeName=n1\nPartitionName=p Nodes=n1 Default=perhaps\n", "Default is 'perhaps'; expected YES or NO"),
        ("PartitionName=p Nodes=ALL\n", "names no node; give the slurm.conf of slurmctld"),
        ("NodeName=n1\n", "slurm.conf: there is no partition; add its PartitionName lines"),
        (
            f"{SMALL}PartitionName=batch Nodes=n1\n",
            "slurm.conf:4: partition batch is there 2 times; write one PartitionName",
        ),
        (f"{SMALL}PriorityType=priority/magic\n", "expected priority/basic or priority/multifactor"),
        (f"{SMALL}SchedulerType=sched/magic\n", "expected sched/backfill or sched/builtin"),
        (f"{SMALL}PriorityWeightTRES=cpu=much\n", "expected weights such as CPU=1.0"),
        (f"{SMALL}PriorityUsageResetPeriod=hourly\n", "expected one of NONE, NOW"),
        (f"{SMALL}PriorityCalcPeriod=0\n", "PriorityCalcPeriod is '0'; expected at least one minute"),
        (f"{SMALL}PriorityMaxAge={10**9 - 1}\n", "or UNLIMITED; at most 143,165,576 minutes"),
        (f"{SMALL}PartitionName=q Nodes=n1 PriorityTier=65536\n", "expected a whole number from 0 to 65,535"),
        (f"{SMALL}PartitionName=q Nodes=n1 MinNodes=-1\n", "expected a whole number from 0 to 4,294,967,295"),
        ("NodeName=n1 Sockets=2000 CoresPerSocket=2000\n", "has 4,000,000 cores, more than the 1,000,000 of a node"),
        ("NodeName=n1 Gres=gpu:20000\n", "slurm.conf:1: Gres is 'gpu:20000'; expected at most 10,000 GPUs of a node"),
        ("NodeName=n1 Weight=4294967296\n", "expected a whole number from 0 to 4,294,967,295"),
        ("Configuration data as of 2026-01-01\nClusterName = a\n", "add what scontrol -o show node"),
    ],
)
def test_what_slurm_would_not_take_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SiteError) as error:
        site_of(tmp_path, text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "dump",
            "Hello - 'a'\n",
            "dump.txt:1: \"Hello - 'a'\" is no line of an account or a user; give what sacctmgr dump",
        ),
        ("dump", "hello\n", "has no account; give what sacctmgr dump"),
        ("dump", "Cluster - 'other'\n", "is of cluster other, and slurm.conf of test; give what sacctmgr dump test"),
        ("dump", "Account - \n", "has no name in front"),
        ("dump", "Account - 'a':Fairshare\n", "dump.txt:1: 'Fairshare' is not KEY=VALUE; is the line cut off?"),
        ("dump", "Account - 'a':Fairshare=lots\n", "Fairshare is 'lots'; expected a whole number"),
        (
            "dump",
            "Parent - 'gone'\nAccount - 'a'\n",
            "dump.txt:2: account a: its parent gone is not there; its line Account - '...' must be there: give all",
        ),
        ("dump", "Account - 'a':QOS='+x,y'\n", "expected names of QOS, or all of them with + or -"),
        pytest.param(
            "dump",
            ("User - 'u':" + ":".join(f"{'x' * n}=1" for n in range(1, 300)) + "\n") * 700,
            "dump.txt:669: more than 200,000 keys that no Slurm has; is it what sacctmgr dump wrote?",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "dump",
            f"Account - 'a':QOS='{','.join(map(str, range(30_000)))}'\nParent - 'a'\n" + "User - 'u':QOS='+z'\n" * 700,
            "names of QOS from the accounts above them; shorten the lists of those",
            marks=pytest.mark.slow,
        ),
        ("qos", f"Name{'|a' * 40}\n" + f"x{'|1' * 40}\n" * 80_000, "80,001 lines of 41 cells, and 3,000,000 cells are"),
        ("qos", "a|b\n", "qos.txt:1: has no column Name; print it with: sacctmgr -P show qos"),
        ("qos", "Name|Priority\nx\n", "qos.txt:2: 'x' has 1 cells, and there are 2 columns"),
        ("qos", "Name|Priority\nx|high\n", "qos.txt:2: Priority is 'high'; expected a whole number"),
        ("qos", "Name|Priority\nx|1\nx|2\n", "qos.txt:3: QOS x is there 2 times; print the table again"),
        ("qos", "Name|Priority|UsageFactor\nx|1|nan\n", "UsageFactor is 'nan'; expected a number from 0"),
        ("events", "NodeName|TimeStart\n", "has no column TimeEnd; print it with: sacctmgr -P show event"),
        (
            "events",
            "NodeName|TimeStart|TimeEnd|State\nn1|yesterday|Unknown|DOWN\n",
            "events.txt:2: TimeStart is 'yesterday'; expected a time such as",
        ),
        (
            "events",
            f"NodeName|TimeStart|TimeEnd|State\nn1|1000|{10**30}|DOWN\n",
            "'; expected a time such as 2026-03-01T08:00:00, or Unix seconds from 0 to 1,099,511,627,775",
        ),
        ("events", "NodeName|TimeStart|TimeEnd|State\nn1|0900-01-01T00:00:00|20|DOWN\n", "events.txt:2: TimeStart is"),
        ("qos", "Name|Priority|MaxWall\nx|1|999999-0\n", "qos.txt:2: MaxWall is '999999-0'; expected minutes"),
        (
            "reservations",
            "ReservationName=r StartTime=20 EndTime=10 Nodes=n1\n",
            "reservations.txt:1: reservation r ends at or before its start; correct StartTime or EndTime",
        ),
        ("reservations", "hello\n", "reservations.txt:1: 'hello' is no reservation; print them with"),
    ],
)
def test_a_report_that_is_none_is_refused_with_its_line(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(SiteError) as error:
        site_of(tmp_path, SMALL, Reports(**{name: tmp_path / f"{name}.txt"}))
    assert words in str(error.value)


def test_events_of_other_clusters_and_nodes_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "test|n1|100|200|DOWN*|x|root(0)\ntest|n1|100|200|DOWN*|x|root(0)\ntest|n2|100|200|DOWN*|x|root(0)\n"
        "other|n3|100|200|DOWN|x|root(0)\n"
        "test|old7|100|200|DOWN|x|root(0)\ntest|n3|100|100|DOWN|x|\ntest|n4|100|300|MAINT|x|\n"
        "test|n4|400|Unknown|MIXED+DRAIN|x|y|root(0)\n"
    )
    site = site_of(tmp_path, SMALL, Reports(events=tmp_path / "events.txt"))
    assert site.outages == (Outage("n[1-2]", 100.0, 200.0, reason="x"), Outage("n4", 400.0, drained=True, reason="x|y"))
    assert [(one.value, one.place) for one in site.not_modelled] == [
        ("1 event, first old7", "events.txt:6"),
        ("1 event, first n4", "events.txt:8"),
    ]


def test_events_that_end_before_they_start_are_counted(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(
        "NodeName|TimeStart|TimeEnd|State\nn1|200|100|DOWN\nn2|200|150|DOWN\nn3|200|300|DOWN\nn[010-012]|200|300|DOWN\n"
    )
    site = site_of(tmp_path, SMALL, Reports(events=tmp_path / "events.txt"))
    assert site.outages == (Outage("n3", 200.0, 300.0),)
    assert [(one.value, one.place, one.effect) for one in site.not_modelled] == [
        (
            "1 event, first n[010-012]",
            "events.txt:5",
            "the site has no node of this name (any more); its capacity is not there either",
        ),
        ("2 events, first 100", "events.txt:2", "TimeEnd is before TimeStart; they are left out"),
    ]


def test_a_reservation_of_nodes_that_are_gone_is_said_to_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(
        "ReservationName=a StartTime=10 EndTime=20 Nodes=x1\nReservationName=b StartTime=10 EndTime=20 Nodes=n1,x1\n"
    )
    site = site_of(tmp_path, SMALL, Reports(reservations=tmp_path / "r.txt"))
    assert [one.name for one in site.reservations] == ["b"]
    assert [one.effect for one in site.not_modelled] == [
        "the site has none of its nodes; it is left out",
        "the site does not have all of its nodes; it keeps the others",
    ]


@pytest.mark.parametrize(
    ("settings", "cores", "is_corrected"),
    [
        ("CPUs=7 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2", 8, True),
        ("CPUs=4 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2", 4, False),
        ("CPUs=2 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2", 2, False),
        ("CPUs=48 CoresPerSocket=12 ThreadsPerCore=2", 48, False),
        ("CPUs=50 CoresPerSocket=12 ThreadsPerCore=2", 24, True),
    ],
)
def test_cpus_that_contradict_sockets_are_those_that_slurm_takes(
    tmp_path: Path, settings: str, cores: int, is_corrected: bool
) -> None:
    site = site_of(tmp_path, f"NodeName=n1 {settings}\nPartitionName=p Nodes=n1\n")
    assert site.nodes[0].cores == cores
    assert [one for one in site.remarks if one.startswith("corrected: NodeName=n1 CPUs=")] == (
        [site.remarks[-1]] if is_corrected else []
    )


def test_qos_of_accounts_are_inherited_and_changed(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(
        "Cluster - 'test':QOS='a,b'\nAccount - 'x':QOS='+c'\nParent - 'x'\nAccount - 'y':QOS='-a'\n"
        "User - 'u':QOS='+d'\nParent - 'y'\nUser - 'v':Priority=7:MaxCPUs=4:MaxNodes=2\n"
    )
    site = site_of(tmp_path, SMALL, Reports(dump=tmp_path / "dump.txt"))
    by_name = {(one.account, one.user): one for one in site.associations}
    assert by_name["x", ""].qos == ("a", "b", "c")
    assert by_name["y", ""].qos == ("b", "c")
    assert by_name["x", "u"].qos == ("a", "b", "c", "d")
    assert by_name["y", "v"].qos == ()
    assert by_name["y", "v"].per_job == Limits(cores=4, nodes=2)
    assert by_name["y", "v"].priority == 7


def test_a_user_of_one_partition_may_submit_and_his_limits_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(
        "Cluster - 'test'\nAccount - 'x'\nParent - 'x'\nUser - 'u':Partition='batch':MaxJobs=2\n"
        "User - 'v':MaxJobs=3\nUser - 'v':Partition='batch':MaxJobs=2\n"
    )
    site = site_of(tmp_path, f"{SMALL}AccountingStorageEnforce=limits\n", Reports(dump=tmp_path / "dump.txt"))
    assert {(its.user, its.own.jobs) for its in site.associations if its.user} == {("u", math.inf), ("v", 3.0)}


@pytest.mark.parametrize("enforced", ["associations", "limits", "qos,safe"])
def test_what_is_enforced_without_a_dump_asks_for_one(tmp_path: Path, enforced: str) -> None:
    site = site_of(tmp_path, f"{SMALL}AccountingStorageEnforce={enforced}\n")
    assert any("--sacctmgr" in its.effect for its in site.not_modelled)


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu:2080ti:8", 8), ("gpu:1g.5gb:7,gpu:3g.20gb:2", 9), ("gpu:1080ti", 1), ("gpu:nvidia_a100-sxm4-40gb:4", 4),
        ("gpu:a100:2(S:0-1),gpu:2", 4), ("gpu:a100:no_consume:2", 2),
    ],
)  # fmt: skip
def test_types_of_gpus_may_begin_with_a_digit(tmp_path: Path, gres: str, count: int) -> None:
    site = site_of(
        tmp_path, f"ClusterName=t\nGresTypes=gpu\nNodeName=n1 CPUs=8 Gres={gres}\nPartitionName=p Nodes=n1\n"
    )
    assert site.nodes[0].gpus == count
    assert not site.remarks or not any("cannot count" in remark for remark in site.remarks)


def test_a_reservation_of_all_cores_is_whole_where_nodes_have_threads(tmp_path: Path) -> None:
    text = "NodeName=n[1-2] Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CPUs=128\nPartitionName=p Nodes=ALL\n"
    for cores, remarks in ((128, 0), (127, 1)):
        (tmp_path / "r.txt").write_text(f"ReservationName=m StartTime=10 EndTime=20 Nodes=n[1-2] CoreCnt={cores}\n")
        site = site_of(tmp_path, text, Reports(reservations=tmp_path / "r.txt"))
        assert sum("only some cores" in its.effect for its in site.not_modelled) == remarks


def test_what_debians_slurm_calls_its_version_is_one(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(SMALL)
    site, _ = import_slurm(tmp_path / "slurm.conf", Reports(), Clock(), "slurm-wlm 24.11.5")
    assert site.scheduling.rules_version == "24.11"


def test_weights_of_resources_have_signs_and_units(tmp_path: Path) -> None:
    weights = "PriorityType=priority/multifactor\nPriorityWeightTRES=CPU=-3906250.000000,Mem=0.25G,gres/gpu=1e3\n"
    site = site_of(tmp_path, SMALL + weights)
    assert site.priority.tres == {"cpu": -3906250.0, "mem": 0.25 / 1024, "gres/gpu": 1000.0}


# Files that shall take long, or more memory than there is. ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALL + "NodeName=n3 CPUs=8\n", "slurm.conf:4: node n3 is there a second time; name each node on one line"),
        (
            "NodeName=n[1-150000] CPUs=1\nNodeName=m[1-150000] CPUs=1\n",
            "slurm.conf:2: more than 200,000 nodes; check the host lists",
        ),
        pytest.param(
            "NodeName=n[1-200000] CPUs=1\n"
            + "".join(f"NodeSet=s{number} Nodes=n[1-200000]\n" for number in range(101))
            + "PartitionName=a Nodes=s1\n",
            "slurm.conf:12: all host lists up to here name more than 2,000,000 nodes together; leave some out",
            marks=pytest.mark.slow,
        ),
        (SMALL + f"NodeName={'m' * 2000}[1-200000]\n", "has a name of 2,006 characters; a host's has at most 1,024"),
        (SMALL + f"NodeName={'m' * 900}[1-20000]\n", "its names have more than 16,000,000 characters together"),
        (
            SMALL + "".join(f"NodeName={letter * 900}[1-10000] CPUs=1\n" for letter in "mo"),
            "slurm.conf:5: more than 16,000,000 characters of names of nodes; shorten the names",
        ),
        pytest.param(
            SMALL + "".join(f"K{n}=1 " for n in range(500_001)),
            "more than 500,000 settings; is it a slurm.conf?",
            marks=pytest.mark.slow,
        ),
        (
            SMALL + "".join(f"PartitionName=p{n} Nodes=n1\n" for n in range(10_000)),
            "slurm.conf:10003: more than 10,000 partitions; leave out those without jobs",
        ),
        (SMALL + f"Include {'x' * 9000}\n", "slurm.conf:4: includes x"),
        (SMALL + f"Include /{'x' * 9000}\n", "slurm.conf:4: includes /x"),
        (SMALL + f"PartitionName={'x' * 10_001} Nodes=ALL\n", "is a name of 10,001 characters"),
    ],
)  # fmt: skip
def test_what_is_too_much_is_refused_before_it_is_made(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises((SiteError, InputError)) as refused:
        site_of(tmp_path, text)
    shown = str(refused.value)
    assert len(shown) < 2_500
    assert said in shown or (said.startswith("is a name") and "slurm.conf:4: partition: x" in shown)


def test_of_two_partitions_of_a_name_no_more_is_said(tmp_path: Path) -> None:
    text = f"{SMALL}PartitionName={{x}} Nodes=n1 MaxTime=60 DefaultTime=120\nPartitionName={{x}} Nodes=n1\n"
    with pytest.raises(SiteError) as error:
        site_of(tmp_path, text)
    said = "slurm.conf:5: partition {x} is there 2 times; write one PartitionName line of each name"
    assert str(error.value) == said


def test_of_a_very_long_setting_the_ends_are_kept() -> None:
    one = NotModelled("Name", f"first {'x' * 90_000} last", "slurm.conf:1", "jobs would wait")
    assert (len(one.value), one.value[:6], one.value[-5:]) == (2_000, "first ", " last")


def test_an_include_of_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.conf")
    for name in ("pipe.conf", "/dev/zero"):
        with pytest.raises(InputError, match="is a pipe, a device or a socket, and no file"):
            site_of(tmp_path, SMALL + f"Include {name}\n")


@pytest.mark.slow
def test_what_is_the_square_of_blanks_or_keys_is_read_in_time(tmp_path: Path) -> None:
    # The blanks took 90 s, the thousand partitions more than 100 s, the end of the dump's line a minute.
    blanks = " " * 200_000
    (tmp_path / "r.txt").write_text(f"ReservationName=a{blanks}x StartTime=100 EndTime=200 Nodes=(null)\n")
    node = f"NodeName=n1 CPUTot=8 Comment=a{blanks}b State=IDLE"
    shown = f"Configuration data as of x\n{node}\nPartitionName=a Nodes=ALL\n"
    many = " ".join(f"Kee{n}=1" for n in range(20_000))
    partitions = "".join(f"PartitionName=p{n} Nodes=n[1-{200_000 - n % 5}]\n" for n in range(1000))
    began = time.process_time()
    (one,) = site_of(tmp_path, shown).nodes
    assert (one.names, one.cores) == ("n1", 8)
    assert not site_of(tmp_path, SMALL, Reports(reservations=tmp_path / "r.txt")).reservations
    (tmp_path / "d.txt").write_text("Account - 'a':" + "Fairshare=1:" * 300_000 + "  \n")
    assert len(site_of(tmp_path, SMALL, Reports(dump=tmp_path / "d.txt")).associations) == 1
    defaults = "".join(f"PartitionName=q{n} Nodes=ALL\n" for n in range(3000))
    site = site_of(tmp_path, f"NodeName=n1 CPUs=8\nPartitionName=DEFAULT MaxTime=60 {many}\n{defaults}")
    assert {one.max_time for one in site.partitions} == {3600}
    assert len(site_of(tmp_path, f"NodeName=n[1-200000] CPUs=1\n{partitions}").partitions) == 1000
    assert time.process_time() - began < 60


def test_what_is_not_modelled_in_very_many_places_is_counted_from_the_hundredth_on(tmp_path: Path) -> None:
    # A hundred thousand settings that nobody knows were as many rows of the table: 40 s.
    many = "".join(f"Kee{n}=1\n" for n in range(1_000))
    site = site_of(tmp_path, f"{SMALL}{many}Licenses=a:1\n")
    assert len(site.not_modelled) == 102
    assert missing(site)["Licenses"] == "slurm.conf:1004"
    last = site.not_modelled[-1]
    assert (last.name, last.place) == ("and 900 more, from Kee100 on", "slurm.conf:104")
    assert last.effect.startswith("unknown to policyfactory")


@pytest.mark.slow
def test_more_qos_than_any_cluster_has_are_refused(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("Name|Priority|\n" + "".join(f"q{n}|1|\n" for n in range(10_001)))
    with pytest.raises(SiteError, match=r"q\.txt:10002: more than 10,000 QOS"):
        site_of(tmp_path, SMALL, Reports(qos=tmp_path / "q.txt"))


@pytest.mark.slow
def test_marks_of_comments_that_are_escaped_are_read_in_time(tmp_path: Path) -> None:
    # What stood before each was copied: a megabyte took 16 s, the square of its length.
    def spent(marks: int) -> float:
        best = math.inf
        for _ in range(3):
            began = time.process_time()
            site_of(tmp_path, f"{SMALL}Licenses={marks * chr(92)}{marks * (chr(92) + '#')}1\n")
            best = min(best, time.process_time() - began)
        return best

    assert spent(256_000) < 16 * spent(64_000)
    (found,) = site_of(tmp_path, SMALL + r"Licenses=a\#b\\# c" + "\n").not_modelled
    assert found.value == "a#b" + chr(92)


def test_weights_of_billing_are_those_of_cores_mb_nodes_and_gpus(tmp_path: Path) -> None:
    weights = "CPU=1.0,Mem=0.25G,GRES/gpu=2.5,node=3K,license/x=2,billing=1,GRES/gpu:a100=0"
    site = site_of(tmp_path, f'{SMALL.strip()} TRESBillingWeights="{weights}"\n')
    assert site.partitions[-1].billing == {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.5, "node": 3 / 1024}
    assert [(one.name, one.value) for one in site.not_modelled] == [
        (f"PartitionName={site.partitions[-1].name} TRESBillingWeights", "license/x=2")
    ]
    with pytest.raises(SiteError, match=r"slurm.conf:3.*TRESBillingWeights.*CPU=much.*weights such as CPU=1.0"):
        site_of(tmp_path, f"{SMALL.strip()} TRESBillingWeights=CPU=much\n")


def test_limits_on_each_node_are_read_of_qos_and_accounts(tmp_path: Path) -> None:
    rows = "small|1|cpu=4,gres/gpu=1,license/x=1|\nhalf|1|cpu=50,mem=25|Relative\n"
    (tmp_path / "qos.txt").write_text(f"Name|Priority|MaxTRESPerNode|Flags\n{rows}")
    (tmp_path / "dump.cfg").write_text("Cluster - 'test'\nParent - 'root'\nAccount - 'lab':MaxTRESPerNode=mem=100\n")
    site = site_of(
        tmp_path,
        SMALL.replace("CPUs=8", "CPUs=8 RealMemory=1000"),
        Reports(tmp_path / "dump.cfg", tmp_path / "qos.txt"),
    )
    # Relative ones are parts of the cluster, whole numbers (assoc_mgr.c, _foreach_tres_pos_set_cnt).
    assert [one.per_node for one in site.qos] == [Limits(cores=4, gpus=1), Limits(cores=16, memory=1000)]
    assert [one.per_node for one in site.associations] == [Limits(memory=100)]
    assert [(one.name, one.value) for one in site.not_modelled] == [("QOS small MaxTRESPerNode", "license/x=1")]
    with pytest.raises(SiteError, match="QOS small: per_node has nodes, which has no effect; take it out"):
        check_site(dataclasses.replace(site, qos=(Qos("small", per_node=Limits(nodes=1)),)), "test")


def test_weights_of_billing_beyond_bounds_are_taken_as_the_largest_or_refused(tmp_path: Path) -> None:
    site = site_of(tmp_path, f"{SMALL.strip()} TRESBillingWeights=CPU=1e30\n")
    assert site.partitions[-1].billing == {"cpu": 2.0**53}
    assert any("CPU=1e30" in remark for remark in site.remarks)
    write_site(site, tmp_path / "site.toml")
    assert read_site(tmp_path / "site.toml").partitions == site.partitions
    for weights in ("CPU=1e999", f"CPU={'1' * 40_000}x", ",".join(["CPU=1"] * 1001)):
        with pytest.raises(SiteError, match=r"slurm.conf:3: TRESBillingWeights.*expected"):
            site_of(tmp_path, f"{SMALL.strip()} TRESBillingWeights={weights}\n")


def test_what_all_partitions_have_is_read_once(tmp_path: Path) -> None:
    site = site_of(
        tmp_path,
        f"{SMALL}PartitionName=DEFAULT TRESBillingWeights=CPU=2,license/x=1 JobDefaults=DefCpuPerGPU=3\n"
        "PartitionName=a Nodes=ALL\nPartitionName=b Nodes=ALL\n",
    )
    assert [(one.billing, one.default_cores_per_gpu) for one in site.partitions[-2:]] == [({"cpu": 2.0}, 3)] * 2
    assert len(site.not_modelled) == 1


def test_a_limit_of_nodes_on_each_node_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "qos.txt").write_text("Name|Priority|MaxTRESPerNode\nsmall|1|cpu=4,node=1\n")
    site = site_of(tmp_path, SMALL, Reports(qos=tmp_path / "qos.txt"))
    assert [one.per_node for one in site.qos] == [Limits(cores=4)]
    assert any("MaxTRESPerNode=cpu=4,node=1" in remark for remark in site.remarks)
