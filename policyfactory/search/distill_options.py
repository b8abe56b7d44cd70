"""What can be said of how a network is made a formula."""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError
from policyfactory.search.families import FAMILIES
from policyfactory.search.options import TrainOptions

__all__ = ["SURFACE", "DistillOptions"]

# To fit many coefficients to an order costs next to nothing, so there is one family more than for a search: all of
# second degree that schedulers with a wait take. x is log10(p), y log10(q), v log10(w + 10) - 1.
_X, _Y, _V = "log10(max(p, 1))", "log10(q)", "(log10(w + 10) - 1)"
SURFACE = (
    f"surface={_X} + a*{_Y} + b*{_V} + c*{_X}*{_Y} + d*{_X}*{_V} + i*{_Y}*{_V} + h*{_X}**2 + k*{_Y}**2 + o*{_V}**2"
)

_MOST_DECISIONS, _MOST_PAIRS = 10_000, 100_000


# Without slots, so that the class has the defaults: DistillOptions.decisions.
@dataclasses.dataclass(frozen=True)
class DistillOptions:
    """Where the network plays, what is asked of it there, and which formulas are fitted to its order.

    Parameters
    ----------
    windows : TrainOptions
        Windows, goal, rules and how the log is read; those for training are fitted on. The mode is the network's.
    families : tuple of str
        As for a search (`policyfactory.search.families`), besides the forms of `fit` and the published policies;
        by default all of them, and `SURFACE`.
    decisions : int
        Decisions of a window: at most so many are drawn.
    pairs : int
        Pairs of a decision: at most so many are drawn.
    margin : float
        What a wait in a formula must add to the share of pairs ordered alike to be worth it: some schedulers take a
        key that never changes only; the interval over the windows must be above 0 too, where there are enough for one.
        The same of the free processors.

    Raises
    ------
    UsageError
        If a value is outside its limits.
    """

    windows: TrainOptions = dataclasses.field(default_factory=lambda: TrainOptions(bands=()))
    families: tuple[str, ...] = (*FAMILIES, SURFACE)
    decisions: int = 40
    pairs: int = 100
    margin: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.decisions <= _MOST_DECISIONS:
            raise UsageError(f"--decisions {self.decisions}: give 1 to {_MOST_DECISIONS:,}")
        if not 1 <= self.pairs <= _MOST_PAIRS:
            raise UsageError(f"--pairs {self.pairs}: give 1 to {_MOST_PAIRS:,}")
        if not 0 <= self.margin < 1:
            raise UsageError(f"--margin {self.margin}: give a share of pairs from 0 to below 1, as in 0.01")
