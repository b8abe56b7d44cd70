"""What ``policyfactory learn`` says at its end: is the choice worth anything, and what comes next."""

from __future__ import annotations

import datetime as dt
import shlex
from typing import TYPE_CHECKING, Any

from policyfactory.cli.console import console, note, warn
from policyfactory.cli.steps import CLASSICAL

if TYPE_CHECKING:
    from policyfactory.cli.learn import Plan
    from policyfactory.policy.store import Model

__all__ = ["close", "record_in_words", "verdict"]


def close(plan: Plan, found: dict[str, Any], metric: str, candidates: int, last: int | None) -> None:
    """Print the closing words.

    Parameters
    ----------
    plan : Plan
        What was done.
    found : dict
        The evaluation of the last quarter.
    metric : str
        By what the policy was chosen.
    candidates : int
        How many policies competed.
    last : int or None
        Unix time of the last submission of the log.
    """
    from policyfactory.policy.catalogue import resolve_model
    from policyfactory.policy.simplify import round_coefficients

    model = resolve_model(f"{plan.folder}/policy.json")
    policy = model.policy
    formula = round_coefficients(policy.expression, 4).text()
    origin = (
        "It is a published policy: no formula learned from this log was better there."
        if policy.name in CLASSICAL
        else "It was learned from the first half."
    )
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    first = (
        f"{policy.name} was the best of {candidates} policies on the third quarter of the jobs. {origin} It sorts the "
        f"queue by {formula}, the lower value first."
    )
    for text in (first, verdict(policy.name, found, metric), record_in_words(found, metric)):
        if text:
            screen.print(text, markup=False, soft_wrap=True)
    for text in model.warnings:
        warn(f"of the fit of {policy.name}: {text}")
    if _is_better(policy.name, found, metric):
        note(f"next: {shlex.join(_next(plan, model, last))}")


def _next(plan: Plan, model: Model, last: int | None) -> list[str]:
    """Return the command that hands the policy to Slurm."""
    policy = model.policy
    # What changes while a job waits, only the plugin can express.
    moving = not policy.is_static or policy.threshold != float("inf")
    target = ["--to", "slurm-site-factor-c", "--output", "plugin"] if moving else ["--output", "job_submit.lua"]
    command = ["policyfactory", "export", f"{plan.folder}/policy.json", "--workload", str(plan.log)]
    if "r" in policy.variables:
        day = "YYYY-MM-DD" if last is None else dt.datetime.fromtimestamp(last, dt.UTC).strftime("%Y-%m-%d")
        command += ["--epoch", "YYYY-MM-DD"] if policy.epoch.rule == "window-start" else ["--begin", day]
    return command + target


def _row(found: dict[str, Any], chosen: str, metric: str) -> dict[str, Any] | None:
    rows = [row for row in found["differences"] if row["policy"] == chosen and row["metric"] == metric]
    return rows[0] if rows else None


def _is_better(chosen: str, found: dict[str, Any], metric: str) -> bool:
    row = _row(found, chosen, metric)
    return row is not None and row["verdict"] == "better"


def verdict(chosen: str, found: dict[str, Any], metric: str) -> str:
    """Return what the last quarter says about the choice, in words.

    Parameters
    ----------
    chosen : str
        The policy.
    found : dict
        The evaluation of the last quarter.
    metric : str
        By what was chosen.
    """
    baseline = CLASSICAL[0]
    if chosen == baseline:
        return f"Nothing was better than {baseline} there: leave the queue as it is."
    row = _row(found, chosen, metric)
    where = "On the last quarter, which chose nothing, it is"
    if row is None or row["verdict"] not in {"better", "worse"}:
        return (
            f"{where} not shown to be better than {baseline} in {metric}{_difference(row)}: there is no evidence yet "
            "for a change of the queue; import a longer time."
        )
    if row["verdict"] == "worse":
        return (
            f"{where} WORSE than {baseline} in {metric}{_difference(row)}: do not use it; what was learned does not "
            "hold for later jobs."
        )
    others = [other for other in found["differences"] if other["policy"] == chosen and other["verdict"] == "worse"]
    prices = [f"{other['metric']}{_difference(other)}" for other in others]
    paid = f" It pays for that in {', '.join(prices)}." if prices else " No other metric shown there is worse."
    return f"{where} better than {baseline} in {metric}{_difference(row)}.{paid}"


def _difference(row: dict[str, Any] | None) -> str:
    """Return a difference with its interval, in brackets."""
    from policyfactory.report.numbers import scale_for

    if row is None:
        return ""
    ends = [row["interval"]["low"], row["interval"]["high"]] if row["interval"] else []
    scale = scale_for(row["unit"], [row["difference"], *ends])
    value, *interval = (scale.text(end, signed=True) for end in (row["difference"], *ends))
    if not interval:
        return f" ({value}{scale.suffix}, one case, no interval)"
    better = f"better in {row['wins']} of {row['cases']} windows"
    return f" ({value}{scale.suffix}, 95 % interval {interval[0]} to {interval[1]}; {better})"


def record_in_words(found: dict[str, Any], metric: str) -> str:
    """Return how the simulated baseline compares with what really happened, or nothing without a record.

    Parameters
    ----------
    found : dict
        The evaluation of the last quarter.
    metric : str
        By what was chosen.
    """
    from policyfactory.report.numbers import scale_for

    baseline = CLASSICAL[0]
    recorded = [row for row in found.get("recorded", {}).get("summary", []) if row["metric"] == metric]
    simulated = [row for row in found["summary"] if row["metric"] == metric and row["policy"] == baseline]
    if not recorded or not simulated:
        return ""
    scale = scale_for(recorded[0]["unit"], [recorded[0]["value"], simulated[0]["value"]])
    was, under = (f"{scale.text(row[0]['value'])}{scale.suffix}" for row in (recorded, simulated))
    return (
        f"That is against a simulated {baseline}, not against your scheduler: as recorded, {metric} was {was}; under "
        f"the simulated {baseline} it is {under}. The further these two are apart, the more your scheduler does that "
        "the simulation leaves out (priorities, reservations, nodes that were down), and the less can be promised."
    )
