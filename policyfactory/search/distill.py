"""Make a formula of a network: one that orders queues as the network does, and can be exported.

The network plays windows of a log. Formulas are fitted to its order on early windows, one is chosen by its agreement
on later ones, and the latest say how far it agrees and what it costs in the simulator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from policyfactory.core.errors import EvaluationError, ModelFileError, UsageError
from policyfactory.core.files import atomic_write, check_directory, dump_json, exclusive, refuse_earlier, together
from policyfactory.core.options import changed
from policyfactory.core.picture import keeps_settings, save_picture
from policyfactory.policy.network import Network, load_network
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.policy.store import load_model, save_model
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
from policyfactory.search.distill_result import ChosenFormula, Distilled, JudgedFormula, Rated, draw_agreement
from policyfactory.search.environment.goals import check_goal, goal_of
from policyfactory.search.families import FAMILIES, REFERENCES, SURFACE, Family, family_of
from policyfactory.search.learner import STEPS, Follower, Windows, draw_windows, measured, played
from policyfactory.search.options import DistillOptions, TrainOptions
from policyfactory.statistics.compare import Paired, compare_values
from policyfactory.statistics.intervals import estimate_ratio
from policyfactory.workload.jobs import Workload

__all__ = ["MODEL", "distill", "network_of", "trained_with", "write_distilled"]

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
    with exclusive(folder / MODEL):
        refuse_earlier(folder / MODEL, overwrite=overwrite)
        found = _distilled(*given)
        write_distilled(found, folder)
    return found


def _changed(options: DistillOptions | None, network: Network, changes: dict[str, Any]) -> DistillOptions:
    """Return the options with changes, in the network's mode; with its backfilling if they say nothing else."""
    if options is None:
        options = DistillOptions(TrainOptions(bands=(), backfill=trained_with(network)))
    fields = {field.name for field in dataclasses.fields(DistillOptions)}
    own = {name: value for name, value in changes.items() if name in fields}
    options = changed(options, own)
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
        candidates += _best_pull(fitted, given["choosing"])
    rated = _rated(candidates, given)
    chosen = _choose(rated, options.margin)
    judged = _judge(workload, windows, options, policy, chosen)
    return Distilled(network, workload, windows, options, given, tuple(rated), chosen, judged)


def _pairs(
    workload: Workload, windows: Windows, policy: Policy, options: DistillOptions, step: str, follower: Follower
) -> Pairs:
    follower.message(f"{policy.name} plays the windows for {step}" if step != "judged" else "and the windows judged on")
    own, number = options.windows, STEPS.index(step)
    parts = windows.cut(workload, step)
    queues = collect_queues(parts, policy, own.rules, decisions=options.decisions, seed=own.seed, step=number)
    if not len(queues):
        raise EvaluationError(
            f"{workload.name}: in the {len(parts)} {step} windows no two jobs ever wait together while one of them "
            "fits, so that nothing is decided there; give longer windows (--window-jobs), more of them, or a log with "
            "queues"
        )
    pairs = draw_pairs(queues, queues.scores(policy), most=options.pairs, seed=own.seed, step=number)
    if not len(pairs):
        raise EvaluationError(
            f"network {policy.name}: gives the same preference to both jobs of each of the {pairs.ties:,} pairs that "
            f"wait together in the {step} windows, so that it orders nothing; train it longer, or with inputs that "
            "depend on the job"
        )
    return pairs


def _best_pull(fitted: Sequence[FittedFormula], choosing: Pairs) -> list[FittedFormula]:
    """Return the one that agrees best on windows that it was not fitted on, the first of equal ones."""
    if not fitted:
        return []
    return [max(fitted, key=lambda one: _agreement(one.policy, choosing).pairs)]


def _agreement(policy: Policy, pairs: Pairs) -> Agreement:
    return agreement_of(pairs, pairs.queues.scores(policy))


def _rated(candidates: Sequence[FittedFormula], given: dict[str, Pairs]) -> list[Rated]:
    """Return all candidates, those first that agree best on the windows for choosing."""
    rated = [
        Rated(one, *(_agreement(one.policy, given[step]) for step in ("choosing", "judged"))) for one in candidates
    ]
    # Of equal ones the simpler, then a published one, which is before all others.
    rated.sort(key=lambda one: (-one.choosing.pairs, KINDS.index(one.formula.kind)))
    return rated


def _choose(rated: Sequence[Rated], margin: float) -> ChosenFormula:
    """Return the best that asks for no more of a scheduler than its agreement is worth.

    None that needs the free processors is the choice: no scheduler gives them to a sort key.
    """
    best = {kind: next((one for one in rated if one.formula.kind == kind), None) for kind in KINDS}
    static, waiting, free = (best[kind] for kind in KINDS)
    assert static is not None  # noqa: S101 (published ones are)
    choice = waiting if waiting is not None and _worth_it(waiting, static, margin) else static
    if free is not None and not _worth_it(free, choice, margin):
        free = None
    return ChosenFormula(choice, static, free)


def _worth_it(one: Rated, other: Rated, margin: float) -> bool:
    """Say whether one agrees better by the margin, and not only in some of the windows for choosing."""
    if one.choosing.pairs < other.choosing.pairs + margin:
        return False
    own, base = (np.array([alike for alike, _ in each.choosing.by_window], dtype=np.float64) for each in (one, other))
    interval = estimate_ratio(own, base).interval
    return interval is None or interval.low > 0


def _judge(
    workload: Workload, windows: Windows, options: DistillOptions, network: Policy, chosen: ChosenFormula
) -> tuple[JudgedFormula, ...]:
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

    def against(own: int, other: int) -> Paired | None:
        if own == other:
            return None
        return compare_values(
            values[own][:, 0],
            values[other][:, 0],
            lower_is_better=goal.lower_is_better,
            statistic="ratio",
            seed=options.windows.seed,
        )

    of_network = [role for _, role in named].index("network")
    return tuple(
        JudgedFormula(policy, role, tuple(own.mean(axis=0).tolist()), against(0, at), against(at, of_network))
        for at, ((policy, role), own) in enumerate(zip(named, values, strict=True))
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
