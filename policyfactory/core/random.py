"""Random streams: one seed, one independent generator a purpose.

A stream is addressed by the seed and a path of integers (purpose, tuple number, ...), so a result depends
neither on the number of workers nor on the order in which the work is done.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.errors import UsageError


def check_seed(seed: int) -> int:
    """Return ``seed`` if it is an integer of 0 to 2**63 - 1.

    Raises
    ------
    UsageError
        If it is negative or too large.
    """
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed {seed} is outside 0 to 2**63 - 1; give a non-negative integer")
    return seed


def generator(seed: int, *path: int) -> np.random.Generator:
    """Return the PCG64 generator at ``path`` below ``seed``.

    Parameters
    ----------
    seed : int
        The user's seed, 0 to 2**63 - 1.
    path : int
        Non-negative integers that name the purpose, for example ``(2, tuple_number)``.
    """
    sequence = np.random.SeedSequence(check_seed(seed), spawn_key=path)
    return np.random.Generator(np.random.PCG64(sequence))
