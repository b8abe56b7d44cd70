"""What is assumed of jobs whose log does not say how many nodes, how much memory or how many GPUs they ask for.

An assumption is a number, or the processors multiplied or divided: ``n=q/32``, ``mem=2000*q``, ``g=0``. It holds for
the jobs of which the log says nothing; what the log says stays.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests
from policyfactory.workload.swf.extra import EXTRA_FIELDS, EXTRA_LABEL, requests_of
from policyfactory.workload.swf.log import SwfLog

__all__ = [
    "COLUMN_OF",
    "Assumption",
    "assume",
    "assume_of_log",
    "assumed",
    "how_to_assume",
    "parse_assumptions",
]


# The variables of formulas, and the columns of `Requests`.
COLUMN_OF = {"n": "nodes", "mem": "memory", "g": "gpus"}
_EXAMPLES = {"n": "n=q/32", "mem": "mem=2000*q", "g": "g=0"}
_TERM = re.compile(r"(?:(\d{1,9}(?:\.\d{1,6})?)\*)?(q)(?:/(\d{1,9}(?:\.\d{1,6})?))?|(\d{1,12})", re.ASCII)
_LARGEST = 1 << 40


@dataclasses.dataclass(frozen=True, slots=True)
class Assumption:
    """What is assumed of one variable.

    Parameters
    ----------
    name : str
        ``n``, ``mem`` or ``g``.
    text : str
        The number or the term, as it was written.
    """

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}={self.text}"

    @property
    def column(self) -> str:
        """The column of `Requests` that it fills."""
        return COLUMN_OF[self.name]

    def values(self, processors: Int64Array) -> Int64Array:
        """Return what is assumed of jobs, whole numbers, rounded up; of nodes at least 1."""
        times, q, parts, constant = _TERM.fullmatch(self.text).groups()  # type: ignore[union-attr]
        least = 1 if self.name == "n" else 0
        if q is None:
            return np.full(len(processors), max(int(constant), least), dtype=np.int64)
        exact = processors * float(times or 1) / float(parts or 1)
        whole: Int64Array = np.clip(np.ceil(exact - 1e-9), least, _LARGEST).astype(np.int64)
        return whole


def how_to_assume(name: str) -> str:
    """Return how to say what is assumed of one of n, mem and g, for messages."""
    example = _EXAMPLES[name]
    return (
        f"say what to assume of them: --assume {example} (where there is no such option: policyfactory workload clean "
        f"LOG --assume {example} --output FILLED.swf; in Python: policyfactory.read(LOG, assume={example!r}))"
    )


def parse_assumptions(text: str) -> tuple[Assumption, ...]:
    """Return the assumptions of ``mem=2000*q,g=0,n=q/32``.

    Raises
    ------
    UsageError
        If there is none, one cannot be read, or a variable comes twice.
    """
    form = "write for example n=q/32,mem=2000*q,g=0 (n nodes, mem MB in all, g GPUs in all; q: processors of the job)"
    assumptions: dict[str, Assumption] = {}
    for part in text.replace(" ", "").split(","):
        name, _, value = part.partition("=")
        match = _TERM.fullmatch(value)
        if name not in COLUMN_OF or match is None or (match[3] is not None and not float(match[3])):
            raise UsageError(f"the assumption {printable(part, 60)!r} cannot be read; {form}")
        if name in assumptions:
            raise UsageError(f"the assumptions {printable(text, 60)!r} have {name} twice; {form}")
        assumptions[name] = Assumption(name, value)
    return tuple(assumptions.values())


def assume(workload: Workload, text: str) -> Workload:
    """Return the jobs with assumptions where their log does not say what they ask for.

    Parameters
    ----------
    workload : Workload
        The jobs.
    text : str
        For example ``"mem=2000*q,g=0"``.

    Raises
    ------
    UsageError
        If it is no assumption.
    """
    requests = workload.requests or Requests.unknown(len(workload))
    for one in parse_assumptions(text):
        column = getattr(requests, one.column)
        missing = column < 0
        if missing.any():
            filled = np.where(missing, one.values(workload.processors), column)
            changes: dict[str, Any] = {one.column: filled, "assumed": (*requests.assumed, _sentence(one, missing))}
            requests = dataclasses.replace(requests, **changes)
    said = requests.assumed[0 if workload.requests is None else len(workload.requests.assumed) :]
    origin = "; ".join([workload.origin, *said])
    return dataclasses.replace(workload, requests=requests, origin=origin)


def assumed(workload: Workload, text: str | None) -> Workload:
    """Return the jobs as `assume` does; as they are, if nothing is assumed."""
    return workload if text is None else assume(workload, text)


def _sentence(one: Assumption, missing: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    return f"assumed {one} for {int(missing.sum()):,} of {len(missing):,} jobs, of which the log does not say it"


def assume_of_log(log: SwfLog, text: str) -> tuple[SwfLog, tuple[str, ...]]:
    """Return a log with assumptions in its further fields, and what was assumed, in words.

    Parameters
    ----------
    log : SwfLog
        Cleaned: field 8 has the processors of each job.
    text : str
        For example ``"mem=2000*q,g=0"``.

    Raises
    ------
    UsageError
        If it is no assumption.
    """
    unknown = np.full(len(log), -1, dtype=np.int64)
    names = ("requested_memory", "preceding", "user", "queue", "partition")
    columns = {name: np.ceil(column).astype(np.int64) for name, column in {
        **{name: getattr(log, name) for name in names}, **log.extra
    }.items()}  # fmt: skip
    known = requests_of(log.header, columns, processors=log.requested, submit=log.submit)
    extra, said = dict(log.extra), []
    for one in parse_assumptions(text):
        column = unknown if known is None else getattr(known, one.column)
        field = "memory_mb" if one.name == "mem" else one.column
        missing = column < 0
        if missing.any():
            said.append(_sentence(one, missing))
        extra[field] = np.where(missing, one.values(log.requested), column)
    # In the order in which the fields are described.
    extra = {name: extra[name] for name in EXTRA_FIELDS if name in extra}
    header = log.header.replace({EXTRA_LABEL: " ".join(extra)}, tuple(said))
    return dataclasses.replace(log, header=header, extra=extra), tuple(said)
