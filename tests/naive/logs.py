"""Small logs for tests, written out or built from a few columns."""

from __future__ import annotations

from collections.abc import Iterable

from policyfactory.workload.swf.files import parse_swf
from policyfactory.workload.swf.log import FIELDS, SwfLog

HEADER = """\
; Version: 2.2
; Computer: A test
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Stockholm
; MaxNodes: 10
; MaxProcs: 10
"""


def line(**fields: object) -> str:
    """Return a job line; what is not named is a harmless job of one processor."""
    usual = {
        "job_id": 1, "submit": 0, "wait": 0, "run_time": 10, "allocated": 1, "requested": 1, "requested_time": 20,
        "status": 1,
    }  # fmt: skip
    values = dict.fromkeys(FIELDS, -1) | usual | fields
    assert set(values) == set(FIELDS)
    return " ".join(str(values[field]) for field in FIELDS)


def text_of(jobs: Iterable[dict[str, object]], header: str = HEADER) -> str:
    """Return the text of a log; jobs are numbered from 1 unless they say otherwise."""
    return header + "".join(line(**{"job_id": n, **job}) + "\n" for n, job in enumerate(jobs, start=1))


def log_of(jobs: Iterable[dict[str, object]], header: str = HEADER) -> SwfLog:
    """Return the log."""
    return parse_swf(text_of(jobs, header).encode(), "test.swf")
