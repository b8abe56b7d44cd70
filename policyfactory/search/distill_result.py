"""What a distillation has found: the formula, how far it orders as the network does, and what that costs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from policyfactory.core.files import command_line, package_versions
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.policy.network import Network
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.search.distill_fit import KINDS, Agreement, FittedFormula, Pairs
from policyfactory.search.learner import MEASURED, STEPS, Windows
from policyfactory.search.options import DistillOptions
from policyfactory.statistics.compare import Paired
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChosenFormula", "Distilled", "JudgedFormula", "Rated", "draw_agreement"]

KIND = "distilled-policy"
SCHEMA = 1
WELL = 0.95  # share of pairs from which on a formula is called a copy


@dataclasses.dataclass(frozen=True, slots=True)
class Rated:
    """A candidate, and how far it orders as the network does.

    Parameters
    ----------
    formula : Fitted
        The candidate.
    choosing, judged : Agreement
        On the windows that it was chosen by, and on later ones.
    """

    formula: FittedFormula
    choosing: Agreement
    judged: Agreement


@dataclasses.dataclass(frozen=True, slots=True)
class ChosenFormula:
    """What is made of the candidates.

    Parameters
    ----------
    choice : Rated
        What is taken for the network: a formula in p, q, m and, if that is worth it, w.
    static : Rated
        The best whose values never change while a job waits; it may be the choice.
    free : Rated or None
        The best with the free processors (f), if it agrees better than the choice by the margin.
    """

    choice: Rated
    static: Rated
    free: Rated | None


@dataclasses.dataclass(frozen=True, slots=True)
class JudgedFormula:
    """A policy on the judged windows.

    Parameters
    ----------
    policy : Policy
        The policy.
    role : str
        ``choice``, ``network``, ``static`` (the best key that never changes), ``with f`` or ``beside``.
    means : tuple of float
        Mean over the windows of the goal and of each guard (`policyfactory.search.learner.MEASURED`).
    choice : Paired or None
        The choice against it, window by window, as a ratio of sums in %; None for the choice.
    network : Paired or None
        It against the network; None for the network.
    """

    policy: Policy
    role: str
    means: tuple[float, ...]
    choice: Paired | None
    network: Paired | None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Distilled:
    """The result of a run.

    Parameters
    ----------
    network : Network
        What was made a formula of.
    workload : Workload
        The log.
    windows : Windows
        Where its windows begin.
    options : DistillOptions
        How.
    pairs : dict of str to Pairs
        Step -> what the network said there.
    rated : tuple of Rated
        All candidates, the best on the windows for choosing first.
    chosen : Chosen
        What is made of them.
    judged : tuple of Judged
        The judged windows: the choice first.
    """

    network: Network
    workload: Workload
    windows: Windows
    options: DistillOptions
    pairs: dict[str, Pairs]
    rated: tuple[Rated, ...]
    chosen: ChosenFormula
    judged: tuple[JudgedFormula, ...]

    @property
    def policy(self) -> Policy:
        """The choice."""
        return self.chosen.choice.formula.policy

    @property
    def model(self) -> Model:
        """The choice as a model, which every export that can take its variables takes."""
        against = next(one for one in self.judged if one.role == "network")
        compared = f"{_verdict(against.choice)} it{_interval(against.choice)}"
        return self._model(self.chosen.choice, f"{self._agreeing}; in {self.options.windows.goal} {compared}.")

    @property
    def static_model(self) -> Model:
        """The best formula whose values never change while a job waits, as a model."""
        said = f"{_percent(self.chosen.static.judged.pairs)} of the pairs ordered as by network {self.network.name}."
        return self._model(self.chosen.static, said)

    def _model(self, rated: Rated, verdict: str) -> Model:
        one = rated.formula
        diagnostics = {
            "network": {"name": self.network.name, "digest": self.network.digest, "mode": self.network.mode},
            "origin": one.origin,
            "pull": one.pull,
            "agreement": {"choosing": _agreement(rated.choosing), "judged": _agreement(rated.judged)},
            "warnings": self.warnings,
            "verdict": verdict,
        }
        return Model(one.policy, one.coefficients, diagnostics, self.provenance)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made."""
        return {
            "command": command_line(),
            "seed": self.options.windows.seed,
            "network": self.network.name,
            "network_digest": self.network.digest,
            "workload": self.workload.name,
            "workload_sha256": self.workload.sha256(),
            "options": dataclasses.asdict(self.options),
            "versions": package_versions(),
        }

    @property
    def _agreeing(self) -> str:
        judged = self.chosen.choice.judged
        interval = judged.interval
        ends = "" if interval is None else f" (95 % interval {100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"
        return (
            f"{self.policy.name} orders {_percent(judged.pairs)}{ends} of the pairs as network {self.network.name} "
            f"does (Kendall's tau {judged.tau:.3f}), and has the same job first at {_percent(judged.first)} of the "
            "decisions"
        )

    @property
    def verdict(self) -> str:
        """What was found, in sentences."""
        goal = self.options.windows.goal
        said = [f"{_verdict(one.choice)} {one.policy.name}{_interval(one.choice)}" for one in self.judged[1:]]
        return f"{self._agreeing}. On {len(self.windows.judged)} judged windows its {goal} is {'; '.join(said)}."

    @property
    def warnings(self) -> list[str]:
        """Why the formula should not be taken for the network."""
        said = []
        choice, free = self.chosen.choice.judged, self.chosen.free
        if choice.pairs < WELL:
            said.append(
                f"{self.policy.name} orders only {_percent(choice.pairs)} of the pairs as the network does: it is "
                "another policy, not a copy"
            )
        if free is not None:
            said.append(
                f"with the free processors (f), which no scheduler gives to a sort key, {_percent(free.judged.pairs)} "
                f"are ordered alike: {shortened(free.formula.policy.formula, 200)}"
            )
        judged = len(self.windows.judged)
        if not self.windows.held_out:
            said.append("nothing was held out: it was fitted, chosen and judged on the same windows")
        elif judged < self.options.windows.judged_windows:
            said.append(
                f"{judged} of {self.options.windows.judged_windows} windows to judge on fit side by side in the last "
                "part of the log"
            )
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA,
            "policy": self.policy.name,
            "formula": self.policy.formula,
            "static": _named(self.chosen.static),
            "with_free_processors": None if self.chosen.free is None else _named(self.chosen.free),
            "verdict": self.verdict,
            "warnings": self.warnings,
            "goal": self.options.windows.goal,
            "windows": {
                "held_out": self.windows.held_out,
                **{step: getattr(self.windows, step).tolist() for step in STEPS},
            },
            "pairs": {
                step: {
                    "decisions": len(pairs.queues),
                    "pairs": len(pairs),
                    "ties": pairs.ties,
                    "longer_queues": pairs.queues.longer,
                }
                for step, pairs in self.pairs.items()
            },
            "candidates": [
                {
                    "policy": one.formula.policy.name,
                    "formula": one.formula.policy.formula,
                    "origin": one.formula.origin,
                    "needs": one.formula.kind,
                    "pull": one.formula.pull,
                    "choosing": _agreement(one.choosing),
                    "judged": _agreement(one.judged),
                }
                for one in self.rated
            ],
            "judged": [self._judged(one) for one in self.judged],
            "provenance": self.provenance,
        }

    def _judged(self, one: JudgedFormula) -> dict[str, Any]:
        names = (self.options.windows.goal, *(f"guard_{name}" for name in MEASURED[1:]))
        return {
            "policy": one.policy.name,
            "formula": one.policy.formula,
            "role": one.role,
            **dict(zip(names, one.means, strict=True)),
            "choice_against_it": _margin(one.choice),
            "against_the_network": _margin(one.network),
        }


def _named(rated: Rated) -> dict[str, str]:
    return {"policy": rated.formula.policy.name, "formula": rated.formula.policy.formula}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _agreement(one: Agreement) -> dict[str, Any]:
    interval = one.interval
    return {
        "pairs": one.pairs,
        "interval": None if interval is None else list(interval),
        "tau": one.tau,
        "first": one.first,
    }


def _margin(one: Paired | None) -> dict[str, Any] | None:
    if one is None:
        return None
    interval = one.estimate.interval
    return {
        "change_percent": one.estimate.value,
        "interval": None if interval is None else [interval.low, interval.high],
        "verdict": one.verdict,
        "wins": one.wins,
        "losses": one.losses,
    }


def _verdict(one: Paired | None) -> str:
    if one is None:
        return ""
    if not one.wins + one.losses:
        return "that of"
    words = {"better": "better than", "worse": "worse than", "differs": "other than"}
    return words.get(one.verdict, "not to be told from")


def _interval(one: Paired | None) -> str:
    if one is None or not one.wins + one.losses:
        return ""
    interval = one.estimate.interval
    more = "" if interval is None else f", 95 % interval {interval.low:+.1f} to {interval.high:+.1f} %"
    return f" ({one.estimate.value:+.1f} %{more})"


# How far each candidate orders queues as the network does -------------------------------------------------------------


_MOST_DRAWN = 16
_WORDS = {"static": "a key that never changes", "w": "with the wait", "f": "with the free processors"}


def draw_agreement(found: Distilled) -> Figure:
    """Draw the share of pairs ordered as by the network, of the best candidates.

    Parameters
    ----------
    found : Distilled
        The run.

    Returns
    -------
    Figure
    """
    kept = list(found.rated[:_MOST_DRAWN])
    kept += [one for one in (found.chosen.choice, found.chosen.static) if one not in kept]
    kept.reverse()
    figure = new_figure(7.0, 1.4 + 0.28 * len(kept))
    axes = figure.add_subplot()
    for number, kind in enumerate(KINDS):
        places = [at for at, one in enumerate(kept) if one.formula.kind == kind]
        if places:
            shares = [100 * kept[at].judged.pairs for at in places]
            axes.barh(places, shares, color=COLOURS[number], label=_WORDS[kind], height=0.7)
    for at, one in enumerate(kept):
        interval = one.judged.interval
        if interval is not None:
            axes.plot([100 * interval[0], 100 * interval[1]], [at, at], color="black", linewidth=1.4)
    names = [
        shortened(one.formula.policy.name, 30) + (" (choice)" if one is found.chosen.choice else "") for one in kept
    ]
    axes.set_yticks(range(len(kept)), names, fontsize=8)
    axes.set_xlim(0, 100)
    axes.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel(
        f"pairs ordered as by network {shortened(found.network.name, 30)} on the judged windows, %\n(line: 95 % "
        "interval over the windows; dotted: by chance)",
        fontsize=8,
    )
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncol=len(KINDS), frameon=False)
    axes.set_ylim(-0.6, len(kept) - 0.4)
    return figure
