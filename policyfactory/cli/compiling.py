"""What a command says before its first simulation under Slurm's rules, which has to wait for the compiler."""

from __future__ import annotations

from policyfactory.report.terminal import note

__all__ = ["note_compiling"]


def note_compiling() -> None:
    """Say that Slurm's rules are compiled, if they are not yet for this machine."""
    from policyfactory.core.jit import is_compiled
    from policyfactory.engine.slurm import slurm

    if not is_compiled(slurm):
        note("Slurm's rules are compiled for this machine first, once: 2 to 3 minutes (--backfill easy does without)")
