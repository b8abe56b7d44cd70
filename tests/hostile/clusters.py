"""A cluster's own files: genuine ones, and how they become a site; its queue, and what its jobs wait for."""

from __future__ import annotations

import functools
import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from policyfactory.simulation.slurm.explanation import explain_queue
from policyfactory.site.file import dump_site, read_site
from policyfactory.site.model import Site
from policyfactory.site.show import limit_rows, not_modelled_rows, partition_rows, setting_rows, summary
from policyfactory.site.slurm.accounts import read_fair_shares
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock, find_zone
from policyfactory.workload.declared import written_values
from policyfactory.workload.snapshot import read_snapshot
from recorded_queues import VERSIONS, queue_file, site_of_version
from support import ROOT

__all__ = [
    "CONFS", "DUMPS", "EVENTS", "FAIR_SHARES", "QOS", "RESERVATIONS", "SITES", "SNAPSHOTS", "conf", "fair_shares",
    "report", "site_file", "snapshot",
]  # fmt: skip

_REAL = ROOT / "tests" / "site" / "real"
_CLOCK = Clock(find_zone("Europe/Berlin"))
_INCLUDED = b"NodeName=n[1-4] CPUs=8 RealMemory=1000 Gres=gpu:a100:2 Weight=3\nPartitionName=batch Nodes=ALL\n"
_MORE = b"""# a comment \\# and more
ClusterName=test
Include nodes-slurm.conf
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightTRES=CPU=1000,Mem=2000
SchedulerParameters=bf_interval=30,bf_window=2880,\\
bf_continue,default_queue_depth=200
DownNodes=n[3-4] State=DRAIN Reason="a b"
NodeSet=left Nodes=n[1-2]
PartitionName=long Nodes=left MaxTime=7-0 PriorityTier=2 AllowQos=normal,high Default=YES
"""


def _real(name: str) -> bytes:
    return (_REAL / name).read_bytes()


CONFS = [_real("slurm.conf"), _real("shown.txt"), _MORE]
DUMPS = [_real("dump.cfg")]
QOS = [_real("qos.txt")]
EVENTS = [_real("events.txt")]
RESERVATIONS = [_real("reservations.txt")]
_HAND = b"""schema = 1
name = "ada"
enforced = ["associations", "limits", "qos"]
[[nodes]]
names = "n[001-004]"
cores = 64
memory = "256G"
gpus = 4
[[partitions]]
name = "batch"
nodes = "ALL"
default = true
max_time = "1-00:00:00"
tier = 2
[[qos]]
name = "high"
priority = 1000
max_wall = "24h"
per_user = {jobs = 4, cores = "unlimited", memory = "1T"}
[[associations]]
account = "root"
[[associations]]
account = "physics"
shares = 20
qos = ["high"]
[[associations]]
account = "physics"
user = "ann"
shares = "parent"
[priority]
age = 1000
tres = {cpu = 5, "gres/gpu" = 100}
half_life = "7d"
[scheduling]
bf_interval = "30s"
bf_min_prio_reserve = 0
[[reservations]]
name = "mend"
nodes = "n001"
start = 2026-03-01T08:00:00Z
end = 2026-03-02T08:00:00Z
users = ["ann"]
[[outages]]
nodes = "n[002-003]"
start = 2026-03-01T08:00:00Z
end = 2026-03-01T09:00:00Z
reason = "x"
"""
SITES = [_HAND, b'schema = 1\nnodes = [{names = "n[1-4]", cores = 8}]\npartitions = [{name = "batch"}]\n']


def _said(site: Site, path: Path) -> str:
    """Show a site, write it, and read it again."""
    again = path.with_name("again.toml")
    text = dump_site(site)
    again.write_text(text, encoding="utf-8")
    assert dump_site(read_site(again)) == text, "a site that is written and read again is another"
    rows = [partition_rows(site), setting_rows(site), limit_rows(site), not_modelled_rows(site)]
    assert summary(site)
    assert all(str(cell).isprintable() for table in rows for row in table for cell in row)
    kinds = {one.name for one in site.not_modelled}
    return f"{[len(table).bit_length() for table in rows]} {len(kinds)} {sorted(written_values(site.scheduling))}"


def site_file(path: Path) -> str:
    """Read a site file."""
    return _said(read_site(path), path)


def conf(path: Path) -> str:
    """Import a slurm.conf that may include another file, or itself."""
    path.with_name("nodes-slurm.conf").write_bytes(_INCLUDED)
    return _said(import_slurm(path, Reports(), _CLOCK)[0], path)


def report(kind: str) -> Callable[[Path], str]:
    """Return how a report of a command is read beside the genuine slurm.conf."""

    def read(path: Path) -> str:
        beside = path.with_name("slurm.conf")
        beside.write_bytes(_real("slurm.conf"))
        return _said(import_slurm(beside, Reports(**{kind: path}), _CLOCK)[0], path)

    return read


def _recorded(version: str, name: str) -> bytes:
    data = queue_file(version, name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def _some_jobs(version: str) -> bytes:
    """Return what ``squeue --json`` prints of a few jobs."""
    found = json.loads(_recorded(version, "squeue.json.gz"))
    return json.dumps(found | {"jobs": found["jobs"][:5]}).encode()


SNAPSHOTS = [
    *map(_some_jobs, VERSIONS),
    *(_recorded(version, name) for version in VERSIONS for name in ("scontrol.txt.gz", "lines.txt", "all.txt")),
]
FAIR_SHARES = [_recorded(version, "sshare.txt") for version in VERSIONS]


@functools.cache
def _site() -> Site:
    with tempfile.TemporaryDirectory() as folder:
        return site_of_version("24.11", Path(folder))


def snapshot(path: Path) -> str:
    """Read a queue, and explain it."""
    found = explain_queue(read_snapshot(path, _CLOCK), _site())
    texts = [wait.text for one in found.jobs for wait in one.waits] + list(found.assumed)
    assert all(text.isprintable() for text in texts)
    return f"{len(found.jobs)} {sorted({one.waits[0].kind for one in found.jobs})}"


def fair_shares(path: Path) -> str:
    """Read what sshare prints."""
    return str(len(read_fair_shares(path)))
