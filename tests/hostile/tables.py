"""Tables of jobs and mappings: genuine inputs, and how they are read."""

# ruff: noqa: E501 (rows of tables are as long as they are)

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

from job_tables import OWN
from policyfactory.workload.swf.files import format_swf, parse_swf
from policyfactory.workload.tables.mapping import STOCK, parse_mapping, read_mapping
from policyfactory.workload.tables.reader import import_tables

__all__ = ["ARCHIVES", "MAPPINGS", "TABLES", "mapping", "table"]

_MORE = """
eligible = "eligible"
memory = { column = "memory", unit = "slurm" }
gpus = { column = "tres", tres = ["gres/gpu", "1002"] }
requested_nodes = { column = "where", after = ":", before = "x" }
state = "state"
user = "user"
partition = "queue"
[[filter]]
column = "queue"
drop = ["test"]
"""
_MAPPING = parse_mapping(
    (OWN.replace('form = "csv"', 'form = "csv"\nzone = "Europe/Berlin"') + _MORE).encode(), "m", "m"
)
_NAMES = "id,submitted,began,ended,limit,cores,eligible,memory,tres,where,state,user,queue"
_ROWS = [
    '1,2024-03-05 12:00:00,2024-03-05 12:01:00.5,2024-03-05 12:11:00,3600,4,,4Gn,"cpu=4,gres/gpu=2",a:b:2x56,COMPLETED,u,a',
    '2,2024-10-27 02:30:00,2024-10-27 02:10:00,2024-10-27 03:11:00+01:00,1-00:00:00,8.0,,1Gc,"1=4,1002=1",c:1x2,TIMEOUT,v,b',
    "3,1709640000,,,UNLIMITED,1,,,,,CANCELLED,\u00fc,test",
    "1,2024-03-05 12:00:00,2024-03-05 12:01:00,2024-03-05 12:11:00,60,4,2024-03-05 12:00:30,0,,,FAILED,u,a",
]
_TEXT = "\n".join([_NAMES, *_ROWS, ""]).encode()
TABLES = [_TEXT, _TEXT.replace(b"\n", b"\r\n"), gzip.compress(_TEXT, mtime=0)]


def _zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.csv", "../b.csv", "c.md"):
            archive.writestr(zipfile.ZipInfo(name), _TEXT)
    return packed.getvalue()


def _tarred(mode: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("a.csv")
        info.size = len(_TEXT)
        archive.addfile(info, io.BytesIO(_TEXT))
    return packed.getvalue()


ARCHIVES = [_zipped(), _tarred("w"), _tarred("w:gz")]
MAPPINGS = [
    (OWN + _MORE).encode(),
    *(files("policyfactory.workload.tables").joinpath(f"{name}.toml").read_bytes() for name in STOCK[:4]),
]


def table(path: Path) -> str:
    """Import a table, write the log, and read it again."""
    result = import_tables([path], _MAPPING)
    assert len(result.log) == result.report.jobs
    again = parse_swf(format_swf(result.log), path)
    assert len(again) == len(result.log)
    json.dumps(result.report.as_dict(), allow_nan=False)
    assert all(step.place.startswith(str(path)) for step in result.report.steps)
    return " ".join(f"{step.action} {step.what}" for step in result.report.steps)


def mapping(path: Path) -> str:
    """Read a mapping."""
    read = read_mapping(path)
    return f"{read.form} {read.unit} {sorted(read.fields)}"
