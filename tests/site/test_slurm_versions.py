"""Real clusters of Slurm 24.11 and 26.05 by their own files, and what a slurm.conf has that does not say it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.site.model import Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock

Shared = Callable[[str], Path]
SMALL = "ClusterName=test\nNodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n"


def _imported(path: Path, reports: Reports | None = None, version: str | None = None) -> Site:
    return import_slurm(path, reports or Reports(), Clock(), version)[0]


def _bare(site: Site) -> Site:
    """Return a site without what is said of it."""
    return dataclasses.replace(site, not_modelled=(), remarks=())


# Real clusters. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cluster", "version"), [("slurm24", "24.11.5"), ("slurm26", "26.05"), ("slurm26", None)])
def test_defaults_are_those_of_a_real_slurmctld(shared: Shared, cluster: str, version: str | None) -> None:
    folder = shared(f"oracles/{cluster}/defaults")
    written, shown = _imported(folder / "slurm.conf", None, version), _imported(folder / "config.txt")
    assert _bare(written) == _bare(shown)
    assert [one.partition(":")[2].partition(":")[0].strip() for one in written.remarks] == [
        "PriorityType=priority/multifactor", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory",
    ]  # fmt: skip
    assert all(("--slurm-version" in one) == (version is None) for one in written.remarks)


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
        "the defaults of Slurm 26.05"
    )
    assert len(site.remarks) == 4


def test_nodes_that_register_themselves_are_told_of(shared: Shared, tmp_path: Path) -> None:
    with pytest.raises(SiteError) as error:
        _imported(shared("cases/dynamic_nodes.conf"))
    assert "they register themselves (MaxNodeCount=1024, dynamic_nodes.conf:3)" in str(error.value)
    assert "(scontrol show config; scontrol -o show node; scontrol -o show partition) > slurm.conf" in str(error.value)
