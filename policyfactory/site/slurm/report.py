"""What scontrol prints of nodes, partitions and reservations: ``KEY=VALUE`` pairs, on one line each (-o) or on several.

Without ``-o`` all lines of a record but the first are indented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyfactory.site.model import Setting

__all__ = ["is_report", "joined_lines", "reported_pairs"]

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w:/]*)=", re.ASCII)
# What no slurm.conf has: `show config` begins so, and nodes and partitions are told by what slurmctld has counted.
_REPORTED = re.compile(
    r"^(?:Configuration data as of|[^#\n]*?\b(?:CPUTot|TotalCPUs|SLURM_VERSION|BOOT_TIME)\s{0,40}=)",
    re.ASCII | re.MULTILINE,
)


def is_report(text: str) -> bool:
    """Say whether a text is what ``scontrol show`` prints of settings, nodes or partitions, and no slurm.conf."""
    return _REPORTED.search(text) is not None


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines that are not empty, those that are indented behind the one above, with the number of the first."""
    begin, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if parts and line.startswith(" ") and line.strip():
            parts.append(line.strip())
            continue
        if parts:
            yield begin, " ".join(parts)
        begin, parts = number, [line.strip()] if line.strip() else []
    if parts:
        yield begin, " ".join(parts)


def reported_pairs(line: str, place: str) -> list[Setting]:
    """Return the pairs of a line; a value goes on to the next key, blanks included."""
    keys = list(_KEY.finditer(line))
    ends = [*(key.start() for key in keys[1:]), len(line)]
    # Without a key there is an end and no pair.
    return [Setting(key[1], line[key.end() : end].strip(), place) for key, end in zip(keys, ends, strict=False)]
