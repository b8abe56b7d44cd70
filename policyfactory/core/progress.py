"""How far work is, for whoever shows it."""

from __future__ import annotations

__all__ = ["WorkCounter"]


class WorkCounter:
    """Counts work units of one kind, in the calling thread; this one shows nothing."""

    def expect(self, count: int) -> None:
        """Note that ``count`` more work units are to be done."""

    def resumed(self, count: int) -> None:
        """Note that an earlier run has finished ``count`` of them."""

    def done(self, amount: int) -> None:
        """Note that one work unit is done; ``amount`` is what it consists of (jobs, trials), for the speed."""
