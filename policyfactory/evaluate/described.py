"""What was run and what was found, as JSON values: the content of ``evaluation.json``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.core.inputs import sha256_bytes
from policyfactory.evaluate.gate import gates_as_dict
from policyfactory.policy.policy import Policy
from policyfactory.simulate.metrics import METRICS
from policyfactory.site.file import dump_site
from policyfactory.site.layout import lay_out
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, RESAMPLES
from policyfactory.statistics.summary import Summary, worst_off

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Experiment, Outcome
    from policyfactory.report.sections import Section
    from policyfactory.simulate.rules import Rules
    from policyfactory.simulate.tuning.tuner import Contender
    from policyfactory.site.model import Site
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["EVALUATION_SCHEMA", "finding", "plain", "section_dict", "setting", "winners"]

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
