"""The C library's random numbers, number for number: ``drand48``, ``lrand48``, ``rand`` and ``random_shuffle``.

Programs that other people's results were made with draw from these; the same numbers give the same jobs.
``drand48`` and ``lrand48`` are a linear congruential generator of 48 bits (POSIX); ``rand`` is the additive
feedback generator of the GNU C library with 31 words of state; ``random_shuffle`` is libstdc++'s.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel

__all__ = ["GlibcRand", "lrand48_values", "random_shuffle", "seed48", "uniform48"]

_MULTIPLIER = 0x5DEECE66D
_LOW = 0xFFFFFF
_SCALE = 2.0**-48


def seed48(seed: int) -> NDArray[np.int64]:
    """Return the state after ``srand48(seed)``.

    Parameters
    ----------
    seed : int
        Its lowest 32 bits count.

    Returns
    -------
    int64 array (1,)
        The 48 bits X.
    """
    return np.array([((seed & 0xFFFFFFFF) << 16) | 0x330E], dtype=np.int64)


@kernel
def _advance(state: NDArray[np.int64]) -> int:
    # X <- (0x5DEECE66D X + 0xB) mod 2^48, the factor X in two halves so that 64 bits hold every product.
    low = _MULTIPLIER * (state[0] & _LOW) + 0xB
    high = _MULTIPLIER * (state[0] >> 24) + (low >> 24)
    value: int = ((high & _LOW) << 24) | (low & _LOW)
    state[0] = value
    return value


@kernel
def uniform48(state: NDArray[np.int64]) -> float:
    """Return what ``drand48()`` returns and advance the state.

    Parameters
    ----------
    state : int64 array (1,)
        From `seed48`; changed.
    """
    return _advance(state) * _SCALE


@kernel
def lrand48_values(state: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the next ``count`` values of ``lrand48()`` (0 to 2**31 - 1) and advance the state.

    Parameters
    ----------
    state : int64 array (1,)
        From `seed48`; changed.
    count : int
        How many.
    """
    values = np.empty(count, dtype=np.int64)
    for i in range(count):
        values[i] = _advance(state) >> 17
    return values


class GlibcRand:
    """``rand()`` of the GNU C library (TYPE_3: r[i] = r[i-3] + r[i-31] mod 2^32, the top 31 bits are given out).

    Parameters
    ----------
    seed : int
        The argument of ``srand``; 1 is what a program has that never calls it.
    """

    def __init__(self, seed: int = 1) -> None:
        seed = seed & 0xFFFFFFFF or 1
        word = seed - (1 << 32) if seed >= 1 << 31 else seed
        words = [seed]
        for _ in range(30):
            # Schrage's form of 16807 word mod (2^31 - 1); C divides towards zero.
            high, low = int(word / 127773), word - int(word / 127773) * 127773
            word = 16807 * low - 2836 * high
            word += 2147483647 if word < 0 else 0
            words.append(word)
        # The feedback taps 3 words apart begin at word 3.
        self._words = words[3:] + words[:3]
        for _ in range(310):
            self()

    def __call__(self) -> int:
        """Return the next value, 0 to 2**31 - 1."""
        word = (self._words[-31] + self._words[-3]) & 0xFFFFFFFF
        self._words = [*self._words[1:], word]
        return word >> 1


def random_shuffle(values: MutableSequence[Any], rand: GlibcRand) -> None:
    """Shuffle in place as libstdc++'s ``std::random_shuffle`` does: element i changes with ``rand() % (i + 1)``.

    Parameters
    ----------
    values : mutable sequence
        What is shuffled.
    rand : GlibcRand
        Where the numbers come from.
    """
    for i in range(1, len(values)):
        j = rand() % (i + 1)
        values[i], values[j] = values[j], values[i]
