"""Score the waiting jobs of some users anew, when what is known of them has changed.

An update that sets the nice value to what it is changes nothing else, and the script of the export scores the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyfactory.export.scripts import sentences

__all__ = ["renewal_commands"]

_USERS = 200  # named in one command


def renewal_commands(users: Sequence[str]) -> Iterator[str]:
    """Give commands for sh, of which each scores the waiting jobs of up to 200 users.

    Parameters
    ----------
    users : sequence of str
        Their numbers; what is none is left out.
    """
    numbers = [user for user in users if user.isascii() and user.isdigit()]
    for begin in range(0, len(numbers), _USERS):
        yield from sentences("slurm.txt", "renew", USERS=",".join(numbers[begin : begin + _USERS]))
