"""Make a formula of a network: one that orders queues as the network does, and can be exported.

The network plays windows of a log. Formulas are fitted to its order on early windows, one is chosen by its agreement
on later ones, and the latest say how far it agrees and what it costs in the simulator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from policyfactory.core.errors import EvaluationError, ModelFileError, UsageError
from policyfactory.core.files import atomic_write, check_directory, dump_json, exclusive, together
from policyfactory.core.options import changed
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.core.process import Follower
from policyfactory.core.text import shortened
from policyfactory.policy.network import Network, load_network
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.policy.store import Model, load_model, save_model
from policyfactory.search.distill_fit import (
    KINDS,
    Agreement,
    FittedFormula,
    Pairs,
    agreement_of,
    collect_queues,
    draw_pairs,
    family_formulas,
    form_formulas,
    published_formulas,
)
from policyfactory.search.environment.goals import check_goal, goal_of
from policyfactory.search.families import FAMILIES, REFERENCES, Family, family_of
from policyfactory.search.judging import Standing, margin_json, margin_words
from policyfactory.search.learner import (
    STEPS,
    Windows,
    draw_windows,
    measured,
    named_means,
    played,
    provenance_of,
)
from policyfactory.search.options import DistillOptions, TrainOptions
from policyfactory.statistics.compare import Paired, compare_values
from policyfactory.statistics.intervals import estimate_ratio
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    judged : tuple of Standing
        The judged windows: the choice first.
    """

    network: Network
    workload: Workload
    windows: Windows
    options: DistillOptions
    pairs: dict[str, Pairs]
    rated: tuple[Rated, ...]
    chosen: ChosenFormula
    judged: tuple[Standing, ...]

    @property
    def policy(self) -> Policy:
        """The choice."""
        return self.chosen.choice.formula.policy

    @property
    def model(self) -> Model:
        """The choice as a model, which every export that can take its variables takes."""
        against = next(row.margin for row in self.judged if row.role == "network" and row.margin is not None)
        compared = f"its {self.options.windows.goal} is {margin_words(against, self.network.name)}"
        return self._model(self.chosen.choice, f"{self._agreeing}; {compared}.")

    @property
    def static_model(self) -> Model:
        """The best formula whose values never change while a job waits, as a model."""
        why = f"{_percent(self.chosen.static.judged.pairs)} of the pairs ordered as by network {self.network.name}."
        return self._model(self.chosen.static, why)

    def _model(self, rated: Rated, verdict: str) -> Model:
        formula = rated.formula
        diagnostics = {
            "network": {"name": self.network.name, "digest": self.network.digest, "mode": self.network.mode},
            "origin": formula.origin,
            "pull": formula.pull,
            "agreement": {"choosing": _shares(rated.choosing), "judged": _shares(rated.judged)},
            "warnings": self._warnings(rated),
            "verdict": verdict,
        }
        return Model(formula.policy, formula.coefficients, diagnostics, self.provenance)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made."""
        return provenance_of(
            self.workload,
            self.options.windows.seed,
            network=self.network.name,
            network_digest=self.network.digest,
            options=dataclasses.asdict(self.options),
        )

    def best(self, count: int) -> list[Rated]:
        """Return the first of the candidates, and what was chosen of the others."""
        chosen = self.chosen.choice, self.chosen.static
        return [rated for number, rated in enumerate(self.rated) if number < count or rated in chosen]

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
        compared = [margin_words(row.margin, row.policy.name) for row in self.judged if row.margin is not None]
        return f"{self._agreeing}. On {len(self.windows.judged)} judged windows its {goal} is {'; '.join(compared)}."

    @property
    def warnings(self) -> list[str]:
        """Why the formula should not be taken for the network."""
        return self._warnings(self.chosen.choice)

    def _warnings(self, rated: Rated) -> list[str]:
        warnings = []
        alike, free = rated.judged.pairs, self.chosen.free
        if alike < WELL:
            warnings.append(
                f"{rated.formula.policy.name} orders only {_percent(alike)} of the pairs as the network does: it is "
                "another policy, not a copy"
            )
        if free is not None:
            warnings.append(
                f"with the free processors (f), which no scheduler gives to a sort key, {_percent(free.judged.pairs)} "
                f"are ordered alike: {shortened(free.formula.policy.formula, 200)}"
            )
        return [*warnings, *self.windows.warnings(self.options.windows.judged_windows, "fitted")]

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
            "windows": self.windows.as_dict(),
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
                    "policy": rated.formula.policy.name,
                    "formula": rated.formula.policy.formula,
                    "origin": rated.formula.origin,
                    "needs": rated.formula.kind,
                    "pull": rated.formula.pull,
                    "choosing": _shares(rated.choosing),
                    "judged": _shares(rated.judged),
                }
                for rated in self.rated
            ],
            "judged": [self._judged(standing) for standing in self.judged],
            "provenance": self.provenance,
        }

    def _judged(self, standing: Standing) -> dict[str, Any]:
        return {
            "policy": standing.policy.name,
            "formula": standing.policy.formula,
            "role": standing.role,
            **named_means(self.options.windows.goal, standing.means),
            "choice_against_it": None if standing.margin is None else margin_json(standing.margin),
            "against_the_network": None if standing.network is None else margin_json(standing.network),
        }


def _named(rated: Rated) -> dict[str, str]:
    return {"policy": rated.formula.policy.name, "formula": rated.formula.policy.formula}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _shares(agreement: Agreement) -> dict[str, Any]:
    interval = agreement.interval
    return {
        "pairs": agreement.pairs,
        "interval": None if interval is None else list(interval),
        "tau": agreement.tau,
        "first": agreement.first,
    }


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
    kept = found.best(_MOST_DRAWN)[::-1]
    figure = new_figure(7.0, 1.4 + 0.28 * len(kept))
    axes = figure.add_subplot()
    for number, kind in enumerate(KINDS):
        places = [row for row, rated in enumerate(kept) if rated.formula.kind == kind]
        if places:
            shares = [100 * kept[row].judged.pairs for row in places]
            axes.barh(places, shares, color=COLOURS[number], label=_WORDS[kind], height=0.7)
    for row, rated in enumerate(kept):
        interval = rated.judged.interval
        if interval is not None:
            axes.plot([100 * interval[0], 100 * interval[1]], [row, row], color="black", linewidth=1.4)
    names = [
        shortened(rated.formula.policy.name, 30) + (" (choice)" if rated is found.chosen.choice else "")
        for rated in kept
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


# To fit many coefficients to an order costs next to nothing, so there is one family more than for a search: all of
# second degree that schedulers with a wait take. x is log10(p), y log10(q), v log10(w + 10) - 1.
_XX, _YY, _VV = "log10(max(p, 1))", "log10(q)", "(log10(w + 10) - 1)"
SURFACE = (
    f"surface={_XX} + a*{_YY} + b*{_VV} + c*{_XX}*{_YY} + d*{_XX}*{_VV} + i*{_YY}*{_VV} + h*{_XX}**2"
    f" + k*{_YY}**2 + o*{_VV}**2"
)

# Make a formula of a network ------------------------------------------------------------------------------------------

_FITTED_PAIRS = 10_000  # pairs that coefficients are fitted to


def distill(
    network: Network | Path | str,
    workload: Workload | Path | str,
    options: DistillOptions | None = None,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    follower: Follower | None = None,
    **changes: Any,
) -> Distilled:
    """Return the formula that orders the queues of a log as a network does, and how far it does.

    Parameters
    ----------
    network : Network, Path or str
        The network, or its file.
    workload : Workload, Path or str
        The jobs, or a file in the Standard Workload Format.
    options : DistillOptions, optional
        Windows, families, and how many decisions and pairs.
    output : Path or str, optional
        Folder for the models, the picture and the report. Without it all is in memory.
    overwrite : bool
        Replace what an earlier run left in the folder.
    follower : Follower, optional
        Who follows how far the work is.
    **changes
        Fields of `DistillOptions` and of `TrainOptions`, in place of ``options`` or on top of them: ``families``,
        ``goal``, ``window_jobs``, ...

    Raises
    ------
    ModelFileError, InputError
        If the network cannot be read.
    UsageError
        If an option is outside its limits or a family cannot be used.
    WorkloadError
        If the log is shorter than its windows, or cannot be used.
    EvaluationError
        If the network tells no jobs apart, or the windows have no queue.
    OutputError
        If the folder holds a formula already, is being written by another run, or cannot be written.
    """
    if not isinstance(network, Network):
        network = network_of(Path(network))
    options = _changed(options, network, changes)
    if not isinstance(workload, Workload):
        from policyfactory.workload.clean import read

        workload = read(Path(workload), **options.windows.reading)
        workload.cleaning.warn()
    families = [family_of(text) for text in options.families]
    for family in families:
        first = family.form.with_values(family.start)
        if first.needs_predictions:
            raise predictions_needed(first, "the network that is made a formula")
    check_goal(goal_of(options.windows.goal), workload)
    windows = draw_windows(workload, options.windows)
    given = (network, workload, options, windows, families, follower or Follower())
    if output is None:
        return _distilled(*given)
    folder = check_directory(Path(output))
    with exclusive(folder / MODEL, overwrite=overwrite):
        found = _distilled(*given)
        write_distilled(found, folder)
    return found


def _changed(options: DistillOptions | None, network: Network, changes: dict[str, Any]) -> DistillOptions:
    """Return the options with changes, in the network's mode; with its backfilling if they say nothing else."""
    if options is None:
        options = DistillOptions(TrainOptions(bands=(), backfill=trained_with(network)))
    fields = {field.name for field in dataclasses.fields(DistillOptions)}
    windowed = {name: value for name, value in changes.items() if name in fields}
    options = changed(options, windowed)
    families = options.families or (*FAMILIES, SURFACE)
    others = {name: value for name, value in changes.items() if name not in fields}
    windows = changed(options.windows, {**others, "mode": network.mode})
    return dataclasses.replace(options, windows=windows, families=families)


def trained_with(network: Network) -> Literal["easy", "none"]:
    """Return the backfilling that a network was trained with, by its provenance; EASY if it does not say."""
    options = network.provenance.get("options")
    return "none" if isinstance(options, dict) and options.get("backfill") == "none" else "easy"


def network_of(path: Path) -> Network:
    """Return the network of a file.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no network, or one of a newer schema.
    UsageError
        If it is the model of a formula.
    """
    try:
        return load_network(path)
    except ModelFileError as error:
        try:
            load_model(path)
        except ModelFileError:
            raise error from None
    raise UsageError(
        f"{path}: is the model of a formula already, and no network; it goes as it is: policyfactory export {path}"
    )


def _distilled(
    network: Network,
    workload: Workload,
    options: DistillOptions,
    windows: Windows,
    families: Sequence[Family],
    follower: Follower,
) -> Distilled:
    policy = Policy.from_network(network)
    given = {step: _pairs(workload, windows, policy, options, step, follower) for step in STEPS}
    some = given["training"].some(_FITTED_PAIRS)
    follower.message("fits formulas to the order of the network")
    candidates = [*published_formulas(), *form_formulas(some)]
    for family in families:
        fitted = family_formulas(family, some)
        if not fitted:
            follower.message(f"family {family.name} has no value for some jobs, or the same one for all: left out")
        else:
            # Which pull is best is said by windows that nothing was fitted on; of equal ones the first.
            candidates.append(max(fitted, key=lambda formula: _agreement(formula.policy, given["choosing"]).pairs))
    rated = _rated(candidates, given)
    chosen = _choose(rated, options.margin)
    judged = _judge(workload, windows, options, policy, chosen)
    return Distilled(
        network=network,
        workload=workload,
        windows=windows,
        options=options,
        pairs=given,
        rated=tuple(rated),
        chosen=chosen,
        judged=judged,
    )


def _pairs(
    workload: Workload, windows: Windows, policy: Policy, options: DistillOptions, step: str, follower: Follower
) -> Pairs:
    follower.message(f"{policy.name} plays the windows for {step}" if step != "judged" else "and the windows judged on")
    drawing, number = options.windows, STEPS.index(step)
    parts = windows.cut(workload, step)
    queues = collect_queues(parts, policy, drawing.rules, decisions=options.decisions, seed=drawing.seed, step=number)
    if not len(queues):
        raise EvaluationError(
            f"{workload.name}: in the {len(parts)} {step} windows no two jobs ever wait together while one of them "
            "fits, so that nothing is decided there; give longer windows (--window-jobs), more of them, or a log with "
            "queues"
        )
    pairs = draw_pairs(queues, queues.scores(policy), most=options.pairs, seed=drawing.seed, step=number)
    if not len(pairs):
        raise EvaluationError(
            f"network {policy.name}: gives the same preference to both jobs of each of the {pairs.ties:,} pairs that "
            f"wait together in the {step} windows, so that it orders nothing; train it longer, or with inputs that "
            "depend on the job"
        )
    return pairs


def _agreement(policy: Policy, pairs: Pairs) -> Agreement:
    return agreement_of(pairs, pairs.queues.scores(policy))


def _rated(candidates: Sequence[FittedFormula], given: dict[str, Pairs]) -> list[Rated]:
    """Return all candidates, those first that agree best on the windows for choosing."""
    rated = [
        Rated(fit, *(_agreement(fit.policy, given[step]) for step in ("choosing", "judged"))) for fit in candidates
    ]
    # Of equal ones the simpler, then a published one, which is before all others.
    rated.sort(key=lambda entry: (-entry.choosing.pairs, KINDS.index(entry.formula.kind)))
    return rated


def _choose(rated: Sequence[Rated], margin: float) -> ChosenFormula:
    """Return the best that asks for no more of a scheduler than its agreement is worth.

    None that needs the free processors is the choice: no scheduler gives them to a sort key.
    """
    best = {kind: next((entry for entry in rated if entry.formula.kind == kind), None) for kind in KINDS}
    static, waiting, free = (best[kind] for kind in KINDS)
    assert static is not None  # noqa: S101 (published ones are)
    choice = waiting if waiting is not None and _worth_it(waiting, static, margin) else static
    if free is not None and not _worth_it(free, choice, margin):
        free = None
    return ChosenFormula(choice, static, free)


def _worth_it(first: Rated, second: Rated, margin: float) -> bool:
    """Say whether one agrees better by the margin, and not only in some of the windows for choosing."""
    if first.choosing.pairs < second.choosing.pairs + margin:
        return False
    shares = (np.array([alike for alike, _ in each.choosing.by_window], np.float64) for each in (first, second))
    interval = estimate_ratio(*shares).interval
    return interval is None or interval.low > 0


def _judge(
    workload: Workload, windows: Windows, options: DistillOptions, network: Policy, chosen: ChosenFormula
) -> tuple[Standing, ...]:
    """Return what network, formulas and published orders are worth on the judged windows."""
    goal = goal_of(options.windows.goal)
    named = [(chosen.choice.formula.policy, "choice"), (network, "network")]
    if chosen.static is not chosen.choice:
        named.append((chosen.static.formula.policy, "static"))
    if chosen.free is not None:
        named.append((chosen.free.formula.policy, "with f"))
    known = {policy.formula for policy, _ in named}
    named += [(policy, "beside") for policy in REFERENCES.values() if policy.formula not in known]
    parts = played(windows.cut(workload, "judged"), options.windows.rules)
    values = [measured(parts, policy, goal) for policy, _ in named]

    def against(first: int, second: int) -> Paired | None:
        if first == second:
            return None
        return compare_values(
            values[first][:, 0],
            values[second][:, 0],
            lower_is_better=goal.lower_is_better,
            statistic="ratio",
            seed=options.windows.seed,
        )

    of_network = [role for _, role in named].index("network")
    return tuple(
        Standing(policy, role, tuple(each.mean(axis=0).tolist()), against(0, row), network=against(row, of_network))
        for row, ((policy, role), each) in enumerate(zip(named, values, strict=True))
    )


# The folder of a distillation: two models, the picture and the report -------------------------------------------------


MODEL, STATIC, PICTURE, REPORT = "policy.json", "static.json", "agreement.png", "report.json"


def write_distilled(found: Distilled, folder: Path) -> list[Path]:
    """Write the models of the choice and of the best static formula, the picture and the report together.

    Raises
    ------
    OutputError
        If one cannot be written; then none is.
    """
    paths = [folder / name for name in (MODEL, STATIC, PICTURE, REPORT)]
    with together():
        save_model(found.model, paths[0])
        save_model(found.static_model, paths[1])
        save_picture(keeps_settings(draw_agreement)(found), paths[2])
        atomic_write(paths[3], dump_json(found.as_dict()))
    return paths
