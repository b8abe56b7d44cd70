"""When a predictor learns in a run, and from what: the jobs that have ended by then, in this very run."""

from __future__ import annotations

import numpy as np

from policyfactory.core.units import DAY
from policyfactory.engine.events import NEVER
from policyfactory.engine.past import DESCRIBED, ENDS, Past
from policyfactory.engine.predicted import Foresight
from policyfactory.predict.predictor import Predictor, Training, train_forests
from policyfactory.workload.jobs import Workload

__all__ = ["Lessons"]


class Lessons:
    """The trainings of one run: made as its time goes on, or given.

    Parameters
    ----------
    workload : Workload
        In the order of submission.
    predictor : Predictor
        A model that it keeps is never replaced.
    tail : bool
        Whether to train for e90 too.

    Attributes
    ----------
    next : int
        The instant (ticks) from which on another model may be in force; `NEVER` if none will.
    model_of : int64 array (n,)
        The training whose model was in force when a job was submitted; -1 before the first.
    """

    def __init__(self, workload: Workload, predictor: Predictor, *, tail: bool) -> None:
        self._submit, self._day = workload.submit, DAY * workload.ticks
        self._options, self._tail = predictor.options, tail
        self._given = list(predictor.trainings)
        self._made: list[Training] = []
        self.model_of = np.full(len(workload), -1, dtype=np.int64)
        learns = predictor.forests is None and not self._given
        self.next = int(self._submit[0]) if learns and len(workload) else self._given[0].at if self._given else NEVER

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The models that have been in force, in the order of their trainings."""
        return tuple(self._made)

    def take(self, past: Past, sight: Foresight) -> Foresight:
        """Return what predicts from `next` on, and set `next` to the instant after that.

        Parameters
        ----------
        past : Past
            With what had happened before `next`.
        sight : Foresight
            What predicted before; its features are what is learned from.
        """
        if self._given:
            sight = self._use(self._given.pop(0), past, sight)
            self.next = self._given[0].at if self._given else NEVER
            return sight
        options, ended = self._options, int(past.place[ENDS])
        days = options.first_days
        if ended >= options.least:
            rows = past.ended[max(0, ended - options.window) : ended]
            forests = train_forests(sight.features[rows], past.outcome[rows], options, tail=self._tail)
            sight, days = self._use(Training(self.next, forests), past, sight), options.every_days
        self.next += round(days * self._day)
        # A log may be silent for long.
        self.next = max(self.next, int(self._submit[min(past.place[DESCRIBED], len(self._submit) - 1)]))
        if self.next > int(self._submit[-1]):
            self.next = NEVER
        return sight

    def _use(self, training: Training, past: Past, sight: Foresight) -> Foresight:
        model = training.forests
        self.model_of[past.place[DESCRIBED] :] = len(self._made)
        self._made.append(training)
        return sight._replace(shortness=model.shortness, share=model.share, tail=model.tail)
