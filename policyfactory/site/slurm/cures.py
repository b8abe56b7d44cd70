"""What to do in Slurm's files where they contradict each other and slurmctld would not go on."""

from __future__ import annotations

from policyfactory.site.origin import Origin

__all__ = ["slurm_origin"]

_CURES = {
    "no partition": "add its PartitionName lines, or the file in which they are",
    "partition twice": "write one PartitionName line of each name",
    "no QOS": "correct the name, or give the table of all QOS: sacctmgr -P show qos > qos.txt",
    "no node": "add it to a NodeName line, or correct the name",
    "QOS twice": "print the table again: sacctmgr -P show qos > qos.txt",
    "no account": "the line Account - '{account}' must be there: give all that sacctmgr dump CLUSTER writes",
    "circle": "give what sacctmgr dump CLUSTER writes",
    "reservation ends": "correct StartTime or EndTime",
}


def slurm_origin() -> Origin:
    """Return an origin that knows Slurm's cures, and no entry yet."""
    return Origin({}, _CURES)
