"""Random orders from four words of a seed.

Nothing here is random by itself: the words are drawn outside (``core.random``), and the orders are a function of
them. The generator is xoshiro128++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
ACM TOMS 47(4), 2021, doi:10.1145/3460772): 32-bit words held in int64, so compiled and plain code agree. The
shuffle is Fisher and Yates's with Lemire's unbiased bounded integers (ACM TOMACS 29(1), 2019, doi:10.1145/3230636).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["next_word", "shuffle"]

_MASK = 0xFFFFFFFF


@kernel
def next_word(s0: int, s1: int, s2: int, s3: int) -> tuple[int, int, int, int, int]:
    """Return 32 random bits and the four words (0 to 2**32 - 1, not all 0) that come after the given ones."""
    total = (s0 + s3) & _MASK
    bits = ((((total << 7) & _MASK) | (total >> 25)) + s0) & _MASK
    shifted = (s1 << 9) & _MASK
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = ((s3 << 11) & _MASK) | (s3 >> 21)
    return bits, s0, s1, s2, s3


@kernel
def shuffle(words: NDArray[np.int64], orders: NDArray[np.uint8]) -> None:
    """Fill every row of ``orders`` (uint8 array (b, n)) with a permutation of 0 to n - 1, all equally likely.

    ``words`` (int64 array (4,), 0 to 2**32 - 1, not all 0) is moved on: the next call goes on with the stream.
    """
    n = orders.shape[1]
    # The words stay in registers: an array could overlap with the orders, and each draw would wait for memory.
    s0, s1, s2, s3 = words[0], words[1], words[2], words[3]
    for row in range(len(orders)):
        for i in range(n):
            orders[row, i] = i
        for i in range(n - 1, 0, -1):
            bits, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            product = bits * (i + 1)
            if product & _MASK <= i:
                # 2**32 is no multiple of most numbers: words in excess of the last multiple are drawn again.
                excess = (_MASK + 1) % (i + 1)
                while product & _MASK < excess:
                    bits, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                    product = bits * (i + 1)
            j = product >> 32
            orders[row, i], orders[row, j] = orders[row, j], orders[row, i]
    words[0], words[1], words[2], words[3] = s0, s1, s2, s3
