"""The import refuses nothing that slurmctld starts with: what that corrects is corrected and said, too.

Files and functions are those of Slurm 24.11.5; `REFUSED` has what stays refused, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.core.errors import InputError, SiteError
from policyfactory.site.file import read_site, write_site
from policyfactory.site.model import Limits, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock

NODES = (
    "ClusterName=test\nPriorityType=priority/multifactor\nSelectType=select/cons_tres SelectTypeParameters=CR_Core\n"
)
NODES += "NodeName=n[1-4] CPUs=8 RealMemory=1000\n"
SMALL = NODES + "PartitionName=batch Nodes=ALL\n"


def site_of(folder: Path, text: str, reports: Reports | None = None) -> Site:
    (folder / "slurm.conf").write_text(text)
    site = import_slurm(folder / "slurm.conf", reports or Reports(), Clock())[0]
    # What is imported is read again.
    write_site(site, folder / "site.toml")
    assert read_site(folder / "site.toml") == site
    return site


CORRECTED: dict[str, tuple[str, str, Callable[[Site], object], object]] = {
    # slurmctld/read_config.c, _build_single_partitionline_info: info().
    "DefaultTime above MaxTime": (
        f"{NODES}PartitionName=DEFAULT DefaultTime=2:00:00\nPartitionName=p Nodes=n1 MaxTime=30\n",
        "partition p DefaultTime=2:00:00 MaxTime=30 (slurm.conf:6): DefaultTime is more than MaxTime",
        lambda site: (site.partitions[0].default_time, site.partitions[0].max_time),
        (math.inf, 1800.0),
    ),
    "DefaultTime endless": (
        f"{NODES}PartitionName=p Nodes=n1 MaxTime=30 DefaultTime=UNLIMITED\n",
        "",
        lambda site: site.partitions[0].default_time,
        math.inf,
    ),
    "two defaults": (
        f"{NODES}PartitionName=p Nodes=n1 Default=YES\nPartitionName=q Nodes=n1 Default=YES\n",
        "partition p Default=YES (slurm.conf:5): slurmctld takes the last partition that has Default=YES",
        lambda site: [one.default for one in site.partitions],
        [False, True],
    ),
    # slurmctld/partition_mgr.c, build_part_bitmap: info().
    "no Nodes": (
        f"{SMALL}PartitionName=p\n",
        "PartitionName=p (slurm.conf:6): it has no nodes",
        lambda site: site.partitions[1].nodes,
        "",
    ),
    "empty Nodes": (
        f'{SMALL}PartitionName=p Nodes=""\nPartitionName=q Nodes="" State=UP\n',
        "it has no nodes; slurmctld goes on, and its jobs never start; so too 1 more",
        lambda site: [one.nodes for one in site.partitions],
        ["ALL", "", ""],
    ),
    "node set without nodes": (
        f"{SMALL}NodeSet=g Feature=gpu\nNodeSet=none\nPartitionName=p Nodes=g,none\nPartitionName=q Nodes=g,n1\n",
        "PartitionName=p (slurm.conf:8): it has no nodes",
        lambda site: [one.nodes for one in site.partitions],
        ["ALL", "", "n1"],
    ),
    "node sets of all, of others, with blanks": (
        (
            f"{NODES}NodeSet=a Nodes=ALL\nNodeSet=b Nodes=n1,n2\nNodeSet=c Nodes=b,n4\nPartitionName=p Nodes=a\n"
            'PartitionName=q Nodes="c n4,"\n'
        ),
        "",
        lambda site: [one.nodes for one in site.partitions],
        ["n[1-4]", "n[1-2,4]"],
    ),
    # job_mgr.c, _part_access_check: only jobs are held to them.
    "MinNodes above MaxNodes": (
        f"{SMALL}PartitionName=p Nodes=n1 MinNodes=3 MaxNodes=2\n",
        "partition p MinNodes=3 MaxNodes=2 (slurm.conf:6): no job fits its limits",
        lambda site: site.partitions[1].up,
        False,
    ),
    "MinNodes above the nodes": (
        f"{SMALL}PartitionName=p Nodes=n1 MinNodes=2\n",
        "partition p MinNodes=2 (slurm.conf:6): no job fits its limits",
        lambda site: site.partitions[1].up,
        False,
    ),
    "MaxTime of 0": (
        f"{SMALL}PartitionName=p Nodes=n1 MaxTime=0\n",
        "partition p MaxTime=0 (slurm.conf:6): no job fits its limits",
        lambda site: (site.partitions[1].up, site.partitions[1].max_time),
        (False, math.inf),
    ),
    # parse_value.c: numbers as C reads them.
    "numbers": (
        (
            f"{NODES}NodeName=m1 CPUs=0x10 RealMemory=64K Weight=010\n"
            "PartitionName=p Nodes=m1 PriorityTier=UNLIMITED MaxNodes=INFINITE MinNodes=0 MaxTime=7-\n"
            "PriorityWeightAge=1k DefMemPerCPU=1K OverTimeLimit=UNLIMITED\n"
        ),
        "",
        lambda site: (
            (site.nodes[1].cores, site.nodes[1].memory, site.nodes[1].weight),
            (site.partitions[0].tier, site.partitions[0].max_nodes, site.partitions[0].max_time),
            (site.priority.age, site.scheduling.default_memory_per_core, site.scheduling.kill_overrun),
        ),
        ((16, 65536, 8), (65535, math.inf, 7 * 86400.0), (1024, 1024, math.inf)),
    ),
    # read_config.c, _parse_nodename: error_in_daemon().
    "counts of 0": (
        f"{SMALL}NodeName=m1 CPUs=0 ThreadsPerCore=0\nNodeName=m2 Sockets=0 Boards=0 CoresPerSocket=0\n",
        "NodeName=m1 ThreadsPerCore=0 (slurm.conf:6): slurmctld resets it to 1, and so do we; so too 4 more",
        lambda site: [one.cores for one in site.nodes],
        [8, 1],
    ),
    "all cores kept": (
        f"{SMALL}NodeName=m1 CPUs=4 CoreSpecCount=4\n",
        "NodeName=m1 CoreSpecCount=4 (slurm.conf:6): it is not less than the cores; slurmctld resets it to 1",
        lambda site: site.nodes[1].cores,
        3,
    ),
    "the only core kept": (
        f"{NODES}NodeName=m1 CPUs=1 CoreSpecCount=1\nPartitionName=p Nodes=n1,m1\n",
        "NodeName=m1 CoreSpecCount=1 (slurm.conf:5): it is not less than the cores; slurmctld resets it to 1",
        lambda site: (site.node_names, site.partitions[0].nodes, site.not_modelled[0].effect),
        (("n1", "n2", "n3", "n4"), "n1", "the nodes are left out: all their cores are kept for the system"),
    ),
    "CPUSpecList that is none": (
        f"{SMALL}NodeName=m1 CPUs=4 CPUSpecList=1-x\nNodeName=m2 CPUs=4 CPUSpecList=3-4\n",
        "NodeName=m1 CPUSpecList=1-x (slurm.conf:6): it is no list of the node's CPUs",
        lambda site: site.nodes[1].cores,
        4,
    ),
    "CPUSpecList and CoreSpecCount": (
        f"{SMALL}NodeName=m1 CPUs=8 CPUSpecList=0-1 CoreSpecCount=1\n",
        "NodeName=m1 CoreSpecCount=1 (slurm.conf:6): slurmctld passes over it, as CPUSpecList is given",
        lambda site: site.nodes[1].cores,
        6,
    ),
    "MemSpecLimit of all": (
        f"{SMALL}NodeName=m1 RealMemory=1000 MemSpecLimit=1000\n",
        "NodeName=m1 MemSpecLimit=1000 (slurm.conf:6): it is not less than RealMemory; slurmctld resets it to 0",
        lambda site: site.nodes[1].memory,
        1000,
    ),
    "Sockets and SocketsPerBoard": (
        f"{SMALL}NodeName=m1 Sockets=4 SocketsPerBoard=2 CoresPerSocket=3\n",
        "NodeName=m1 Sockets=4 (slurm.conf:6): slurmctld takes SocketsPerBoard in its place",
        lambda site: site.nodes[1].cores,
        6,
    ),
    # gres.c, _get_gres_cnt: error().
    "Gres without a count": (
        f"{SMALL}NodeName=m1 Gres=gpu:4,scratch:1.6T\n",
        "NodeName=m1 Gres=scratch:1.6T (slurm.conf:6): slurmctld cannot count it",
        lambda site: site.nodes[1].gpus,
        4,
    ),
    # slurmctld/read_config.c, _handle_downnodes_line: error().
    "DownNodes that are not there": (
        f"{SMALL}DownNodes=n1,x1 State=DOWN\nDownNodes=x2\nDownNodes=n2 State=GONE\nDownNodes=n[3\n",
        "DownNodes=n1,x1 (slurm.conf:6): not all of these nodes are there; slurmctld passes over those that are not",
        lambda site: [one.nodes for one in site.outages],
        ["n1"],
    ),
    # backfill.c, job_scheduler.c: error(), and the default.
    "parameters that are no numbers": (
        f"{SMALL}SchedulerParameters=bf_interval=often,bf_window={10**30},bf_max_job_start=-1,partition_job_depth=7x\n",
        "SchedulerParameters bf_interval=often (slurm.conf:6): it is none from 1 to 10,800; slurmctld takes",
        lambda site: (site.scheduling.bf_interval, site.scheduling.bf_window, site.scheduling.partition_job_depth),
        (30.0, 86400.0, 7),
    ),
    "a queue depth of 0": (
        f"{SMALL}SchedulerParameters=default_queue_depth=0\n",
        "scheduling default_queue_depth=0 (slurm.conf:6): the first job of the queue is looked at all the same",
        lambda site: site.scheduling.default_queue_depth,
        1,
    ),
    "a window shorter than a step": (
        f"{SMALL}SchedulerParameters=bf_window=1,bf_resolution=3600\n",
        "scheduling bf_window=1 bf_resolution=3600 (slurm.conf:6): the plan is shorter than one of its steps",
        lambda site: (site.scheduling.bf_window, site.scheduling.bf_resolution),
        (60.0, 60.0),
    ),
    "jobs of users and of associations": (
        f"{SMALL}SchedulerParameters=bf_max_job_user=3,bf_max_job_assoc=4\n",
        "SchedulerParameters bf_max_job_user=3 (slurm.conf:6): bf_max_job_assoc takes precedence",
        lambda site: (site.scheduling.bf_max_job_user, site.scheduling.bf_max_job_assoc),
        (0, 4),
    ),
    "no backfilling": (
        f"{SMALL}SchedulerParameters=bf_interval=-1\n",
        "",
        lambda site: site.scheduling.backfill,
        False,
    ),
    # read_config.c, _validate_and_set_defaults: error().
    "memory per CPU and per node": (
        f"{SMALL}DefMemPerCPU=100 DefMemPerNode=1000\n",
        "DefMemPerCPU=100 (slurm.conf:6): slurmctld passes over it, as DefMemPerNode is given",
        lambda site: (site.scheduling.default_memory_per_core, site.scheduling.default_memory_per_node),
        (0, 1000),
    ),
    # Of older versions, which had these plugins.
    "another program's order": (
        f"{SMALL}SchedulerType=sched/wiki2\nPriorityType=priority/multifactor2\n",
        "",
        lambda site: (site.scheduling.backfill, [one.name for one in site.not_modelled]),
        (False, ["SchedulerType"]),
    ),
    # 26.05.
    "Exclusive": (
        (
            f"{SMALL}PartitionName=p Nodes=n1 Exclusive=NODE\nPartitionName=q Nodes=n1 Exclusive=USER\n"
            "PartitionName=r Nodes=n1 Exclusive=TOPO\nPartitionName=s Nodes=n1 Exclusive=NO OverSubscribe=EXCLUSIVE\n"
        ),
        "",
        lambda site: ([one.exclusive for one in site.partitions], [one.name for one in site.not_modelled]),
        ([False, True, False, True, True], ["PartitionName=q Exclusive", "PartitionName=r Exclusive"]),
    ),
    "features without end": (
        f"{SMALL}NodeName=m1 Features={','.join(f'f{number}' for number in range(300))}\n",
        "",
        lambda site: [one.effect for one in site.not_modelled if one.name == "NodeName=m1 Features"],
        ["the first 100 features are read; by others the nodes are in no node set"],
    ),
    "nodes that register themselves as well": (
        f"{SMALL}MaxNodeCount=100\n",
        "",
        lambda site: [(one.name, one.effect) for one in site.not_modelled],
        [("MaxNodeCount", "nodes that register themselves would be there too: scontrol -o show node has them")],
    ),
}


@pytest.mark.parametrize("name", CORRECTED)
def test_what_slurmctld_goes_on_with_is_imported(tmp_path: Path, name: str) -> None:
    text, remark, taken, expected = CORRECTED[name]
    site = site_of(tmp_path, text)
    assert taken(site) == expected
    said = [one for one in site.remarks if one.startswith("corrected: ")]
    if remark:
        assert any(remark in one for one in said), said
    else:
        assert said == []


def test_what_accounts_contradict_is_corrected(tmp_path: Path) -> None:
    (tmp_path / "qos.txt").write_text("Name|Priority|GrpTRES|MaxTRES\na|1|cpu=2|cpu=4\n")
    (tmp_path / "dump.cfg").write_text(
        "\ufeffProcessing\nCluster - 'test':QOS='a'\nAccount - 'x':Fairshare=3\nAccount - 'x':Fairshare=4\n"
        "Parent - 'x'\nUser - 'u':DefaultQOS='b':QOS='a,b'\n"
    )
    text = f"{SMALL}PartitionName=p Nodes=n1 AllowQos=a,b QOS=b\n"
    site = site_of(tmp_path, text, Reports(tmp_path / "dump.cfg", tmp_path / "qos.txt"))
    assert site.qos[0].per_job == Limits(cores=2)
    assert [(one.account, one.user, one.shares, one.qos, one.default_qos) for one in site.associations] == [
        ("root", "", 1.0, ("a",), ""), ("x", "", 3.0, (), ""), ("x", "u", 1.0, ("a",), ""),
    ]  # fmt: skip
    assert (site.partitions[1].allowed_qos, site.partitions[1].qos) == (("a",), "")
    said = "\n".join(site.remarks)
    for words in (
        "corrected: QOS a MaxTRES=cpu=4 GrpTRES=cpu=2 (qos.txt:2): GrpTRES holds for each job as well",
        "corrected: 'Processing' (dump.cfg:1): sacctmgr load passes over such a line",
        "corrected: association x (dump.cfg:4): it is there a second time; sacctmgr load takes the first",
        "association x/u QOS=a,b DefaultQOS=b (dump.cfg:6): QOS that the table of QOS does not have are left out",
        "partition p AllowQos=a,b (slurm.conf:6): slurmctld passes over QOS that are not there, and so do we (b)",
        "partition p QOS=b (slurm.conf:6): its QOS is not there, and QOS are not enforced; it is taken without",
    ):
        assert words in said, said
    # Where QOS are enforced that is fatal (slurmctld/read_config.c, _build_single_partitionline_info).
    with pytest.raises(SiteError, match=r"slurm\.conf:6: partition p names QOS b, which is not there"):
        site_of(tmp_path, f"{text}AccountingStorageEnforce=qos\n", Reports(tmp_path / "dump.cfg", tmp_path / "qos.txt"))


# What stays refused: fatal() in slurmctld, or no site without it, or a bound of docs/security.md.
REFUSED = {
    "ClusterName=a\nNodeName=n1\nwhat is this\n": "s_p_parse_file: parse error, and fatal",
    "NodeName=n1 CPUs=many\nPartitionName=p\n": "s_p_handle_uint16, and fatal",
    "NodeName=n1\nNodeName=n1\nPartitionName=p\n": "_push_to_hashtbls",
    "NodeName=n[1-\nPartitionName=p\n": "expand_nodeline_info",
    "NodeName=n1\nPartitionName=p Nodes=n2\n": "_build_part_bitmaps",
    "NodeName=n1\nNodeSet=s Nodes=s\nPartitionName=p Nodes=s\n": "_build_part_bitmaps",
    "NodeName=n1\nPartitionName=p\nPartitionName=p\n": "_build_single_partitionline_info",
    "NodeName=n1\nPartitionName=p MaxTime=soon\n": "_parse_partitionname, and fatal",
    "NodeName=n1\nPartitionName=p State=OPEN\n": "_parse_partitionname, and fatal",
    "NodeName=n1\nPartitionName=p Default=perhaps\n": "s_p_handle_boolean, and fatal",
    "NodeName=n1\nPartitionName=p\nPriorityCalcPeriod=0\n": "_validate_and_set_defaults, and fatal",
    "NodeName=n1\nPartitionName=p\nPriorityMaxAge=soon\n": "_validate_and_set_defaults, and fatal",
    "NodeName=n1\nPartitionName=p\nPriorityUsageResetPeriod=hourly\n": "_validate_and_set_defaults, and fatal",
    "NodeName=n1\nPartitionName=p\nPriorityWeightTRES=cpu=much\n": "slurm_get_tres_weight_array",
    "NodeName=n1\nPartitionName=p\nPriorityType=priority/magic\n": "no such plugin: fatal",
    "NodeName=n1\nPartitionName=p\nSchedulerType=sched/magic\n": "controller_init_scheduling",
    "NodeName=n1\nPartitionName=p\nInclude gone.conf\n": "_parse_include_directive, and fatal",
    "NodeName=n1\n": "slurmctld starts, and no job can: there is nothing to simulate",
    "PartitionName=p\n": "slurmctld starts, and no job can: there is nothing to simulate",
    "NodeName=n[1-300000]\nPartitionName=p\n": "a bound",
    "NodeName=n1 Gres=gpu:20000\nPartitionName=p\n": "a bound",
    "NodeName=n1 Sockets=2000 CoresPerSocket=2000\nPartitionName=p\n": "a bound",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_fatal_in_slurmctld_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises((SiteError, InputError)):
        site_of(tmp_path, text)
