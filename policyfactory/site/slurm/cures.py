"""What Slurm's files call the settings of a site, and what to do in them where they contradict each other."""

from __future__ import annotations

from policyfactory.site.origin import Origin

__all__ = ["slurm_origin"]

_NAMES = {
    "min_nodes": ("minnodes",),
    "max_nodes": ("maxnodes",),
    "default_time": ("defaulttime",),
    "max_time": ("maxtime",),
    "per_job": ("maxtres", "maxtresperjob"),
    "total": ("grptres",),
    "bf_window": ("bf_window",),
    "bf_resolution": ("bf_resolution",),
    "default_queue_depth": ("default_queue_depth",),
    "bf_max_job_test": ("bf_max_job_test", "max_job_bf"),
}
_CURES = {
    "no partition": "add its PartitionName lines, or the file in which they are",
    "partition twice": "write one PartitionName line of each name",
    "defaults": "write Default=YES on one PartitionName line",
    "fewest": "lower MinNodes or raise MaxNodes",
    "few": "lower MinNodes, or add to Nodes",
    "default time": "lower DefaultTime or raise MaxTime",
    "no time": "raise MaxTime, or write UNLIMITED",
    "no QOS": "correct the name, or give the table of all QOS: sacctmgr -P show qos > qos.txt",
    "no node": "add it to a NodeName line, or correct the name",
    "QOS twice": "print the table again: sacctmgr -P show qos > qos.txt",
    "association twice": "give what sacctmgr dump CLUSTER writes, of one cluster",
    "job above all": "lower MaxTRES or raise GrpTRES",
    "no account": "the line Account - '{account}' must be there: give all that sacctmgr dump CLUSTER writes",
    "circle": "give what sacctmgr dump CLUSTER writes",
    "default QOS": "add it to QOS, or change DefaultQOS",
    "reservation ends": "correct StartTime or EndTime",
    "no depth": "give at least 1, or take it out for Slurm's default",
    "window": "raise bf_window, which is in minutes, or lower bf_resolution, which is in seconds",
}


def slurm_origin() -> Origin:
    """Return an origin that knows Slurm's words, and no entry yet."""
    return Origin(_NAMES, _CURES)
