"""Who is told that a kernel is being compiled, which takes a while; apart from the compiler, which is slow to load."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["announce", "announced"]

_listeners: list[Callable[[str], None]] = []


@contextlib.contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Have ``say`` called with the module of each kernel that this process begins to compile for a call of its own.

    What is compiled into it is not announced.
    """
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)


def announce(module: str) -> None:
    """Say that a kernel of a module is being compiled."""
    for say in _listeners:
        say(module)
