"""Predict the jobs of a log as a scheduler would have to, and say how good that is."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.files import Manifest, command_line, dump_json, package_versions, refuse_earlier, together
from policyfactory.core.inputs import sha256_file
from policyfactory.core.options import FloatArray, Int64Array, Mask, changed
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, plain_numbers
from policyfactory.core.text import DAY, finite, plain
from policyfactory.engine.metrics import FADING, LAST_TWO, MEDIAN, NEAREST, NINTH, EndedJobs, guesses
from policyfactory.evaluation.results_folder import KIND as FOLDER
from policyfactory.evaluation.results_folder import refuse_evaluation, room, save
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.prediction.features import NAMES, known_of, local_seconds, missing, requests_of
from policyfactory.prediction.next_jobs import ranks_of_some
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.store import digest_of_jobs, load_forests, save_forests
from policyfactory.prediction.training import Forests, Predictor
from policyfactory.report.files import Drawings, csv_of, save_sections
from policyfactory.report.page import BoardGroup as Part
from policyfactory.report.page import Page, render
from policyfactory.report.sections import Column, Columns, Picture, Section, Table, scale_for
from policyfactory.simulation.predicted import Foreseen, run_predicted
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Attributes, Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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
class Predicted:
    """Predictions of n jobs in submit order, beside what simple rules make of the same past, and how good they are.

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
    ranks : float64 array (k,)
        Where run times lie in their distributions (`policyfactory.prediction.next_jobs.ranks_of_some`).
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
    ranks: FloatArray
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
        requested, given = requests_of(self.workload), self.workload.requested_time / self.workload.ticks
        kept = requested == given
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
        words = [
            f"days {_PERIOD * index + 1} to {_PERIOD * (index + 1)}" for index in range(int(period.max(initial=-1)) + 1)
        ]
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

    def distributions(self) -> dict[str, Any]:
        """Return how right run times are as distributions, in shares of the jobs of `ranks`.

        ``tenths``: in which tenth of its distribution a run time lies; ``within_50``, ``within_90``: within the
        intervals. Empty if there is no such job.
        """
        if not len(self.ranks):
            return {}
        tenths = np.bincount(np.minimum((10 * self.ranks).astype(np.int64), 9), minlength=10) / len(self.ranks)
        within = {f"within_{share}": float((abs(self.ranks - 0.5) < share / 200).mean()) for share in (50, 90)}
        return {"jobs": len(self.ranks), "tenths": tenths.tolist(), **within}

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

    def frame(self) -> pd.DataFrame:
        """Return one row a job: the workload's columns, e, s, e90, what the rules say, history, training."""
        columns: dict[str, Any] = {"e": self.mean, "s": self.shortness, "e90": self.tail}
        columns |= {name.replace(" ", "_"): values for name, values in self.rules.items() if name != "request"}
        return self.workload.frame().assign(**columns, user_ended=self.history, training=self.model_of)

    def summary(self) -> str:
        """Return what was found, in sentences."""
        return "\n".join(sentences(self))

    @keeps_settings
    def plot(self) -> Figure:
        """Return the calibration as a picture: predicted and actual, tenth by tenth."""
        return draw_calibration(self)


# What was found, in sentences, tables and a picture -------------------------------------------------------------------


SEEN = "It was trained on these very jobs, and has seen what it is to predict: all that is said of it is flattering."
IN_FULL = "months-in-full"  # a section for files: a line a month and predictor


def _measure(name: str, scale: float = 1.0) -> Callable[..., float | None]:
    """Return what shows a measure of the predictor that a row ends with."""
    return lambda *row: finite(scale * getattr(row[-1], name))


_RATIO_HELP = "Median of predicted over actual run time; 1 is right for half of the jobs."
_MEASURES: Columns = {
    Column("predicted by"): lambda *row: row[-2],
    Column("jobs", ""): lambda *row: row[-1].jobs,
    Column("mean absolute error", "s"): _measure("absolute_s"),
    Column(
        "error of ln", "1", "Mean absolute error of the natural logarithm; 0.69 is a factor of 2.", decimals=3
    ): _measure("absolute_ln"),
    Column("median ratio", "1", _RATIO_HELP): _measure("median_ratio"),
    Column("too short", "%", "Jobs that ran longer than predicted.", decimals=1): _measure("under", 100),
    Column(
        "AUC of short", "1", "Probability that of a job below a minute and another the former is told.", decimals=3
    ): _measure("auc"),
}


def sentences(predicted: Predicted) -> list[str]:
    """Return what was found, in sentences."""
    missing = [f"The log does not say: {'; '.join(predicted.missing)}."] if predicted.missing else []
    return [_of_training(predicted), *_of_errors(predicted), _of_requests(predicted), *missing]


def _of_training(predicted: Predicted) -> str:
    name, under = predicted.workload.name, f"in the simulation under {predicted.policy.name}"
    if not predicted.trained:
        flattered = f" {SEEN}" if predicted.seen else ""
        return (
            f"{name}: {len(predicted):,} jobs {under}, by a model of {predicted.model.jobs:,} jobs as it is.{flattered}"
        )
    early = len(predicted) - int(predicted.is_modelled.sum())
    times, first, last = len(predicted.trained), predicted.trained[0], predicted.trained[-1]
    how = f"once, on {first:,} ended jobs" if times == 1 else f"{times} times, on {first:,} to {last:,} ended jobs"
    return (
        f"{name}: {len(predicted):,} jobs {under}, trained {how}; the {early:,} jobs before the first training are "
        "predicted by their requests, and are not counted."
    )


def _of_errors(predicted: Predicted) -> list[str]:
    found = predicted.overall.measures
    model, rules = found[MODEL], {name: found[name] for name in RULES}
    if not model.jobs:
        return ["No job was submitted after the first training: nothing can be said of the model."]
    best = min(rules, key=lambda name: rules[name].absolute_ln)
    than = "less than" if model.absolute_ln < rules[best].absolute_ln else "not less than"
    factor, near = math.exp(model.absolute_ln), min(rules, key=lambda name: rules[name].absolute_s)
    scale = scale_for("s", [model.absolute_s])
    errors = [f"{scale.text(of.absolute_s)}{scale.suffix}" for of in (model, rules[near], rules["request"])]
    lines = [
        (
            f"Its mean absolute error is {errors[0]}, that of the best rule beside it {errors[1]} ({near}), the "
            f"request's {errors[2]}."
        ),
        (
            f"Its error of ln is {model.absolute_ln:.3f}, a factor of {factor:.2f}: {than} that of the best rule "
            f"beside it ({best}, {rules[best].absolute_ln:.3f}). A mean of run times, which e is, does not aim at it."
        ),
    ]
    if math.isfinite(model.auc):
        best = max(rules, key=lambda name: rules[name].auc)
        lines.append(
            f"It tells a job below a minute from another {model.auc:.1%} of the time, {best} {rules[best].auc:.1%}."
        )
    cover = predicted.coverage()
    if math.isfinite(cover["e90"]):
        lines.append(f"{cover['e90']:.1%} of the jobs ran no longer than e90, which is to hold for 90 %.")
    if found := predicted.distributions():
        lines.append(
            f"As distributions: of {found['jobs']:,} jobs {found['within_90']:.1%} ran within their 90 % intervals, "
            f"{found['within_50']:.1%} within those of 50 %."
        )
    return lines


def _of_requests(predicted: Predicted) -> str:
    requests = predicted.requests
    return (
        f"Requests: {requests.undone:,} were raised to the run time, which is undone; {requests.left:,} jobs ran "
        "just as long as they had asked for, and theirs are taken as they are: nothing tells a limit that was met from "
        f"a raised request; {requests.longer:,} ran longer."
    )


def sections_of(predicted: Predicted) -> tuple[Section, ...]:
    """Return what was found: the measures, by history and by month, the calibration."""
    return (
        Section("accuracy", "Predicted and actual run times", tuple(sentences(predicted)), _overall(predicted)),
        Section(
            "history",
            "By what is known of the user",
            (),
            (_table("history", "By how many jobs of the user had ended", predicted.by_history),),
        ),
        Section("months", "By month", (), (_by_month(predicted),)),
        _calibration(predicted),
        Section(IN_FULL, "By month, in full", (), (_table("all", "By month, all measures", predicted.by_month),)),
    )


def _table(name: str, title: str, groups: Sequence[Group]) -> Table:
    columns: Columns = {Column("jobs of"): lambda group, *_: group, **_MEASURES}
    rows = [(group.name, by, found) for group in groups for by, found in group.measures.items()]
    return Table.of(name, title, columns, rows)


def _overall(predicted: Predicted) -> tuple[Table, ...]:
    note = "All from the jobs that had ended in the simulation when a job was submitted."
    title, rows = "All jobs that the model predicted", predicted.overall.measures.items()
    accuracy = dataclasses.replace(Table.of("accuracy", title, _MEASURES, rows, note), front=True)
    quantiles: Columns = {
        Column("ninth decile by"): lambda name, _: name,
        Column("jobs that ran no longer", "%", decimals=1): lambda _, share: finite(100 * share),
    }
    title = "Ninth deciles, which are to hold for 90 % of the jobs"
    coverage = Table.of("coverage", title, quantiles, predicted.coverage().items())
    if predicted.before is None:
        return accuracy, coverage
    early = "Before the first training, when the model is the request"
    return accuracy, coverage, Table.of("before", early, _MEASURES, predicted.before.measures.items())


def _by_month(predicted: Predicted) -> Table:
    """Return the measures that tell most, a line a month."""
    shown = (MODEL, "request", "mean of last two", "nearest neighbours")
    columns: dict[Column, Callable[..., Any]] = {
        Column("month"): lambda group: group.name,
        Column("jobs", ""): lambda group: group.measures[MODEL].jobs,
    }
    for name, title, predictors in (("absolute_ln", "error of ln", shown), ("auc", "AUC of short", shown[:3])):
        for by in predictors:
            columns[Column(f"{title}, {by}", "1", decimals=3)] = functools.partial(_of_group, name, by)
    table = Table.of("months", "By month", columns, [(group,) for group in predicted.by_month])
    return dataclasses.replace(table, names=1)


def _of_group(measure: str, by: str, group: Group) -> float | None:
    return finite(getattr(group.measures[by], measure))


def _calibration(predicted: Predicted) -> Section:
    short: Columns = {
        Column("tenth"): lambda tenth, _: str(tenth),
        Column("jobs", ""): lambda _, row: row["jobs"],
        Column("s, predicted", "1", "Mean of E[10 / max(run time, 10)].", decimals=3): lambda _, row: row["predicted"],
        Column("s, actual", "1", "Mean of 10 / max(run time, 10).", decimals=3): lambda _, row: row["actual"],
        Column("below a minute", "%", decimals=1): lambda _, row: 100 * row["short"],
    }
    has_tail = len(predicted.model.tail.roots) > 0
    times: Columns = {
        Column("tenth"): lambda tenth, _: str(tenth),
        Column("jobs", ""): lambda _, row: row["jobs"],
        Column("mean predicted", "s"): lambda _, row: row["predicted_s"],
        Column("mean actual", "s"): lambda _, row: row["actual_s"],
        Column("median actual", "s"): lambda _, row: row["median_s"],
        Column("within e90", "%", decimals=1): lambda _, row: 100 * row["within_e90"] if has_tail else None,
    }
    tables = (
        Table.of(
            "shortness",
            "Shortness, by tenths of what was predicted",
            short,
            enumerate(predicted.calibration(), start=1),
        ),
        Table.of("times", "Run time, by tenths of what was predicted", times, enumerate(predicted.times(), start=1)),
        Table.of(
            "distributions",
            "Run times in the tenths of their own distributions, which are to have 10 % each",
            {
                Column("tenth"): lambda tenth, _: str(tenth),
                Column("jobs", "%", decimals=1): lambda _, share: 100 * share,
            },
            enumerate(predicted.distributions().get("tenths", []), start=1),
        ),
    )
    picture = Picture(
        "calibration",
        "Predicted and actual, by tenths of the jobs",
        lambda: keeps_settings(draw_calibration)(predicted),
        "On the line, jobs of which something was predicted did so on average.",
    )
    return Section(
        "calibration", "Calibration", (), tuple(dataclasses.replace(table, names=1) for table in tables), (picture,)
    )


# The calibration as a picture -----------------------------------------------------------------------------------------

# What was predicted and what came of it, by tenths of the jobs.


def draw_calibration(predicted: Predicted) -> Figure:
    """Draw predicted and actual shortness, and predicted and actual mean run times, a point a tenth of the jobs."""
    figure = new_figure(8.0, 4.0)
    left, right = figure.subplots(1, 2)
    tenths = predicted.calibration()
    guessed = [row["predicted"] for row in tenths]
    left.plot([0, 1], [0, 1], color="black", linewidth=1)
    left.plot(guessed, [row["actual"] for row in tenths], "o-", color=COLOURS[0], label="10 / max(run time, 10 s)")
    left.plot(guessed, [row["short"] for row in tenths], "s--", color=COLOURS[1], label="share below a minute")
    left.set(xlabel="predicted shortness s", ylabel="actual", xlim=(0, 1), ylim=(0, 1.02))
    left.legend(fontsize=8)
    times = [row for row in predicted.times() if row["predicted_s"] > 0 and row["actual_s"] > 0]
    ends = [end for row in times for end in (row["predicted_s"], row["actual_s"])]
    if ends:
        right.plot([min(ends), max(ends)], [min(ends), max(ends)], color="black", linewidth=1)
        right.plot([row["predicted_s"] for row in times], [row["actual_s"] for row in times], "o-", color=COLOURS[0])
        right.set(xscale="log", yscale="log")
        for axis in (right.xaxis, right.yaxis):
            plain_numbers(axis, minor=False)
    right.set(xlabel="predicted mean run time e (s)", ylabel="actual mean (s)")
    return figure


# Predicting -----------------------------------------------------------------------------------------------------------


_ROWS = (LAST_TWO, FADING, NEAREST, MEDIAN)
_READING = ("preset", "processors", "force_processors", "estimate_missing", "assume")


def predict(
    workload: Workload | Path | str,
    policy: PolicyLike = "FCFS",
    options: PredictorOptions | None = None,
    *,
    model: Forests | Path | str | None = None,
    leave_out: Sequence[str] = (),
    output: Path | str | None = None,
    overwrite: bool = False,
    progress: Callable[[float], object] = lambda _: None,
    **changes: Any,
) -> Predicted:
    """Predict each job when it is submitted, from the simulated past, and compare that with what it did.

    Parameters
    ----------
    workload : Workload, Path or str
        The jobs, or a file in the Standard Workload Format.
    policy : Policy, or name of one, or model, or its file
        The order of the queue in the simulation (EASY, decisions by requested time): what has ended when a job comes
        depends on it.
    options : PredictorOptions, optional
        How the predictor learns; ``renew_s`` is not used, for predictions are made once.
    model : Forests, Path or str, optional
        A trained model, or its file, to be used as it is: nothing is trained.
    leave_out : sequence of str
        What the predictor is not to look at, though the log has it: ``requested_memory``, ``group``, ``executable``,
        ``queue``, ``partition``. What a site's scheduler does not know at submission must not be learned from.
    output : Path or str, optional
        Folder for the page, the tables, the predictions and the last model.
    overwrite : bool
        Replace what an earlier run left in the folder.
    progress : callable
        Is told the part of the jobs that were submitted, from 0 to 1, at each training.
    **changes
        Fields of `PredictorOptions`, in place of ``options`` or on top of them; of a file, also the keywords of
        `policyfactory.read`.

    Raises
    ------
    InputError, ModelFileError
        If the log or the model cannot be read.
    UsageError
        If an option is out of range or contradicts another one.
    WorkloadError
        If the log has no job that can be used.
    EvaluationError
        If the log ends before anything could be trained, or requests were filled with run times.
    OutputError
        If the folder holds results, or cannot be written.
    """
    reading = {name: changes.pop(name) for name in _READING if name in changes}
    options = changed(options or PredictorOptions(), changes)
    folder = None if output is None else refuse_to_replace(Path(output), overwrite=overwrite)
    digests: dict[str, str] = {}
    forests = _given(model, options, digests)
    policy = resolve(policy)
    if not isinstance(workload, Workload):
        from policyfactory.workload.clean import read

        digests[str(workload)] = ""
        workload = read(Path(workload), **reading)
    elif reading:
        raise UsageError(f"{', '.join(reading)}: are about a log that is read from a file; give its path")
    workload = _without(workload, leave_out)
    options = dataclasses.replace(options, renew_s=0.0)
    prepared = prepare(workload, Rules())
    if forests is None:
        _check_length(prepared, options)
    foreseen = run_predicted(prepared, policy, Predictor(options, forests), tail=True, follow=progress)
    if forests is None and not foreseen.trainings:
        raise _too_short(prepared, foreseen.start, options)
    # What is in the model already is no prediction.
    seen = isinstance(model, Path | str) and digest_of_jobs(model) == workload.sha256()
    found = Predicted(prepared.workload, policy, options, **_beside(prepared, foreseen, forests), seen=seen)
    if folder is not None:
        digests = {name: digest or sha256_file(Path(name)) for name, digest in digests.items()}
        write_predicted(found, folder, digests or {workload.name: workload.sha256()}, overwrite=overwrite)
    return found


def _given(model: Forests | Path | str | None, options: PredictorOptions, digests: dict[str, str]) -> Forests | None:
    """Return the model that was given, and note that its file is an input."""
    if model is None:
        return None
    default = PredictorOptions(renew_s=options.renew_s)
    for field in dataclasses.fields(options):
        if getattr(options, field.name) != getattr(default, field.name):
            raise UsageError(f"{field.name} is about training, and a model that is given is not trained; leave it out")
    if isinstance(model, Forests):
        return model
    digests[str(model)] = ""
    return load_forests(model)


def _without(workload: Workload, names: Sequence[str]) -> Workload:
    attributes = workload.attributes or Attributes.unknown(len(workload))
    return dataclasses.replace(workload, attributes=attributes.without(names)) if names else workload


def _check_length(prepared: Prepared, options: PredictorOptions) -> None:
    """Refuse, before it is simulated, a log that is too short even if no job waits."""
    submit = prepared.workload.submit
    if not len(submit):
        return
    ended = int((submit + prepared.run_time <= submit[-1]).sum())
    if ended < options.least or submit[-1] - submit[0] < options.first_days * DAY * prepared.workload.ticks:
        raise _too_short(prepared, submit, options)


def _too_short(prepared: Prepared, start: Int64Array, options: PredictorOptions) -> EvaluationError:
    workload = prepared.workload
    last = int(workload.submit[-1])
    ended = int((start + prepared.run_time <= last).sum())
    days = (last - int(workload.submit[0])) / workload.ticks / DAY
    return EvaluationError(
        f"{workload.name}: nothing could be trained: when its last job is submitted, after {days:.1f} days, at most "
        f"{ended:,} of its {len(workload):,} jobs have ended, and the first training takes {options.least:,} after "
        f"{options.first_days:g} days; give a longer log, lower --least or --first-days, or a model (--model)"
    )


def _beside(prepared: Prepared, foreseen: Foreseen, forests: Forests | None) -> dict[str, Any]:
    """Return what was predicted, and what the rules make of the same schedule."""
    e, s, e90 = foreseen.predictions[:3]
    history = foreseen.features[:, NAMES.index("ended")].astype(np.int64)
    request = requests_of(prepared.workload)
    guessed = guesses(*_ended(prepared, foreseen.start, request))
    rules = dict(zip(RULES, (request, *(guessed[row] for row in _ROWS)), strict=True))
    run = np.maximum(prepared.workload.run_time / prepared.workload.ticks, 1.0)
    times = prepared.workload.submit, foreseen.start + np.maximum(prepared.run_time, 1)
    return {
        "ranks": ranks_of_some(e, s, run, times, foreseen.model_of >= (0 if forests is None else -1)),
        "model": forests or foreseen.trainings[-1].forests,
        "trained": tuple(training.forests.jobs for training in foreseen.trainings),
        "model_of": foreseen.model_of if forests is None else np.zeros_like(foreseen.model_of),
        "mean": e,
        "shortness": s,
        "tail": e90,
        "rules": rules | {"ninth decile": guessed[NINTH]},
        "history": history,
    }


def _ended(prepared: Prepared, start: Int64Array, request: FloatArray) -> tuple[EndedJobs, int]:
    """Return the jobs of the schedule as rules look at them, and the number of users."""
    workload, user = prepared.workload, known_of(prepared.workload).user
    # A job without run time has not ended when it is submitted.
    end = start + np.maximum(prepared.run_time, 1)
    order = np.lexsort((np.arange(len(end)), end)).astype(np.int64)
    run = np.maximum(workload.run_time / workload.ticks, 1.0)
    jobs = EndedJobs(
        submit=workload.submit,
        end=end,
        order=order,
        user=user,
        request=request,
        run=run,
        processors=workload.processors.astype(np.float64),
    )
    return jobs, int(user.max(initial=-1)) + 1


# The folder of predictions --------------------------------------------------------------------------------------------

# The page, the tables, what was predicted of each job, the last model.


MODEL_FILE = "model.json"
_PAGE, _REPORT, _JOBS = "report.html", "accuracy.json", "predictions.csv"
_KIND, _SCHEMA = "prediction-accuracy", 1


def refuse_to_replace(folder: Path, *, overwrite: bool) -> Path:
    """Return the folder, if what is in it may be replaced; call it before minutes of work.

    Raises
    ------
    OutputError
        If it has results that are not to be replaced.
    """
    refuse_evaluation(folder, overwrite=overwrite)
    refuse_earlier(*(folder / name for name in (MODEL_FILE, _REPORT, _JOBS)), overwrite=overwrite)
    return folder


def as_dict(predicted: Predicted) -> dict[str, Any]:
    """Return what was found as JSON values; null where nothing could be measured."""
    before = predicted.before
    report = {
        "kind": _KIND,
        "schema_version": _SCHEMA,
        "log": predicted.workload.name,
        "workload_sha256": predicted.workload.sha256(),
        "jobs": len(predicted),
        "policy": {"name": predicted.policy.name, "formula": predicted.policy.formula},
        "options": dataclasses.asdict(predicted.options),
        "trained_on": list(predicted.trained),
        "model_jobs": predicted.model.jobs,
        "model_has_seen_the_jobs": predicted.seen,
        "requests": dataclasses.asdict(predicted.requests),
        "missing": list(predicted.missing),
        "overall": _group(predicted.overall),
        "by_history": [_group(group) for group in predicted.by_history],
        "by_month": [_group(group) for group in predicted.by_month],
        "before_first_training": None if before is None else _group(before),
        "coverage": predicted.coverage(),
        "shortness_by_tenth": predicted.calibration(),
        "run_time_by_tenth": predicted.times(),
        "distributions": predicted.distributions(),
        "words": sentences(predicted),
    }
    as_json: dict[str, Any] = plain(report)
    return as_json


def _group(group: Group) -> dict[str, Any]:
    return {"jobs_of": group.name, "by": {name: dataclasses.asdict(found) for name, found in group.measures.items()}}


def write_predicted(predicted: Predicted, folder: Path, inputs: Mapping[str, str], *, overwrite: bool) -> list[Path]:
    """Write everything together, with a manifest, and return the files.

    Parameters
    ----------
    predicted : Predicted
        What was found.
    folder : Path
        Where to.
    inputs : mapping of str to str
        Digests of what was read, by name.
    overwrite : bool
        Whether earlier results in the folder are replaced.

    Raises
    ------
    OutputError
        If there are results that are not to be replaced, or a file cannot be written.
    """
    parameters = {"policy": predicted.policy.name, **dataclasses.asdict(predicted.options)}
    manifest = Manifest(FOLDER, command_line(), None, dict(inputs), parameters)
    drawings, sections = Drawings(), sections_of(predicted)
    title = f"Predictions of the jobs of {predicted.workload.name}"
    page = Page(title, groups=(Part(title, sections),), manifest=manifest.as_dict())
    with room(folder, overwrite=overwrite) as work_folder, together():
        parts = save_sections(work_folder, "", sections, drawings)
        if predicted.trained:
            # A model that was given stays where it is.
            made_of = {"inputs": dict(inputs), "workload_sha256": predicted.workload.sha256()}
            provenance = {"command": command_line(), **made_of, "versions": package_versions(), **parameters}
            save_forests(predicted.model, work_folder / MODEL_FILE, provenance=provenance)
            parts.append(work_folder / MODEL_FILE)
        texts = {
            _PAGE: render(page, drawings),
            _REPORT: dump_json(as_dict(predicted)),
            _JOBS: _jobs_csv(predicted),
        }
        return [*save(work_folder, texts, manifest, parts), *parts]


def _jobs_csv(predicted: Predicted) -> str:
    """Return what was predicted of each job, as ``policyfactory evaluate --predictions`` reads it."""
    columns = {
        "job_id": predicted.workload.job_id,
        "prediction": predicted.mean,
        "s": predicted.shortness,
        "e90": predicted.tail,
        "user_ended": predicted.history,
        "training": predicted.model_of,
    }
    return csv_of([tuple(columns), *zip(*(column.tolist() for column in columns.values()), strict=True)])
