"""What a run has found: the choice, how it was chosen, what it is worth, and how to say so."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from policyfactory.core.files import command_line, package_versions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.search.environment.goals import Band
from policyfactory.search.judging import COSTS, Chosen, Member, Standing, members_of
from policyfactory.search.learner import MEASURED, STEPS, Proposals, Task

__all__ = ["Trained"]

KIND = "trained-policy"
SCHEMA = 1


# Without slots, so that what is worked out once is kept.
@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """What a run has found.

    Parameters
    ----------
    task : Task
        What it learned from.
    learner : str
        How.
    settings : dict
        The learner's own options.
    learned : Learned
        All candidates and the history.
    chosen : Chosen
        The choice.
    standings : tuple of Standing
        The judged windows: the choice first.
    """

    task: Task
    learner: str
    settings: dict[str, Any]
    learned: Proposals
    chosen: Chosen
    standings: tuple[Standing, ...]

    @property
    def policy(self) -> Policy:
        """The choice."""
        return self.chosen.winner.policy

    @property
    def model(self) -> Model:
        """The choice with its coefficients, what it is worth, and how it was made."""
        diagnostics = {
            "goal": self.task.options.goal,
            "chosen_by": self.chosen.winner.origin,
            "judged": [self._standing(one) for one in self.standings],
            "warnings": self.warnings,
            "verdict": self.verdict,
        }
        policy = self.policy
        if policy.network is not None:
            kept = {**policy.network.diagnostics, **diagnostics}
            network = dataclasses.replace(policy.network, diagnostics=kept, provenance=self.provenance)
            policy = Policy.from_network(network)
        return Model(policy, self.chosen.winner.coefficients, diagnostics, self.provenance)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made."""
        options = self.task.options
        return {
            "command": command_line(),
            "seed": options.seed,
            "workload": self.task.workload.name,
            "workload_sha256": self.task.workload.sha256(),
            "learner": self.learner,
            "options": dataclasses.asdict(options),
            "settings": self.settings,
            "versions": package_versions(),
        }

    @property
    def verdict(self) -> str:
        """What the judged windows say of the choice, in sentences."""
        goal = self.task.options.goal
        windows = len(self.task.windows.judged)
        noun = self.task.windows.noun
        others = [one for one in self.standings[1:] if one.policy.name != "FCFS"]
        said = [f"{_verdict(one)} {one.policy.name}{_interval(one)}" for one in others]
        later = f"later {noun}" if noun == "windows" else "replicas of later jobs, where predictors learn in each run,"
        if not self.task.windows.held_out:
            later = "windows, the same that it was learned on,"
        margins = [one.margin for one in others if one.role == "beside"]
        shown = self.task.windows.held_out and all(one is not None and one.verdict == "better" for one in margins)
        light = "Shown to be better" if shown and not self.standings[0].out else "Not shown to be better"
        return f"{light}: {goal} of {self.policy.name} on {windows} {later} is {'; '.join(said)}."

    @functools.cached_property
    def members(self) -> tuple[Member, ...]:
        """All that was ranked on the replicas for choosing, relative to the baseline; empty on windows."""
        return members_of(self.chosen.ranked, self.task.baseline.name) if self.task.options.replicas else ()

    @property
    def front(self) -> tuple[Member, ...]:
        """Those of them that nothing beats in goal and price at once, the best in the goal first."""
        return tuple(one for one in self.members if one.on_front)

    @property
    def margin(self) -> str:
        """What the windows for choosing say of the choice and the runner-up, in a sentence; empty without one."""
        chosen = self.chosen
        if chosen.margin is None or chosen.runner_up is None:
            return ""
        interval, noun = chosen.margin.estimate.interval, self.task.windows.noun
        change = 100 * math.expm1(chosen.margin.estimate.value)
        more = "no interval of so few"
        if interval is not None:
            low, high = (100 * math.expm1(end) for end in (interval.low, interval.high))
            more = f"95 % interval {low:+.1f} to {high:+.1f} %"
        word = {"better": "the choice is clear", "worse": "the other is better"}.get(
            chosen.margin.verdict, "cannot tell"
        )
        return (
            f"Of the candidates {chosen.winner.policy.name} was taken by {len(self.task.windows.choosing)} {noun} for "
            f"choosing, {change:+.1f} % beside {chosen.runner_up.policy.name}, the second ({more}): {word}."
        )

    @property
    def warnings(self) -> list[str]:
        """Why the result should not be trusted as it stands."""
        said = list(self.learned.warnings)
        windows = self.task.windows
        if not windows.held_out:
            said.append("nothing was held out: it was learned, chosen and judged on the same windows")
        elif windows.noun == "windows" and len(windows.judged) < self.task.options.judged_windows:
            said.append(
                f"{len(windows.judged)} of {self.task.options.judged_windows} windows to judge on fit side by side in "
                "the last part of the log"
            )
        if self.standings[0].out:
            said.append(f"on the judged {windows.noun} {self.standings[0].out}")
        better = [one.candidate.policy.name for one in self.chosen.ranked if not one.learned]
        first = self.chosen.ranked[0]
        if better and not first.learned:
            said.append(
                f"on the {windows.noun} for choosing {first.candidate.policy.name} was better than all candidates"
            )
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        windows = self.task.windows
        report = {
            "kind": KIND,
            "schema_version": SCHEMA,
            "policy": self.policy.name,
            "formula": self.policy.formula,
            "verdict": self.verdict,
            "warnings": self.warnings,
            "margin": self.margin,
            "goal": self.task.options.goal,
            "baseline": self.task.baseline.name,
            "bands": {one.guard: one.factor for one in self.task.options.guard_bands if isinstance(one, Band)},
            "limits": [dataclasses.asdict(one) for one in self.task.options.limits],
            "windows": {
                "held_out": windows.held_out,
                "noun": windows.noun,
                **{step: getattr(windows, step).tolist() for step in STEPS},
            },
            "candidates": [
                {
                    "policy": one.candidate.policy.name,
                    "formula": one.candidate.policy.formula,
                    "origin": one.candidate.origin,
                    "training": one.candidate.training,
                    "choosing": one.value,
                    "gain": one.gain,
                    "out": one.out,
                    "learned": one.learned,
                }
                for one in self.chosen.ranked
            ],
            "judged": [self._standing(one) for one in self.standings],
            "front": [
                {
                    "policy": one.name,
                    "published": not one.ranked.learned,
                    "out": one.ranked.out,
                    "ratios": dict(zip((self.task.options.goal, *COSTS), one.ratios, strict=True)),
                }
                for one in self.front
            ],
            "provenance": self.provenance,
        }
        return {name: _plain(value) for name, value in report.items()}

    def _standing(self, one: Standing) -> dict[str, Any]:
        goal = self.task.options.goal
        values = dict(zip((goal, *(f"guard_{name}" for name in MEASURED[1:])), one.means, strict=True))
        margin = one.margin
        row: dict[str, Any] = {"policy": one.policy.name, "formula": one.policy.formula, "role": one.role, **values}
        if margin is not None:
            interval = margin.estimate.interval
            row |= {
                "change_percent": margin.estimate.value,
                "interval": None if interval is None else [interval.low, interval.high],
                "verdict": margin.verdict,
                "wins": margin.wins,
                "losses": margin.losses,
            }
        if one.typical is not None:
            interval = one.typical.estimate.interval
            row |= {
                "typical_change_percent": 100 * math.expm1(one.typical.estimate.value),
                "typical_interval": None
                if interval is None
                else [100 * math.expm1(end) for end in (interval.low, interval.high)],
                "typical_verdict": one.typical.verdict,
            }
        return {**row, "out": one.out}


def _plain(value: Any) -> Any:
    """Return JSON values with null in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _verdict(one: Standing) -> str:
    words = {"better": "better than", "worse": "worse than", "differs": "other than"}
    margin = one.margin
    return words.get(margin.verdict, "not to be told from") if margin is not None else ""


def _interval(one: Standing) -> str:
    """Return the change against a policy with its interval, in percent."""
    margin = one.margin
    if margin is None:
        return ""
    interval = margin.estimate.interval
    more = "" if interval is None else f", 95 % interval {interval.low:+.1f} to {interval.high:+.1f} %"
    return f" ({margin.estimate.value:+.1f} %{more})"
