"""What scontrol prints: records on one line or on several, with `show config` or without; files of other systems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.core.errors import SiteError
from policyfactory.site.model import Outage, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock

Shared = Callable[[str], Path]
SMALL = "ClusterName=test\nNodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n"


def _imported(path: Path, reports: Reports | None = None) -> Site:
    return import_slurm(path, reports or Reports(), Clock())[0]


def _bare(site: Site) -> object:
    """Return what a site has, without the places of what is said of it."""
    return site.nodes, site.partitions, site.priority, site.scheduling, site.enforced


def test_records_on_several_lines_are_those_of_one_line(shared: Shared, tmp_path: Path) -> None:
    several = _imported(shared("cases/scontrol_multiline.txt"))
    assert [(one.names, one.cores, one.memory, one.gpus) for one in several.nodes] == [("nx1", 64, 515000, 4)]
    assert several.partitions[0].nodes == "nx1"
    text = shared("cases/scontrol_multiline.txt").read_text()
    (tmp_path / "one.txt").write_text(text.replace("\n   ", " "))
    assert _bare(_imported(tmp_path / "one.txt")) == _bare(several)
    # A node that is down has no Arch.
    (tmp_path / "down.txt").write_text(text.replace(" Arch=x86_64", "").replace("\n", "\r\n"))
    assert _bare(_imported(tmp_path / "down.txt")) == _bare(several)


def test_settings_of_other_files_in_show_config_are_none_of_slurm_conf(tmp_path: Path) -> None:
    (tmp_path / "shown.txt").write_text(
        "Configuration data as of 2026-01-01T00:00:00\nClusterName = a\nSLURM_VERSION = 24.11.5\n\n"
        "Cgroup Support Configuration:\nConstrainCores = yes\nLicenses = 7\n\nSlurmctld(primary) at h is UP\n"
        "NodeName=n1 CPUTot=4 OS=Linux 6.1 #1 SMP a=b  RealMemory=9\n\nPartitionName=p\n   Nodes=n1\n"
    )
    site = _imported(tmp_path / "shown.txt")
    assert (site.nodes[0].cores, site.nodes[0].memory, site.partitions[0].nodes) == (4, 9, "n1")
    assert [one.name for one in site.not_modelled] == ["NodeName=n1 a"]


def test_json_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "shown.json").write_text('{"nodes": []}')
    with pytest.raises(SiteError, match=r"shown\.json: is JSON; print it without --json"):
        _imported(tmp_path / "shown.json")


def test_a_byte_order_mark_and_other_line_ends_are_passed_over(tmp_path: Path) -> None:
    texts = {
        "slurm.conf": f"{SMALL}Include more.conf\nAccountingStorageEnforce=limits,qos\n",
        "more.conf": "PartitionName=more Nodes=n1\n",
        "dump.cfg": "Cluster - 'test'\nAccount - 'x':Fairshare=3\n",
        "qos.txt": "Name|Priority\nnormal|3\n",
        "events.txt": "NodeName|TimeStart|TimeEnd|State\nn1|100|200|DOWN\n",
        "reservations.txt": "ReservationName=a StartTime=10 EndTime=20 Nodes=n1\n   Users=ada\n",
    }
    sites = []
    for mark, end in (("", "\n"), ("\ufeff", "\n"), ("\ufeff", "\r\n")):
        for name, text in texts.items():
            (tmp_path / name).write_bytes((mark + text.replace("\n", end)).encode())
        reports = Reports(*(tmp_path / f"{name}" for name in ("dump.cfg", "qos.txt", "events.txt", "reservations.txt")))
        sites.append(_imported(tmp_path / "slurm.conf", reports))
    assert sites[0] == sites[1] == sites[2]
    assert sites[0].outages == (Outage("n1", 100.0, 200.0),)
    assert len(sites[0].partitions) == 2
