"""The terminal of ``policyfactory distill``: the tables of what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.text import number_text, shortened
from policyfactory.report.terminal import console, note, show_table, warn
from policyfactory.search.learner import Follower

if TYPE_CHECKING:
    from policyfactory.search.distill_result import Distilled, Judged, Rated
    from policyfactory.statistics.compare import Paired

__all__ = ["DistillScreen", "show_distilled"]

_MOST_SHOWN = 12  # candidates; the report has all
_LONGEST_FORMULA = 80
_NEEDS = {"static": "", "w": "wait", "f": "free processors"}


class DistillScreen(Follower):
    """Says what is being done."""

    def message(self, sentence: str) -> None:
        """Print a sentence on stderr."""
        note(sentence)


def show_distilled(found: Distilled) -> None:
    """Print what was found: the candidates, the judged windows, and the verdict."""
    shown = list(found.rated[:_MOST_SHOWN])
    shown += [one for one in (found.chosen.choice, found.chosen.static) if one not in shown]
    pairs = found.pairs["judged"]
    show_table(
        f"Agreement with network {found.network.name}: {len(pairs):,} pairs at {len(pairs.queues):,} decisions of "
        f"{len(found.windows.judged)} judged windows",
        ["formula", "pairs alike", "Kendall's tau", "same job first", "needs", "sort key"],
        [_rated_row(found, one) for one in shown],
        caption=f"{len(shown)} of {len(found.rated)}; report.json has all" if len(found.rated) > len(shown) else None,
        left=(0, 4, 5),
    )
    goal = found.options.windows.goal
    show_table(
        "What it costs in the simulator: means over the judged windows",
        ["policy", goal, f"{found.policy.name} against it", "", "it against the network", ""],
        [_judged_row(one) for one in found.judged],
        left=(0, 3, 5),
    )
    console().print(found.verdict, markup=False, soft_wrap=True)
    console().print(f"{found.policy.name}: {found.policy.formula}", markup=False, soft_wrap=True)
    for text in found.warnings:
        warn(text)


def _rated_row(found: Distilled, one: Rated) -> list[str]:
    role = " (choice)" if one is found.chosen.choice else " (best static)" if one is found.chosen.static else ""
    judged, policy = one.judged, one.formula.policy
    shares = [f"{100 * judged.pairs:.1f} %", f"{judged.tau:.3f}", f"{100 * judged.first:.1f} %"]
    return [f"{policy.name}{role}", *shares, _NEEDS[one.formula.kind], shortened(policy.formula, _LONGEST_FORMULA)]


def _judged_row(one: Judged) -> list[str]:
    role = "" if one.role == "beside" else f" ({one.role})"
    return [f"{one.policy.name}{role}", number_text(one.means[0]), *_change(one.choice), *_change(one.network)]


def _change(one: Paired | None) -> tuple[str, str]:
    if one is None:
        return "", ""
    if not one.wins + one.losses:
        return "+0.0 %", "the same"
    interval = one.estimate.interval
    ends = "" if interval is None else f" [{interval.low:+.1f}, {interval.high:+.1f}]"
    return f"{one.estimate.value:+.1f}{ends} %", {"no difference": "cannot tell"}.get(one.verdict, one.verdict)
