"""Queues that squeue and scontrol printed, with sprio's priorities of that moment, by version of Slurm (data/queue)."""

from __future__ import annotations

import gzip
from pathlib import Path

from policyfactory.site.model import Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock

__all__ = ["FORMS", "VERSIONS", "queue_file", "site_of_version"]

VERSIONS = ("22.05", "24.11", "26.05")
FORMS = ("squeue.json.gz", "scontrol-o.txt.gz", "scontrol.txt.gz", "lines.txt")
_FOLDER = Path(__file__).parent / "data" / "queue"


def queue_file(version: str, name: str) -> Path:
    """Return a file of a version."""
    return _FOLDER / version / name


def site_of_version(version: str, folder: Path) -> Site:
    """Return the site of the cluster; its configuration is unpacked into a folder."""
    shown = folder / "config.txt"
    shown.write_bytes(gzip.decompress(queue_file(version, "config.txt.gz").read_bytes()))
    reports = Reports(queue_file(version, "dump.cfg"), queue_file(version, "qos.txt"))
    return import_slurm(shown, reports, Clock())[0]
