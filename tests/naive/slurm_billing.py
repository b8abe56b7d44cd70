"""What a running job counts in usage each second, plainly.

Slurm 22.05 to 26.05: job_mgr.c, calc_job_billable_tres; assoc_mgr.c, assoc_mgr_tres_weighted. MAX_TRES_GRES came with
25.05 (its man page).
"""

from __future__ import annotations

from naive.slurm_jobs import Entry

__all__ = ["billed"]


def billed(entry: Entry, flags: set[str]) -> float:
    """Return the cores of a job that runs, or what the weights of its partition make of all that it holds."""
    weights = entry.partition.billing
    if not weights:
        return entry.held_cores
    cores, memory, gpus = (sum(share[at] for share in entry.allocation.values()) for at in range(3))
    held = {"cpu": cores, "mem": memory, "node": len(entry.allocation), "gres/gpu": gpus}
    of_each = {name: amount * weights.get(name, 0.0) for name, amount in held.items()}
    if "MAX_TRES_GRES" in flags:
        of_gpus = of_each.pop("gres/gpu")
        return of_gpus + max(0.0, *of_each.values())
    return max(0.0, *of_each.values()) if "MAX_TRES" in flags else sum(of_each.values())
