"""The command that prints a Slurm log for import: told by ``--help`` and by errors, so that it is in one place."""

from __future__ import annotations

__all__ = ["RECOMMENDED", "RECOMMENDED_LINES"]

# Free texts (job name, submit line, working directory) are not asked for: a `|` in one of them adds columns.
_FIELDS = (
    "JobIDRaw,JobID,UID,GID,Account,Partition,QOS,State,Submit,Eligible",
    "Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS",
    "ReqNodes,NNodes,AllocNodes,ReqTRES,Suspended,Flags",
)
_COMMAND = "SLURM_TIME_FORMAT=%s sacct -a -X -D -P --noconvert -S 2026-01-01 -E now"

RECOMMENDED = f"{_COMMAND} -o {','.join(_FIELDS)}"

# The same for a terminal of 80 columns, to be copied as it stands: sacct adds up its options -o (22.05.8, seen).
RECOMMENDED_LINES = (
    f"{_COMMAND} \\",
    *(f"  -o {fields} \\" for fields in _FIELDS[:-1]),
    f"  -o {_FIELDS[-1]} > sacct.txt",
)
