"""Who may use a reservation, and which others its jobs pass over, by the rules of Slurm (slurmctld/reservation.c)."""

from __future__ import annotations

from collections.abc import Sequence

from policyfactory.engine.slurm.holding import CLOSES, MAINTAINS, OVERLAPS
from policyfactory.site.model import Reservation


def lets_in(reservation: Reservation, user: str, accounts: Sequence[str]) -> bool:
    """Tell whether a job may use a reservation (_valid_job_access_resv).

    Parameters
    ----------
    reservation : Reservation
    user : str
        Its user.
    accounts : sequence of str
        Its account; where associations are enforced, the accounts above as well.
    """
    if not reservation.users and not reservation.accounts:
        return False
    # Of a list of users and one of accounts both hold, and then it is the user's own account that counts.
    mine = accounts[:1] if reservation.users else accounts
    return _names(reservation.users, [user]) and _names(reservation.accounts, mine)


def _names(listed: Sequence[str], mine: Sequence[str]) -> bool:
    if any(name.startswith("-") for name in listed):
        return not any(f"-{name}" in listed for name in mine)
    return not listed or any(name in listed for name in mine)


def kind_of(reservation: Reservation) -> int:
    """Return the kind of a reservation for the engine; one for nobody is a maintenance, too."""
    flags = {flag.upper() for flag in reservation.flags}
    maintains = "MAINT" in flags or not reservation.users + reservation.accounts
    closes = maintains or "ALL_NODES" in flags
    return CLOSES * closes + MAINTAINS * maintains + OVERLAPS * ("OVERLAP" in flags)
