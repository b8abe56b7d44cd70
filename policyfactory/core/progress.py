"""How far work is, for whoever shows it."""

from __future__ import annotations

__all__ = ["WorkCounter"]


class WorkCounter:
    """Counts work units of one kind, in the calling thread; this one shows nothing."""

    def expect(self, count: int) -> None:
        """More work units are to be done."""

    def resumed(self, count: int) -> None:
        """Work units that an earlier run has finished."""

    def done(self, amount: int) -> None:
        """One work unit is done; ``amount`` is what it consists of (jobs, trials), for the speed."""
