"""The result of `policyfactory.predict`, and how to look at it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from policyfactory.accuracy.compared import Compared
from policyfactory.accuracy.picture import draw_calibration
from policyfactory.accuracy.words import sentences
from policyfactory.core.picture import keeps_settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Predicted"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Predicted(Compared):
    """Predictions of the jobs of a log, and how good they are; parameters as of `Compared`."""

    def frame(self) -> pd.DataFrame:
        """Return one row a job: the workload's columns, e, s, e90, what the rules say, history, training."""
        made: dict[str, Any] = {"e": self.mean, "s": self.shortness, "e90": self.tail}
        made |= {name.replace(" ", "_"): values for name, values in self.rules.items() if name != "request"}
        return self.workload.frame().assign(**made, user_ended=self.history, training=self.model_of)

    def summary(self) -> str:
        """Return what was found, in sentences."""
        return "\n".join(sentences(self))

    @keeps_settings
    def plot(self) -> Figure:
        """Return the calibration as a picture: predicted and actual, tenth by tenth."""
        return draw_calibration(self)
