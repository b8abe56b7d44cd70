"""What is found of predictions, as sentences and sections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, plain_numbers
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, scale_for
from policyfactory.review.predictions.compare import MODEL, RULES, ComparedPredictors, Group, Measures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.review.predictions.compare import ComparedPredictors

SEEN = "It was trained on these very jobs, and has seen what it is to predict: all that is said of it is flattering."
IN_FULL = "months-in-full"  # a section for files: a line a month and predictor

_RATIO_HELP = "Median of predicted over actual run time; 1 is right for half of the jobs."
_MEASURES: dict[Column, Callable[[Measures], float]] = {
    Column("mean absolute error", "s"): lambda of: of.absolute_s,
    Column("error of ln", "1", "Mean absolute error of the natural logarithm; 0.69 is a factor of 2.", decimals=3): (
        lambda of: of.absolute_ln
    ),
    Column("median ratio", "1", _RATIO_HELP): lambda of: of.median_ratio,
    Column("too short", "%", "Jobs that ran longer than predicted.", decimals=1): lambda of: 100 * of.under,
    Column(
        "AUC of short", "1", "Probability that of a job below a minute and another the former is told.", decimals=3
    ): (lambda of: of.auc),
}


def sentences(predicted: ComparedPredictors) -> list[str]:
    """Return what was found, in sentences."""
    return [_of_training(predicted), *_of_errors(predicted), _of_requests(predicted), *_of_what_is_missing(predicted)]


def _of_training(predicted: ComparedPredictors) -> str:
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


def _of_errors(predicted: ComparedPredictors) -> list[str]:
    found = predicted.overall.measures
    own, rules = found[MODEL], {name: found[name] for name in RULES}
    if not own.jobs:
        return ["No job was submitted after the first training: nothing can be said of the model."]
    best = min(rules, key=lambda name: rules[name].absolute_ln)
    than = "less than" if own.absolute_ln < rules[best].absolute_ln else "not less than"
    factor, near = math.exp(own.absolute_ln), min(rules, key=lambda name: rules[name].absolute_s)
    scale = scale_for("s", [own.absolute_s])
    errors = [f"{scale.text(of.absolute_s)}{scale.suffix}" for of in (own, rules[near], rules["request"])]
    said = [
        (
            f"Its mean absolute error is {errors[0]}, that of the best rule beside it {errors[1]} ({near}), the "
            f"request's {errors[2]}."
        ),
        (
            f"Its error of ln is {own.absolute_ln:.3f}, a factor of {factor:.2f}: {than} that of the best rule beside "
            f"it ({best}, {rules[best].absolute_ln:.3f}). A mean of run times, which e is, does not aim at it."
        ),
    ]
    if math.isfinite(own.auc):
        best = max(rules, key=lambda name: rules[name].auc)
        said.append(
            f"It tells a job below a minute from another {own.auc:.1%} of the time, {best} {rules[best].auc:.1%}."
        )
    cover = predicted.coverage()
    if math.isfinite(cover["e90"]):
        said.append(f"{cover['e90']:.1%} of the jobs ran no longer than e90, which is to hold for 90 %.")
    return said


def _of_requests(predicted: ComparedPredictors) -> str:
    requests = predicted.requests
    return (
        f"Requests: {requests.undone:,} were raised to the run time, which is undone; {requests.left:,} jobs ran "
        "just as long as they had asked for, and theirs are taken as they are: nothing tells a limit that was met from "
        f"a raised request; {requests.longer:,} ran longer."
    )


def _of_what_is_missing(predicted: ComparedPredictors) -> list[str]:
    if not predicted.missing:
        return []
    return [f"The log does not say: {'; '.join(predicted.missing)}."]


def sections_of(predicted: ComparedPredictors) -> tuple[Section, ...]:
    """Return what was found: the measures, by history and by month, the calibration."""
    return (
        Section("accuracy", "Predicted and actual run times", tuple(sentences(predicted)), _overall(predicted)),
        Section("history", "By what is known of the user", (), (_by_history(predicted),)),
        Section("months", "By month", (), (_by_month(predicted),)),
        _calibration(predicted),
        Section(IN_FULL, "By month, in full", (), (_table("all", "By month, all measures", predicted.by_month),)),
    )


def _rows(groups: Sequence[Group]) -> list[tuple[str, str, Measures]]:
    return [(group.name, name, found) for group in groups for name, found in group.measures.items()]


def _measured(of: Measures, measure: str | None = None) -> list[Cell]:
    values = [getattr(of, measure)] if measure else [show(of) for show in _MEASURES.values()]
    return [Cell(value if math.isfinite(value) else None) for value in values]


def _table(name: str, title: str, groups: Sequence[Group], note: str = "") -> Table:
    columns = (Column("jobs of"), Column("predicted by"), Column("jobs", ""), *_MEASURES)
    rows = [(Cell(group), Cell(by), Cell(of.jobs), *_measured(of)) for group, by, of in _rows(groups)]
    return Table(name, title, columns, tuple(rows), note)


def _of_group(name: str, title: str, group: Group, note: str = "", *, front: bool = False) -> Table:
    columns = (Column("predicted by"), Column("jobs", ""), *_MEASURES)
    rows = [(Cell(by), Cell(of.jobs), *_measured(of)) for _, by, of in _rows([group])]
    return Table(name, title, columns, tuple(rows), note, front=front)


def _overall(predicted: ComparedPredictors) -> tuple[Table, ...]:
    note = "All from the jobs that had ended in the simulation when a job was submitted."
    made = [_of_group("accuracy", "All jobs that the model predicted", predicted.overall, note, front=True)]
    covered = [(Cell(name), *_percent(share)) for name, share in predicted.coverage().items()]
    quantiles = (Column("ninth decile by"), Column("jobs that ran no longer", "%", decimals=1))
    made.append(Table("coverage", "Ninth deciles, which are to hold for 90 % of the jobs", quantiles, tuple(covered)))
    if predicted.before is not None:
        early = "Before the first training, when the model is the request"
        made.append(_of_group("before", early, predicted.before))
    return tuple(made)


def _percent(share: float) -> tuple[Cell, ...]:
    return (Cell(100 * share if math.isfinite(share) else None),)


def _by_history(predicted: ComparedPredictors) -> Table:
    return _table("history", "By how many jobs of the user had ended", predicted.by_history)


def _by_month(predicted: ComparedPredictors) -> Table:
    """Return the measures that tell most, a line a month."""
    shown = (MODEL, "request", "mean of last two", "nearest neighbours")
    kinds = (("absolute_ln", "error of ln", shown), ("auc", "AUC of short", shown[:3]))
    columns = [Column("month"), Column("jobs", "")]
    columns += [Column(f"{title}, {by}", "1", decimals=3) for _, title, names in kinds for by in names]
    rows = [
        (
            Cell(group.name),
            Cell(group.measures[MODEL].jobs),
            *(cell for kind, _, names in kinds for by in names for cell in _measured(group.measures[by], kind)),
        )
        for group in predicted.by_month
    ]
    return Table("months", "By month", tuple(columns), tuple(rows), names=1)


def _calibration(predicted: ComparedPredictors) -> Section:
    short = (
        Column("tenth"),
        Column("jobs", ""),
        Column("s, predicted", "1", "Mean of E[10 / max(run time, 10)].", decimals=3),
        Column("s, actual", "1", "Mean of 10 / max(run time, 10).", decimals=3),
        Column("below a minute", "%", decimals=1),
    )
    tenths = [
        (str(at), row["jobs"], row["predicted"], row["actual"], 100 * row["short"])
        for at, row in enumerate(predicted.calibration(), start=1)
    ]
    times = (
        Column("tenth"),
        Column("jobs", ""),
        Column("mean predicted", "s"),
        Column("mean actual", "s"),
        Column("median actual", "s"),
        Column("within e90", "%", decimals=1),
    )
    lengths = [
        (
            *(str(at), row["jobs"], row["predicted_s"], row["actual_s"], row["median_s"]),
            100 * row["within_e90"] if len(predicted.model.tail.roots) else None,
        )
        for at, row in enumerate(predicted.times(), start=1)
    ]
    note = "On the line, jobs of which something was predicted did so on average."
    picture = Picture(
        "calibration",
        "Predicted and actual, by tenths of the jobs",
        lambda: keeps_settings(draw_calibration)(predicted),
        note,
    )
    tables = (
        _plain("shortness", "Shortness, by tenths of what was predicted", short, tenths),
        _plain("times", "Run time, by tenths of what was predicted", times, lengths),
    )
    return Section("calibration", "Calibration", (), tables, (picture,))


def _plain(name: str, title: str, columns: tuple[Column, ...], rows: Sequence[tuple[float | str | None, ...]]) -> Table:
    return Table(name, title, columns, tuple(tuple(Cell(value) for value in row) for row in rows), names=1)


# The calibration as a picture -----------------------------------------------------------------------------------------

# What was predicted and what came of it, by tenths of the jobs.


def draw_calibration(predicted: ComparedPredictors) -> Figure:
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
