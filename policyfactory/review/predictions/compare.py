"""What was predicted of the jobs of a log, each when it was submitted, and what came of it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY
from policyfactory.prediction.features import local_seconds, missing, requests_of

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy
    from policyfactory.prediction.options import PredictorOptions
    from policyfactory.prediction.training import Forests
    from policyfactory.workload.jobs import Workload

SHORT_S = 60.0  # a job below is called short


@dataclasses.dataclass(frozen=True, slots=True)
class Measures:
    """How far predictions are from run times; NaN where there is nothing to measure.

    Parameters
    ----------
    jobs : int
        Jobs that were predicted.
    absolute_s : float
        Mean absolute error, s.
    absolute_ln : float
        Mean absolute error of the natural logarithm, both times taken as 1 s at least.
    median_ratio : float
        Median of predicted over actual.
    under : float
        Share of the jobs that ran longer than predicted.
    auc : float
        Probability that of a job below a minute and a longer one the former is called the shorter.
    """

    jobs: int
    absolute_s: float
    absolute_ln: float
    median_ratio: float
    under: float
    auc: float


def measures_of(predicted: FloatArray, run: FloatArray, length: FloatArray) -> Measures:
    """Return the measures of some jobs.

    Parameters
    ----------
    predicted, run : float64 array (n,), s
        Predicted and actual run times.
    length : float64 array (n,)
        Orders the jobs, those first that are taken to be the shortest.
    """
    if not len(run):
        return Measures(0, *[math.nan] * 5)
    actual = np.maximum(run, 1.0)
    return Measures(
        jobs=len(run),
        absolute_s=float(np.abs(predicted - run).mean()),
        absolute_ln=float(np.abs(np.log(np.maximum(predicted, 1.0) / actual)).mean()),
        median_ratio=float(np.median(predicted / actual)),
        under=float(is_longer(run, predicted).mean()),
        auc=area_under_curve(length, run < SHORT_S),
    )


def is_longer(run: FloatArray, predicted: FloatArray) -> NDArray[np.bool_]:
    """Tell which jobs ran longer than predicted: bool array (n,), of times in s.

    Predictions are made by way of logarithms: a request may come back less by its last bits.
    """
    longer: NDArray[np.bool_] = run > predicted * (1.0 + 1e-9)
    return longer


def area_under_curve(values: FloatArray, is_short: NDArray[np.bool_]) -> float:
    """Return the probability that a short job's value is below that of another one, ties counting half.

    Parameters
    ----------
    values : float64 array (n,)
        What orders the jobs.
    is_short : bool array (n,)
        Which are short; NaN is returned where all are, or none.
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    # The mean rank, from 1, of jobs with one value.
    rank = (np.cumsum(counts) - (counts - 1) / 2.0)[which]
    short = int(is_short.sum())
    others = len(values) - short
    if not short or not others:
        return math.nan
    above = rank[~is_short].sum() - others * (others + 1) / 2.0
    return float(above / (short * others))


# What was predicted of the jobs of a log, each when it was submitted, and what came of it -----------------------------


MODEL = "model"
# What is beside the model, in the order of the tables; the ninth decile is beside e90 only.
RULES = ("request", "mean of last two", "fading mean", "nearest neighbours", "median share")
_PERIOD = 30  # days, where a log has no date
_HISTORY = (("no ended job", 0, 0), ("1 to 4", 1, 4), ("5 or more", 5, 1 << 62))

Mask = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Some jobs, and how well each predictor did on them.

    Parameters
    ----------
    name : str
        Which jobs, in words: a month, or what their users' history is.
    measures : dict of str to Measures
        `MODEL` first, then the `RULES`.
    """

    name: str
    measures: dict[str, Measures]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestedTimes:
    """How requested times were read.

    Parameters
    ----------
    undone : int
        Jobs whose request was raised to the run time, which was undone.
    left : int
        Jobs that ran exactly as long as they had asked for, and whose request is taken as it is: it may have been
        raised too, and nothing tells it from one of a job that ran into its limit.
    longer : int
        Jobs that ran longer than they had asked for.
    """

    undone: int
    left: int
    longer: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ComparedPredictors:
    """Predictions of n jobs in submit order, beside what simple rules make of the same past.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policy : Policy
        The order of the queue in the simulation that was the past.
    options : PredictorOptions
        How the predictor learned.
    model : Forests
        The last one that was trained, or the one that was given.
    trained : tuple of int
        Jobs of each training; empty if the model was given.
    model_of : int64 array (n,)
        The training whose model predicted a job, -1 before the first; 0 for all if the model was given.
    mean, shortness, tail : float64 array (n,)
        e (s), s and e90 (s) of each job.
    rules : dict of str to float64 array (n,), s
        What each of the `RULES` says, and ``"ninth decile"``.
    history : int64 array (n,)
        Ended jobs of the user at submission; -1 for an unknown user.
    seen : bool
        Whether the model that was given had been trained on these very jobs.
    """

    workload: Workload
    policy: Policy
    options: PredictorOptions
    model: Forests
    trained: tuple[int, ...]
    model_of: Int64Array
    mean: FloatArray
    shortness: FloatArray
    tail: FloatArray
    rules: dict[str, FloatArray]
    history: Int64Array
    seen: bool = False

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def run(self) -> FloatArray:
        """Actual run times: float64 array (n,), s."""
        run: FloatArray = self.workload.run_time / self.workload.ticks
        return run

    @property
    def is_modelled(self) -> Mask:
        """Whether a trained model predicted a job: bool array (n,)."""
        mask: Mask = self.model_of >= 0
        return mask

    @property
    def requests(self) -> RequestedTimes:
        """What was done about requests that were raised to the run time."""
        made, given = requests_of(self.workload), self.workload.requested_time / self.workload.ticks
        kept = made == given
        counts = (~kept, kept & (self.run == given), kept & (self.run > given))
        return RequestedTimes(*(int(rows.sum()) for rows in counts))

    @property
    def missing(self) -> tuple[str, ...]:
        """What the log does not say, in words."""
        return missing(self.workload)

    def group(self, name: str, rows: Mask) -> Group:
        """Return how well some jobs were predicted.

        Parameters
        ----------
        name : str
            What to call them.
        rows : bool array (n,)
            Which they are.
        """
        run = self.run[rows]
        # A shortness has an order of its own, in which jobs of a minute or less are told apart.
        found = {MODEL: measures_of(self.mean[rows], run, -self.shortness[rows])}
        for rule in RULES:
            guess = self.rules[rule][rows]
            found[rule] = measures_of(guess, run, guess)
        return Group(name, found)

    @property
    def overall(self) -> Group:
        """All jobs that a trained model predicted."""
        return self.group("all", self.is_modelled)

    @property
    def by_history(self) -> list[Group]:
        """The jobs that a trained model predicted, by how many jobs of their user had ended."""
        kinds = [*_HISTORY, ("user unknown", -1, -1)]
        chosen = {name: self.is_modelled & (self.history >= low) & (self.history <= high) for name, low, high in kinds}
        return [self.group(name, rows) for name, rows in chosen.items() if rows.any()]

    @property
    def before(self) -> Group | None:
        """The jobs before the first training, for which the request is taken; None if there are none."""
        rows = ~self.is_modelled
        return self.group("before the first training", rows) if rows.any() else None

    @property
    def by_month(self) -> list[Group]:
        """The jobs that a trained model predicted, by calendar month, or by 30 days where the log has no date."""
        names = self.months()
        kept = self.is_modelled
        return [self.group(str(name), kept & (names == name)) for name in dict.fromkeys(names[kept].tolist())]

    def months(self) -> NDArray[np.str_]:
        """Return the name of the month of each job: ``1996-10``, or ``days 31 to 60``."""
        local = local_seconds(self.workload)
        if self.workload.unix_start is not None:
            return local.astype("datetime64[s]").astype("datetime64[M]").astype(np.str_)
        period = (local - local[:1]) // (_PERIOD * DAY)
        words = [f"days {_PERIOD * at + 1} to {_PERIOD * (at + 1)}" for at in range(int(period.max(initial=-1)) + 1)]
        return np.array(words)[period] if words else np.empty(0, dtype=np.str_)

    def coverage(self) -> dict[str, float]:
        """Return the share of the jobs that ran no longer than a ninth decile: e90's, the user's share's, the request.

        NaN for e90 if the model has none.
        """
        rows, run = self.is_modelled, self.run
        has_tail = len(self.model.tail.roots) > 0
        kinds = {"e90": self.tail, "ninth decile of the user's share": self.rules["ninth decile"]}
        kinds["request"] = self.rules["request"]
        shares = {
            name: float(1.0 - is_longer(run, values)[rows].mean()) for name, values in kinds.items() if rows.any()
        }
        return shares if has_tail else {**shares, "e90": float("nan")}

    def deciles(self, values: FloatArray) -> list[Mask]:
        """Return the tenths of the jobs that a model predicted, by what was predicted; equal ones stay together.

        Parameters
        ----------
        values : float64 array (n,)
            What orders the jobs.

        Returns
        -------
        list of bool array (n,)
            At most ten, none of them empty.
        """
        rows = self.is_modelled
        edges = np.quantile(values[rows], np.arange(1, 10) / 10) if rows.any() else np.empty(0)
        which = np.searchsorted(edges, values, side="left")
        return [mask for tenth in range(10) if (mask := rows & (which == tenth)).any()]

    def calibration(self) -> list[dict[str, float]]:
        """Return, tenth by tenth of the predicted shortness, what was predicted and what came of it."""
        actual, run = 10.0 / np.maximum(self.run, 10.0), self.run
        return [
            {
                "jobs": float(rows.sum()),
                "predicted": float(self.shortness[rows].mean()),
                "actual": float(actual[rows].mean()),
                "short": float((run < SHORT_S)[rows].mean()),
            }
            for rows in self.deciles(self.shortness)
        ]

    def times(self) -> list[dict[str, float]]:
        """Return, tenth by tenth of the predicted mean, predicted and actual run times, and the share within e90."""
        return [
            {
                "jobs": float(rows.sum()),
                "predicted_s": float(self.mean[rows].mean()),
                "actual_s": float(self.run[rows].mean()),
                "median_s": float(np.median(self.run[rows])),
                "within_e90": float(1.0 - is_longer(self.run, self.tail)[rows].mean()),
            }
            for rows in self.deciles(self.mean)
        ]
