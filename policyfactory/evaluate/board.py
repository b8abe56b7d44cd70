"""How the policies stand in one table a log and metric: values, differences, ranks; and the few that decide."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import counted, enumerated
from policyfactory.evaluate.verdict import gates_as_dict
from policyfactory.evaluate.words import units_of
from policyfactory.policy.policy import Policy
from policyfactory.report.caveats import OF_PAIRS, difference_column, noun
from policyfactory.report.page import Board
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.schedule import RECORDED
from policyfactory.site.file import dump_site
from policyfactory.site.fits import lay_out
from policyfactory.statistics.compare import mean_ranks
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, RESAMPLES, Interval
from policyfactory.statistics.summary import Summary, worst_off

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Experiment, Outcome
    from policyfactory.report.sections import Section
    from policyfactory.simulate.rules import Rules
    from policyfactory.simulate.tuning.tuner import Contender
    from policyfactory.site.model import Site
    from policyfactory.statistics.compare import Comparison
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["EVALUATION_SCHEMA", "boards_of", "finding", "forests_of", "plain", "section_dict", "setting", "winners"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Standing:
    """One row: a policy or the record, with all that is said of it in one metric on one log."""

    name: str
    role: str
    value: Cell
    difference: Cell
    change: float | None
    rank: Cell
    from_record: Cell


def boards_of(outcome: Outcome) -> tuple[Board, ...]:
    """Return a table a log and metric; the chosen policy is the first row.

    Parameters
    ----------
    outcome : Outcome
        What an experiment shows.
    """
    evaluation = outcome.evaluation
    return tuple(
        Board(log, metric, METRICS[metric].title, _table(outcome, log, metric, _standings(outcome, log, metric)))
        for metric in evaluation.metrics
        for log in evaluation.logs
    )


def forests_of(outcome: Outcome) -> tuple[Board, ...]:
    """Return what decides, of each log by the first metric: of many rows the choice, baseline, record and next best.

    Parameters
    ----------
    outcome : Outcome
        As in `boards_of`; without a second policy nothing is decided.
    """
    if not outcome.comparisons:
        return ()
    metric = outcome.evaluation.metrics[0]
    made = []
    for log in outcome.evaluation.logs:
        rows = _standings(outcome, log, metric)
        whole = len(rows) <= _WHOLE
        table = _table(outcome, log, metric, rows if whole else [row for row in rows if row.role], short=not whole)
        made.append(Board(log, metric, METRICS[metric].title, table))
    return tuple(made)


def _standings(outcome: Outcome, log: str, metric: str) -> list[_Standing]:
    evaluation, seed = outcome.evaluation, outcome.experiment.seed
    summaries = [row for row in outcome.summaries if (row.log, row.metric) == (log, metric)]
    recorded = [row for row in outcome.recorded_summaries if (row.log, row.metric) == (log, metric) and row.cases]
    pairs = {row.policy: row for row in outcome.comparisons if (row.log, row.metric) == (log, metric)}
    records = {row.policy: row for row in outcome.recorded_comparisons if (row.log, row.metric) == (log, metric)}
    direction = METRICS[metric].lower_is_better
    several = len(evaluation.rows(log)) > 1 and direction is not None and len(evaluation.policies) > 1
    ranks = {rank.policy: rank for rank in mean_ranks(evaluation, metric, (log,), seed=seed)} if several else {}
    roles = _roles(summaries, evaluation.baseline, outcome.chosen, lower_is_better=direction)
    order = sorted(summaries, key=lambda row: (_place(roles[row.policy], outcome.chosen in roles), row.rank or 0))
    tie = all(row.best for row in summaries)
    rows = []
    for row in order:
        rank = ranks.get(row.policy)
        rows.append(
            _Standing(
                row.policy,
                roles[row.policy],
                Cell(row.value, row.interval, "best" if row.best and not tie and roles[row.policy] != _BEST else ""),
                _difference(pairs.get(row.policy)),
                None if (own := pairs.get(row.policy)) is None or own.relative is None else 100 * own.relative,
                Cell(rank.mean.value, rank.mean.interval) if rank else Cell(None),
                _difference(records.get(row.policy), judged=False),
            )
        )
    for row in recorded:
        base = records.get(evaluation.baseline)
        rows.insert(
            min(2, len(rows)),
            _Standing(RECORDED, "record", Cell(row.value, row.interval), _turned(base), None, Cell(None), Cell(None)),
        )
    return rows


_WHOLE = 6  # rows that are shown at once, so that they need not be shown again
_BEST = "best value"
_PLACES = {"chosen": 0, _BEST: 0, "baseline": 1, "next best": 2, "": 3}


def _place(role: str, a_choice: bool) -> int:  # noqa: FBT001 (there is a choice or not)
    return _PLACES["next best"] if role == _BEST and a_choice else _PLACES[role]


def _roles(rows: Sequence[Summary], baseline: str, chosen: str, *, lower_is_better: bool | None) -> dict[str, str]:
    """Return who is the choice (or else the best), the baseline and the best of the others."""
    sign = -1.0 if lower_is_better is False else 1.0
    ordered = sorted((row for row in rows if row.cases), key=lambda row: sign * row.value)
    base = next(row.value for row in rows if row.policy == baseline)
    names = [row.policy for row in ordered if row.policy != baseline and row.value != base]
    roles = {row.policy: "" for row in rows} | {baseline: "baseline"}
    if lower_is_better is None:
        return roles
    first = chosen if chosen in roles else next(iter(names), "")
    if first and first != baseline:
        roles[first] = "chosen" if first == chosen else _BEST
    # Who is exactly as good as the baseline is no better than it.
    second = next((name for name in names if name != first), "")
    leads = any(row.best for row in rows if row.policy == second)
    return roles | ({second: _BEST if leads else "next best"} if second else {})


def _difference(row: Comparison | None, *, judged: bool = True) -> Cell:
    if row is None or not row.cases:
        return Cell(None)
    return Cell(row.difference, row.interval, row.verdict if row.interval and judged else "")


def _turned(row: Comparison | None) -> Cell:
    """Return the record minus the baseline, of the baseline minus the record; a ratio cannot be turned."""
    if row is None or not row.cases or row.statistic == "ratio":
        return Cell(None)
    return Cell(-row.difference, Interval(-row.interval.high, -row.interval.low) if row.interval else None)


def _table(outcome: Outcome, log: str, metric: str, rows: Sequence[_Standing], *, short: bool = False) -> Table:
    evaluation, units = outcome.evaluation, units_of(outcome.summaries)
    base, unit = evaluation.baseline, METRICS[metric].unit
    pair = next((row for row in outcome.comparisons if (row.log, row.metric) == (log, metric)), None)
    columns: dict[Column, Callable[[_Standing], Any]] = {
        Column("policy"): lambda row: Cell(row.name, mark=row.role),
        Column("value", unit, METRICS[metric].description, units[metric]): lambda row: row.value,
    }
    if pair is not None:
        minus = difference_column(metric, pair, units, f"difference from {base}")
        columns |= {
            minus: lambda row: row.difference,
            Column("change", "%", f"the difference relative to {base}"): lambda row: row.change,
            Column("mean rank", "1", "mean place in the cases, 1 is the best"): lambda row: row.rank,
        }
    if any(row.from_record.value is not None for row in rows):
        record = next(row for row in outcome.recorded_comparisons if (row.log, row.metric) == (log, metric))
        columns[difference_column(metric, record, units, "difference from the record")] = lambda row: row.from_record
    empty = {
        "change": all(row.change is None for row in rows) or short,
        "mean rank": all(row.rank.value is None for row in rows) or short,
        "difference from the record": short,
    }
    shown = {column: show for column, show in columns.items() if not empty.get(column.title)}
    table = Table.of(f"{log} {metric}", _title(outcome, log, metric, pair), shown, zip(rows), _same(rows, base))
    return dataclasses.replace(table, bars=2 if pair is not None else -1, names=1, front=True)


def _title(outcome: Outcome, log: str, metric: str, pair: Comparison | None) -> str:
    evaluation = outcome.evaluation
    weeks, cases = evaluation.weekly.get(log), len(evaluation.rows(log))
    over = counted(len(weeks.jobs), "week") if weeks is not None else counted(cases, noun(evaluation, log))
    how = f"; differences: {OF_PAIRS[pair.statistic].replace('baseline', evaluation.baseline)}" if pair else ""
    return f"{log}: {METRICS[metric].title} ({metric}), {over}{how}"


def _same(rows: Sequence[_Standing], baseline: str) -> str:
    """Return which policies are not shown to differ, in one sentence."""
    names = [row.name for row in rows if row.difference.mark == "no difference"]
    equal = [row.name for row in rows if row.difference.value == 0 and row.name not in {*names, RECORDED}]
    parts = [f"No difference from {baseline} is shown for {enumerated(names)}." if names else ""]
    parts += [f"{enumerated(equal)}: exactly as {baseline}." if equal else ""]
    return " ".join(part for part in parts if part)


# What was run and what was found, as JSON values: the content of ``evaluation.json`` ----------------------------------


EVALUATION_SCHEMA = 2


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values; what JSON has no word for (NaN, infinity) is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "formula": policy.formula,
        "epoch": {"rule": policy.epoch.rule, "unix_time": policy.epoch.unix_time},
        "threshold_s": policy.threshold,
        "source": policy.source,
    }


def _contender(contender: Contender) -> dict[str, Any]:
    if isinstance(contender, Policy):
        return _policy(contender)
    fields = {field.name: getattr(contender, field.name) for field in dataclasses.fields(contender)}
    arms = [arm.name for arm in contender.arms]
    return {"name": contender.name, "tuner": {key: fields[key] for key in fields if key not in ("name", "arms")}} | {
        "arms": arms
    }


def _rules(rules: Rules) -> dict[str, Any]:
    site = {"site": None if rules.site is None else _site(rules.site)} if rules.backfill == "slurm" else {}
    return {
        "backfill": rules.backfill,
        "decide_by": rules.decide_by,
        "threshold_s": rules.threshold,
        "ties": rules.ties,
        "overrun": rules.overrun,
        "backfill_policy": None if rules.backfill_policy is None else _policy(rules.backfill_policy),
        "compatibility": rules.compatibility,
        **site,
    }


def _site(site: Site) -> dict[str, Any]:
    described = {
        "name": site.name,
        "sha256": sha256_bytes(dump_site(site).encode()),
        "nodes": len(site.node_names),
        "processors": int(lay_out(site).cores.sum()),
    }
    return described | ({"assumed": site.assumed} if site.assumed else {})


def setting(experiment: Experiment, evaluation: Evaluation, axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that determines an experiment's numbers, as JSON values.

    Parameters
    ----------
    experiment : Experiment
        What was simulated.
    evaluation : Evaluation
        The values.
    axes : mapping
        What was done to the logs to make the cases, as JSON values.
    """
    ruled = {case.log: case.rules for case in experiment.cases if case.rules is not None}
    shared = experiment.rules
    own = {log: rules.threshold for log, rules in ruled.items() if rules.threshold != shared.threshold}
    sites = {log: _site(rules.site) for log, rules in ruled.items() if rules.site is not None and shared.site is None}
    content = {
        "name": experiment.name,
        "title": experiment.title,
        **axes,
        "rules": _rules(experiment.rules),
        "log_thresholds_s": own,
        **({"log_sites": sites} if sites else {}),
        "policies": [_contender(contender) for contender in experiment.contenders],
        "baseline": evaluation.baseline,
        "metrics": [
            {"name": name, "unit": METRICS[name].unit, "lower_is_better": METRICS[name].lower_is_better}
            | {"description": METRICS[name].description}
            for name in evaluation.metrics
        ],
        "statistic": experiment.statistic,
        "analyses": [{"name": one.name} | _options(one) for one in experiment.analyses],
        "cases": [dataclasses.asdict(case) for case in evaluation.cases],
        "bootstrap": {
            "unit": "case",
            "level": LEVEL,
            "resamples": RESAMPLES,
            "seed": experiment.seed,
            "least_cases": MIN_CASES,
        },
    }
    # Only where they are: what is evaluated without them is described as ever.
    more = {"recorded": experiment.recorded, "left_out": experiment.left_out, "unscored": experiment.unscored}
    as_json: dict[str, Any] = plain(content | {name: value for name, value in more.items() if value})
    return as_json


def _options(analysis: Any) -> dict[str, Any]:
    return dataclasses.asdict(analysis) if dataclasses.is_dataclass(analysis) else {}  # type: ignore[arg-type]


def winners(summaries: Sequence[Summary], metric: str) -> dict[str, str | None]:
    """Return the policy that is best in ``metric`` on each log; None where several are equally good.

    Parameters
    ----------
    summaries : sequence of Summary
        Of `summary.summarise`.
    metric : str
        The metric that decides.
    """
    best: dict[str, list[str]] = {}
    for row in summaries:
        if row.metric == metric:
            best.setdefault(row.log, []).extend([row.policy] * row.best)
    return {log: names[0] if len(names) == 1 else None for log, names in best.items()}


def finding(outcome: Outcome) -> dict[str, Any]:
    """Return what an experiment found but the values of single cases, as JSON values.

    Parameters
    ----------
    outcome : Outcome
        What was found.

    Returns
    -------
    dict
        ``winner`` is the policy that is best in the first metric, null where the logs do not agree or several are
        equally good; ``recorded`` is there if the recorded schedule is shown.
    """
    evaluation = outcome.evaluation
    by_log = winners(outcome.summaries, evaluation.metrics[0])
    content = {
        "winner": next(iter(by_log.values())) if len(set(by_log.values())) == 1 else None,
        "winners": by_log,
        "words": list(outcome.words),
        "verdict": None if outcome.verdict is None else dataclasses.asdict(outcome.verdict),
        "precision": list(outcome.precision),
        "summary": [dataclasses.asdict(row) for row in outcome.summaries],
        "differences": [dataclasses.asdict(row) for row in outcome.comparisons],
        "worst_off": {log: [dataclasses.asdict(row) for row in worst_off(evaluation, log)] for log in evaluation.logs},
    }
    as_json: dict[str, Any] = plain(content | _recorded(outcome) | gates_as_dict(outcome.fidelity))
    return as_json


def _recorded(outcome: Outcome) -> dict[str, Any]:
    """Return what was found of the recorded schedule; nothing if it is not shown."""
    if not outcome.recorded_summaries:
        return {}
    content: dict[str, Any] = {
        "summary": [dataclasses.asdict(row) for row in outcome.recorded_summaries],
        "differences": [dataclasses.asdict(row) for row in outcome.recorded_comparisons],
    }
    parts = {section.name: section_dict(section) for section in outcome.sections}
    return {"recorded": content | {name: parts[name] for name in ("replay",) if name in parts}}


def section_dict(section: Section) -> dict[str, Any]:
    """Return the words and the tables of a section as JSON values, a table as one object a row."""
    tables = {
        table.name: [
            {column.title: cell.value for column, cell in zip(table.columns, row, strict=True)} for row in table.rows
        ]
        for table in section.tables
    }
    as_json: dict[str, Any] = plain({"words": list(section.paragraphs), "tables": tables})
    return as_json
