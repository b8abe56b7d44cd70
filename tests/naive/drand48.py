"""The C library's 48-bit generator with Python's integers, straight from its definition."""

from __future__ import annotations

__all__ = ["lrand48_values", "uniform48"]


def uniform48(state: list[int]) -> float:
    """Advance ``state`` (one integer of 48 bits) and return it as a fraction of 2**48."""
    state[0] = (0x5DEECE66D * state[0] + 0xB) % 2**48
    return state[0] / 2**48


def lrand48_values(state: list[int], count: int) -> list[int]:
    """Return the upper 31 of 48 bits, ``count`` times."""
    return [int(uniform48(state) * 2**31) for _ in range(count)]
