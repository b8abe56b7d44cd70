"""Many records at once, as columns: what a reader gives where it need not look at each line on its own."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

__all__ = ["NAMES", "NUMBERS", "Block"]

# The columns of `Record`, in this order; ``state`` and ``limit_kind`` are places in `State` and `Limit`.
NUMBERS = (
    "line", "submit", "eligible", "start", "end", "elapsed", "suspended", "limit", "requested", "allocated",
    "requested_nodes", "allocated_nodes", "tasks", "state", "limit_kind",
)  # fmt: skip
NAMES = ("user", "group", "account", "partition", "qos")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Records of one file as columns, in the order of its lines.

    Parameters
    ----------
    numbers : int64 array (15, n)
        A row for each of `NUMBERS`; -1 where the log has no number.
    names : tuple of (int64 array (n,), list of str)
        For each of `NAMES` a number for each record, and the names that the numbers stand for.
    job : list of str
        Ids as the site writes them.
    groups : tuple of (int, str)
        Place in the block, and group id, of each record that has one.
    """

    numbers: NDArray[np.int64]
    names: tuple[tuple[NDArray[np.int64], list[str]], ...]
    job: list[str]
    groups: tuple[tuple[int, str], ...] = ()
