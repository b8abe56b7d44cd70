"""What ``policyfactory train`` and ``distill`` print: the tables of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.text import number_text, shortened
from policyfactory.report.terminal import console, show_table, warn
from policyfactory.search.environment.goals import GUARDS
from policyfactory.search.judging import RankedCandidate, Standing
from policyfactory.simulation.metrics import COSTS, METRICS

if TYPE_CHECKING:
    from policyfactory.search.distill import Distilled, Rated
    from policyfactory.search.run import Trained
    from policyfactory.statistics.compare import Paired

_MOST_SHOWN = 12  # candidates; the report has all
_LONGEST_FORMULA = 80


def show_trained(trained: Trained) -> None:
    """Print what a run has found: the candidates, the judged windows, and the verdict."""
    goal = trained.task.options.goal
    ranked = trained.chosen.ranked
    show_table(
        f"On the {len(trained.task.windows.choosing)} {trained.task.windows.noun} for choosing",
        ["policy", goal, f"log ratio to {trained.task.baseline.name}", "sort key"],
        [_candidate_row(candidate) for candidate in ranked[:_MOST_SHOWN]],
        caption=f"{_MOST_SHOWN} of {len(ranked)}; report.json has all" if len(ranked) > _MOST_SHOWN else None,
        left=(0, 3),
    )
    windows = trained.task.windows
    where = f"later {windows.noun}" if windows.held_out else "windows, the ones that were learned on"
    titles = [METRICS[name].title for name in GUARDS]
    show_table(
        f"Judged on {len(windows.judged)} {where}: means, and the choice against each",
        ["policy", goal, f"{trained.policy.name} against it", "", *titles],
        [_standing_row(standing) for standing in trained.standings],
        left=(0, 3),
    )
    if trained.front:
        against = trained.task.baseline.name
        show_table(
            f"Pareto front on the {len(windows.choosing)} replicas for choosing: ratios to {against}",
            ["", "policy", goal, *(METRICS[name].title for name in COSTS)],
            [_front_row(number, candidate) for number, candidate in enumerate(trained.front[:_MOST_SHOWN], 1)],
            caption=f"{_MOST_SHOWN} of {len(trained.front)}; front.json has all"
            if len(trained.front) > _MOST_SHOWN
            else None,
            left=(1,),
        )
    for text in filter(None, [trained.margin]):
        console().print(text, markup=False, soft_wrap=True)
    console().print(trained.verdict, markup=False, soft_wrap=True)
    console().print(f"{trained.policy.name}: {trained.policy.formula}", markup=False, soft_wrap=True)
    for text in trained.warnings:
        warn(text)


def _candidate_row(ranked: RankedCandidate) -> list[str]:
    out = " (out of its bands)" if ranked.out else ""
    name = f"{ranked.candidate.policy.name}{out if ranked.learned else ' (published)'}"
    return [
        name,
        number_text(ranked.means[0]),
        f"{ranked.gain:+.4f}",
        shortened(ranked.candidate.policy.formula, _LONGEST_FORMULA),
    ]


def _front_row(number: int, ranked: RankedCandidate) -> list[str]:
    out = " (out of its bands)" if ranked.out else "" if ranked.learned else " (published)"
    return [str(number), f"{ranked.name}{out}", *(f"{value:.3f}" for value in ranked.ratios)]


def _standing_row(standing: Standing) -> list[str]:
    goal, *guards = standing.means
    shown = [_guard(name, value) for name, value in zip(GUARDS, guards, strict=True)]
    if standing.margin is None:
        return [f"{standing.policy.name} ({standing.role})", number_text(goal), "", "", *shown]
    role = " (runner-up)" if standing.role == "runner-up" else ""
    return [f"{standing.policy.name}{role}", number_text(goal), *_change(standing.margin), *shown]


def _guard(name: str, value: float) -> str:
    if METRICS[name].unit == "s":
        return f"{value / 3600:.1f} h"
    return f"{number_text(value)} {METRICS[name].unit}"


# What ``policyfactory distill`` prints --------------------------------------------------------------------------------


_NEEDS = {"static": "", "w": "wait", "f": "free processors"}


def show_distilled(found: Distilled) -> None:
    """Print what was found: the candidates, the judged windows, and the verdict."""
    shown = list(found.rated[:_MOST_SHOWN])
    shown += [rated for rated in (found.chosen.choice, found.chosen.static) if rated not in shown]
    pairs = found.pairs["judged"]
    show_table(
        f"Agreement with network {found.network.name}: {len(pairs):,} pairs at {len(pairs.queues):,} decisions of "
        f"{len(found.windows.judged)} judged windows",
        ["formula", "pairs alike", "Kendall's tau", "same job first", "needs", "sort key"],
        [_rated_row(found, rated) for rated in shown],
        caption=f"{len(shown)} of {len(found.rated)}; report.json has all" if len(found.rated) > len(shown) else None,
        left=(0, 4, 5),
    )
    goal = found.options.windows.goal
    show_table(
        "What it costs in the simulator: means over the judged windows",
        ["policy", goal, f"{found.policy.name} against it", "", "it against the network", ""],
        [_judged_row(standing) for standing in found.judged],
        left=(0, 3, 5),
    )
    console().print(found.verdict, markup=False, soft_wrap=True)
    console().print(f"{found.policy.name}: {found.policy.formula}", markup=False, soft_wrap=True)
    for text in found.warnings:
        warn(text)


def _rated_row(found: Distilled, rated: Rated) -> list[str]:
    role = " (choice)" if rated is found.chosen.choice else " (best static)" if rated is found.chosen.static else ""
    judged, policy = rated.judged, rated.formula.policy
    shares = [f"{100 * judged.pairs:.1f} %", f"{judged.tau:.3f}", f"{100 * judged.first:.1f} %"]
    return [f"{policy.name}{role}", *shares, _NEEDS[rated.formula.kind], shortened(policy.formula, _LONGEST_FORMULA)]


def _judged_row(standing: Standing) -> list[str]:
    role = "" if standing.role == "beside" else f" ({standing.role})"
    return [
        f"{standing.policy.name}{role}",
        number_text(standing.means[0]),
        *_change(standing.margin),
        *_change(standing.network),
    ]


def _change(paired: Paired | None) -> tuple[str, str]:
    if paired is None:
        return "", ""
    if not paired.wins + paired.losses:
        return "+0.0 %", "the same"
    interval = paired.estimate.interval
    ends = "" if interval is None else f" [{interval.low:+.1f}, {interval.high:+.1f}]"
    return f"{paired.estimate.value:+.1f}{ends} %", {"no difference": "cannot tell"}.get(paired.verdict, paired.verdict)
