"""Real clusters of Slurm 24.11 and 26.05 by their own files, and what a slurm.conf has that does not say it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.site.file import UNKNOWN, read_site, write_site
from policyfactory.site.model import Association, Limits, Qos, Site
from policyfactory.site.show import setting_rows
from policyfactory.site.slurm import settings
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock
from refusals import tell

Shared = Callable[[str], Path]
CLUSTERS = [
    *(
        f"slurm24/{name}-{number}"
        for name in ("arrays-deps-begin", "share-mix", "small-test-tiers", "tasks-only", "threads")
        for number in (1, 2)
    ),
    "slurm24/cluster", "slurm24/defaults", "slurm26/cluster", "slurm26/defaults",
]  # fmt: skip
SMALL = "ClusterName=test\nNodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n"


def _imported(path: Path, reports: Reports | None = None, version: str | None = None) -> Site:
    return import_slurm(path, reports or Reports(), Clock(), version)[0]


def _bare(site: Site) -> Site:
    """Return a site without what is said of it."""
    return dataclasses.replace(site, not_modelled=(), remarks=())


def _without_version(site: Site) -> Site:
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=""))


def _told(site: Site) -> tuple[str, ...]:
    """Return what is printed of a site below its tables."""
    return (site.scheduling.rules_in_words, *site.remarks)


# Real clusters. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_is_the_same_by_its_file_and_by_scontrol(shared: Shared, cluster: str) -> None:
    folder = shared(f"oracles/{cluster}")
    for dump in ("dump.cfg", "dump2.cfg"):
        if not (folder / dump).exists():
            continue
        reports = Reports(folder / dump, folder / "qos.txt", folder / "events.txt", folder / "reservations.txt")
        version = {"slurm24": "24.11", "slurm26": "26.05"}[cluster.partition("/")[0]]
        written = _imported(folder / "slurm.conf", reports, version)
        shown = _imported(folder / "config.txt", reports)
        assert _bare(written) == _bare(shown)
        assert not any(one.effect.startswith(UNKNOWN) for one in (*written.not_modelled, *shown.not_modelled))
        assert shown.remarks == ()


@pytest.mark.parametrize(("cluster", "version"), [("slurm24", "24.11.5"), ("slurm26", "26.05"), ("slurm26", None)])
def test_defaults_are_those_of_a_real_slurmctld(shared: Shared, cluster: str, version: str | None) -> None:
    folder = shared(f"oracles/{cluster}/defaults")
    written, shown = _imported(folder / "slurm.conf", None, version), _imported(folder / "config.txt")
    assert shown.scheduling.slurm_version == {"slurm24": "24.11", "slurm26": "26.05"}[cluster]
    assert written.scheduling.slurm_version == (shown.scheduling.slurm_version if version else "")
    assert _bare(written) == _bare(shown if version else _without_version(shown))
    assert [one.partition(":")[2].partition(":")[0].strip() for one in written.remarks] == [
        "PriorityType=priority/multifactor", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory",
    ]  # fmt: skip
    assert ("--slurm-version" in written.scheduling.rules_in_words) == (version is None)


def test_qos_are_read_from_a_dump_of_today(shared: Shared) -> None:
    folder = shared("oracles/slurm26/cluster")
    table = _imported(folder / "slurm.conf", Reports(folder / "dump.cfg", folder / "qos.txt"))
    assert table.qos == _imported(folder / "slurm.conf", Reports(folder / "dump.cfg")).qos
    # 50 per cent of 12 cores.
    assert Qos("rel", total=Limits(cores=6)) in table.qos


# Defaults by version. ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "kind", "select", "flags"),
    [
        (None, "multifactor", "cores+memory", ()),
        ("slurm 26.05.5", "multifactor", "cores+memory", ()),
        ("23.11", "multifactor", "cores+memory", ()),
        ("23.02.7", "basic", "nodes", ()),
        ("22.05.8-4+deb12u3", "basic", "nodes", ()),
        ("18.08", "basic", "nodes", ()),
    ],
)
def test_a_version_has_its_defaults(
    tmp_path: Path, version: str | None, kind: str, select: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / "slurm.conf").write_text(SMALL)
    site = _imported(tmp_path / "slurm.conf", None, version)
    assert (site.priority.kind, site.scheduling.select, site.priority.flags) == (kind, select, flags)
    assert sum(one.startswith("assumed: SelectType=") for one in site.remarks) == 1


def test_fair_share_was_another_before_fair_tree(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(f"{SMALL}PriorityType=priority/multifactor PriorityWeightFairshare=9\n")
    assert _imported(tmp_path / "slurm.conf", None, "18.08").priority.flags == ("NO_FAIR_TREE",)
    assert _imported(tmp_path / "slurm.conf", None, "19.05").priority.flags == ()
    (tmp_path / "slurm.conf").write_text(f"{SMALL}PriorityWeightFairshare=9 PriorityFlags=FAIR_TREE\n")
    assert _imported(tmp_path / "slurm.conf", None, "18.08").priority.flags == ()


@pytest.mark.parametrize("printed", ["", "SLURM_VERSION = new\n"])
def test_one_version_is_assumed_for_rules_and_defaults(tmp_path: Path, printed: str) -> None:
    path = tmp_path / "slurm.conf"
    head = f"Configuration data as of 2026-11-02\n{printed}" if printed else ""
    path.write_text(f"{head}{SMALL}PriorityWeightFairshare=9\n")
    site = _imported(path)
    whose = [re.findall(r"(?:of|assumed:) Slurm (\d+\.\d+)", text) for text in _told(site)]
    assert sorted({version for versions in whose for version in versions}) == [site.scheduling.rules_version]
    # What to do about it stands once.
    assert sum("--slurm-version" in text for text in _told(site)) == 1


@pytest.mark.parametrize("version", [None, "18.08", "22.05", "23.11", "26.05"])
def test_only_what_is_not_the_default_of_its_version_is_shown_as_such(tmp_path: Path, version: str | None) -> None:
    path = tmp_path / "slurm.conf"
    given = {"priority.kind", "priority.fair_share", "scheduling.bf_interval"}
    text = "PriorityType=priority/multifactor PriorityWeightFairshare=9\nSchedulerParameters=bf_interval=60\n"
    for more, shown in (("", set()), ("SchedulerParameters=bf_max_job_test=500\n", set()), (text, given)):
        path.write_text(SMALL + more)
        rows = setting_rows(_imported(path, version=version))
        assert all(value != usual for _, value, usual in rows)
        kind = {"priority.kind"} if version in {None, "23.11", "26.05"} else set()  # where it is the default
        assert {name for name, *_ in rows} == shown - kind


def test_what_is_given_is_not_assumed(tmp_path: Path) -> None:
    given = "PriorityType=priority/basic SelectType=select/linear"
    (tmp_path / "slurm.conf").write_text(f"{SMALL}{given}\n")
    assert _imported(tmp_path / "slurm.conf").remarks == ()
    with pytest.raises(UsageError, match=r"--slurm-version 'new' is no version of Slurm; give for example 24\.11"):
        _imported(tmp_path / "slurm.conf", None, "new")


def test_without_the_settings_of_the_cluster_they_are_assumed(shared: Shared) -> None:
    site = _imported(shared("cases/scontrol_without_config.txt"))
    assert [one.names for one in site.nodes] == ["na1", "nb[1-2]", "nc[1-2]"]
    assert [one.nodes for one in site.partitions] == ["na1,nb[1-2]", "nc[1-2]"]
    assert site.remarks[0] == (
        "assumed: scontrol_without_config.txt has no output of scontrol show config: all settings of the cluster are "
        "the defaults of Slurm 24.11"
    )
    assert len(site.remarks) == 4


def test_nodes_that_register_themselves_are_told_of(shared: Shared, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nNodeName=n[1-4] State=FUTURE\nPartitionName=p Nodes=ALL\n")
    with pytest.raises(
        SiteError, match=r"names no node; all are FUTURE, .* slurmctld alone has: \(scontrol show config"
    ):
        _imported(tmp_path / "slurm.conf")
    with pytest.raises(SiteError) as error:
        _imported(shared("cases/dynamic_nodes.conf"))
    assert "they register themselves (MaxNodeCount=1024, dynamic_nodes.conf:3)" in str(error.value)
    assert "(scontrol show config; scontrol -o show node; scontrol -o show partition) > slurm.conf" in str(error.value)


# Accounts of other versions. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("GrpTRES=gres/gpu:h100=3:QOS='a,b'", (("a", "b"), Limits())),
        ("GrpTRES=cpu=6,gres/gpu:tesla=3:QOS='a'", (("a",), Limits(cores=6))),
        ("GrpTRES=gres/gpu:a100=1,gres/gpu:h100=2,cpu=4:Fairshare=1:QOS=a", (("a",), Limits(cores=4))),
        ("GrpTRES='cpu=6,gres/gpu:h100=3':QOS='a'", (("a",), Limits(cores=6))),
        ("GrpTRES=gres/gpu=3:QOS='a'", (("a",), Limits(gpus=3))),
        ("Description='a: b':GrpTRES=cpu=3::QOS='a'", (("a",), Limits(cores=3))),
        ("Description='John's':GrpTRES=cpu=3:QOS='a'", (("a",), Limits(cores=3))),
    ],
)
def test_limits_of_typed_resources_are_read(
    tmp_path: Path, fields: str, expected: tuple[tuple[str, ...], Limits]
) -> None:
    (tmp_path / "slurm.conf").write_text(SMALL)
    (tmp_path / "dump.cfg").write_text(f"Machine - 'test'\nProject - 'x':{fields}\n")
    site = _imported(tmp_path / "slurm.conf", Reports(tmp_path / "dump.cfg"))
    (one,) = site.associations
    assert one == Association("x", qos=expected[0], total=expected[1])


@pytest.mark.parametrize(
    ("partition", "cores", "memory"), [("", 16, 20), ("PartitionName=one Nodes=n1 QOS=rel\n", 4, 5)]
)
def test_limits_of_a_relative_qos_are_per_cent(tmp_path: Path, partition: str, cores: int, memory: int) -> None:
    text = "ClusterName=t\nNodeName=n[1-4] CPUs=8 RealMemory=10 Gres=gpu:1\nPartitionName=all Nodes=ALL\n"
    (tmp_path / "slurm.conf").write_text(text + partition)
    (tmp_path / "qos.txt").write_text(
        "Name|Priority|Flags|GrpTRES|GrpJobs|MaxTRESPU\nrel|0|Relative|cpu=50,mem=50|7|gres/gpu=200\n"
    )
    site = _imported(tmp_path / "slurm.conf", Reports(qos=tmp_path / "qos.txt"))
    gpus = 1 if partition else 4
    assert site.qos == (Qos("rel", total=Limits(7, cores=cores, memory=memory), per_user=Limits(gpus=gpus)),)


def test_a_default_of_a_parameter_by_version_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = settings._Default("SchedulerParameters bf_max_job_test", "100", (0, 0), "an older slurm.conf(5)")
    newer = dataclasses.replace(row, value="500", since=(20, 11))
    monkeypatch.setattr(settings, "_TABLE", (*settings._TABLE, row, newer))
    path = tmp_path / "slurm.conf"
    for text, version, expected in (
        (SMALL, "20.02", 100),
        (SMALL, "22.05", 500),
        (f"{SMALL}SchedulerParameters=bf_continue,bf_max_job_test=7\n", "20.02", 7),
    ):
        path.write_text(text)
        assert _imported(path, version=version).scheduling.bf_max_job_test == expected


@pytest.mark.parametrize(
    ("asked", "rules", "said"),
    [
        ("22.05", "22.05", "the rules are those of Slurm 22.05"),
        ("24.11.5", "24.11", "the rules are those of Slurm 24.11"),
        ("slurm 26.05.5", "26.05", "the rules are those of Slurm 26.05"),
        (
            "20.11",
            "22.05",
            "assumed: the rules of Slurm 22.05; those of 20.11 are not simulated (simulated are 22.05, 24.11, 26.05)",
        ),
        (
            "24.05",
            "22.05",
            "assumed: the rules of Slurm 22.05; those of 24.05 are not simulated (simulated are 22.05, 24.11, 26.05)",
        ),
        (
            "25.11",
            "24.11",
            "assumed: the rules of Slurm 24.11; those of 25.11 are not simulated (simulated are 22.05, 24.11, 26.05)",
        ),
        (
            "27.05",
            "26.05",
            "assumed: the rules of Slurm 26.05; those of 27.05 are not simulated (simulated are 22.05, 24.11, 26.05)",
        ),
    ],
)
def test_the_version_says_whose_rules_hold(tmp_path: Path, asked: str, rules: str, said: str) -> None:
    (tmp_path / "slurm.conf").write_text(SMALL)
    site = _imported(tmp_path / "slurm.conf", version=asked)
    write_site(site, tmp_path / "site.toml")
    for passes in (site.scheduling, read_site(tmp_path / "site.toml").scheduling):
        assert (passes.rules_version, passes.rules_in_words) == (rules, said)


def test_without_a_version_its_rules_are_assumed_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(SMALL)
    passes = _imported(tmp_path / "slurm.conf").scheduling
    assert (passes.slurm_version, passes.rules_version) == ("", "24.11")
    tell(passes.rules_in_words, "assumed 24.11 rules defaults slurm_version --slurm-version")
    path = tmp_path / "site.toml"
    for value in ("24.11", '"new"'):
        path.write_text(
            f'schema = 1\n[[nodes]]\nnames = "n1"\n[[partitions]]\nname = "p"\n[scheduling]\nslurm_version = {value}\n'
        )
        with pytest.raises(SiteError, match=r'a version of Slurm in quotes, for example "24\.11"'):
            read_site(path)
