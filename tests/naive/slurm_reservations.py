"""Who may use a reservation, and which others keep nodes from its jobs, plainly.

Slurm 22.05 to 24.11: slurmctld/reservation.c, _valid_job_access_resv and job_test_resv.
"""

from __future__ import annotations

from naive.slurm_jobs import Job
from naive.slurm_limits import Rules
from policyfactory.site.model import Reservation

__all__ = ["is_maintenance", "keeps_from", "may_use_reservation", "waited_for"]


def may_use_reservation(one: Reservation, job: Job, rules: Rules) -> bool:
    accounts = [job.account]
    if rules.known_only and not one.users:
        accounts += [above.account for above in rules.chain(job)]
    if f"-{job.user}" in one.users or any(f"-{account}" in one.accounts for account in accounts):
        return False
    users = [name for name in one.users if not name.startswith("-")]
    named = [name for name in one.accounts if not name.startswith("-")]
    if not one.users and not one.accounts:
        return False
    return (not users or job.user in users) and (not named or bool(set(accounts) & set(named)))


def is_maintenance(one: Reservation) -> bool:
    """Return whether it is one; what is open to nobody is taken for one."""
    return "MAINT" in one.flags or not (one.users or one.accounts)


def waited_for(one: Reservation) -> bool:
    """Return whether a job waits for its end that has no node beside it."""
    return is_maintenance(one) or "ALL_NODES" in one.flags


def keeps_from(other: Reservation, mine: Reservation | None) -> bool:
    """Return whether a reservation keeps its nodes from the jobs of one, or of none."""
    if mine is None:
        return True
    if other is mine or "MAINT" in mine.flags:
        return False
    return not ("OVERLAP" in mine.flags and not is_maintenance(other))
