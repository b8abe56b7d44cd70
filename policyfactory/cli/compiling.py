"""What a command says where it has to wait for the compiler: once, and before its progress bar."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from policyfactory.core.process import announced

WORDS = (
    "the simulator is compiled for this machine first, once: up to half a minute",
    "Slurm's rules are compiled for this machine first, once: about a minute",
)
_OTHERS, _SLURM = WORDS
_announced: set[str] = set()


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Have any command say that it waits for the compiler, whichever kernel it is that begins to be compiled."""
    _announced.clear()
    with announced(lambda module: _say(_SLURM if "slurm" in module else _OTHERS)):
        yield


def note_compiling() -> None:
    """Say that Slurm's rules are compiled, if no variant of them is yet for this machine.

    Where a command knows that they hold: its bar begins before them, or other processes compile them.
    """
    from policyfactory.core.jit import is_compiled
    from policyfactory.engine.slurm.passes import slurm

    if not is_compiled(slurm):
        _say(_SLURM)


def _say(text: str) -> None:
    if text not in _announced:
        from policyfactory.report.terminal import note

        _announced.add(text)
        note(text)
