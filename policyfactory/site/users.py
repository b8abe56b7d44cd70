"""Users that a log only numbers: where all users of an account have the same rights, any of their names will do."""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.options import Int64Array
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests

__all__ = ["with_alike_users"]


def with_alike_users(requests: Requests, user: Int64Array, site: Site) -> Requests:
    """Return requests in which users without a name have that of an association of their account, if all are alike.

    Shares and limits that all users of an account have do not depend on who is who. A user of two accounts can have
    two names, and of users beyond the associations of an account, and of accounts whose users differ, nothing is known.

    Parameters
    ----------
    requests : Requests
        Of some jobs.
    user : int64 array (n,)
        The log's number of each job's user, -1 for none.
    site : Site
        With its associations.
    """
    rows = np.flatnonzero((requests.user_name < 0) & (requests.account >= 0) & (user >= 0))
    names = list(requests.names.get("user", ()))
    free = _alike(site)
    if not len(rows) or not free:
        return requests
    column = requests.user_name.copy()
    pairs, which = np.unique(np.stack([requests.account[rows], user[rows]]), axis=1, return_inverse=True)
    of_pair = np.full(pairs.shape[1], -1, dtype=np.int64)
    for pair, account in enumerate(pairs[0].tolist()):
        if theirs := free.get(requests.names["account"][account]):
            of_pair[pair] = len(names)
            names.append(theirs.pop())
    column[rows] = of_pair[which.reshape(-1)]
    return dataclasses.replace(requests, user_name=column, names={**requests.names, "user": tuple(names)})


def _alike(site: Site) -> dict[str, list[str]]:
    """Return the users of each account whose users have the same shares and limits."""
    users: dict[str, list[str]] = {}
    kinds: dict[str, set[object]] = {}
    for one in site.associations:
        if one.user:
            users.setdefault(one.account, []).append(one.user)
            kinds.setdefault(one.account, set()).add(dataclasses.replace(one, user=""))
    return {account: theirs for account, theirs in users.items() if len(kinds[account]) == 1}
