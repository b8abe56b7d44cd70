"""The file of a Pareto front, and how another member of it becomes the policy of the folder."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.files import exclusive, refuse_earlier
from policyfactory.core.inputs import read_bytes
from policyfactory.core.picture import COLOURS, new_figure, plain_numbers
from policyfactory.core.text import shortened
from policyfactory.policy.network import decode
from policyfactory.policy.store import Model, model_from_json, model_to_json, save_model
from policyfactory.search.judging import COSTS, Member, RankedCandidate
from policyfactory.search.learner import MEASURED
from policyfactory.search.result import Trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyfactory.search.result import Trained

__all__ = ["FRONT", "draw_front", "front_json", "pick"]

FRONT = "front.json"
_KIND, _SCHEMA = "pareto-front", 1
_LARGEST, _MOST = 1 << 26, 10_000  # bytes, members


def front_json(trained: Trained) -> dict[str, Any]:
    """Return the front as JSON values, a model for each member: what `pick` takes one from."""
    task = trained.task
    members = []
    for number, one in enumerate(trained.front, 1):
        named = dict(zip((task.options.goal, *COSTS), one.ratios, strict=True))
        ratios = {name: value if math.isfinite(value) else None for name, value in named.items()}
        members.append(
            {
                "number": number,
                "name": one.name,
                "published": not one.ranked.learned,
                "chosen": one.ranked.candidate is trained.chosen.winner,
                "out": one.ranked.out,
                "ratios": ratios,
                "model": model_to_json(_model(trained, one, ratios)),
            }
        )
    limits = [dataclasses.asdict(one) for one in task.options.limits]
    return {
        "kind": _KIND,
        "schema_version": _SCHEMA,
        "baseline": task.baseline.name,
        "replicas": len(task.windows.choosing),
        "limits": limits,
        "members": members,
    }


def _model(trained: Trained, one: Member, ratios: dict[str, float | None]) -> Model:
    candidate = one.ranked.candidate
    replicas = len(trained.task.windows.choosing)
    warnings = [f"picked from the front of {replicas} replicas, and judged on nothing that is held out"]
    if one.ranked.out:
        warnings.append(one.ranked.out)
    diagnostics = {"goal": trained.task.options.goal, "chosen_by": candidate.origin, "ratios": ratios}
    return Model(candidate.policy, candidate.coefficients, {**diagnostics, "warnings": warnings}, trained.provenance)


def pick(folder: Path, which: str, *, overwrite: bool = False) -> Model:
    """Make another member of a front the policy of its folder, and return it; nothing is searched.

    Parameters
    ----------
    folder : Path
        Of a search on replicas.
    which : str
        Name or number of the member.
    overwrite : bool
        Replace the policy that is there.

    Raises
    ------
    InputError
        If the folder has no front, or it cannot be used.
    UsageError
        If there is no such member.
    OutputError
        If there is a policy and ``overwrite`` is not given, or it cannot be written.
    """
    path, model = folder / FRONT, folder / "policy.json"
    members = _read(path)
    names = [f"{number} {one['name']}" for number, one in enumerate(members, 1)]
    found = [
        one for number, one in enumerate(members, 1) if which.strip() == str(number) or which.strip() == one["name"]
    ]
    if not found:
        raise UsageError(f"--pick {which[:60]!a}: {path} has {', '.join(names)[:1000]}; give a number or a name")
    picked = model_from_json(found[0]["model"], f"{path}: {found[0]['name'][:100]!a}")
    with exclusive(model):
        refuse_earlier(model, overwrite=overwrite)
        save_model(picked, model)
    return picked


def _read(path: Path) -> list[dict[str, Any]]:
    content = decode(read_bytes(path, limit=_LARGEST), str(path))
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise InputError(f"{path}: is no front of policyfactory train --replicas; name the folder of such a run")
    if content.get("schema_version") != _SCHEMA:
        raise InputError(
            f"{path}: schema {ascii(content.get('schema_version'))[:40]}, this version knows {_SCHEMA}; use the "
            "version that wrote it, or search again"
        )
    members = content.get("members")
    if not isinstance(members, list) or not 0 < len(members) <= _MOST or not all(map(_is_member, members)):
        raise InputError(f"{path}: its members are no list of names and models; search again")
    return members


def _is_member(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("model"), dict)


# The picture of a Pareto front: what the goal gains against each of its prices ----------------------------------------


_WORDS = {
    "p99_wait": "99 % quantile of the wait",
    "max_wait": "longest wait",
    "area_weighted_wait": "area-weighted wait",
}
_TRIED, _FRONT, _OUT, _PUBLISHED = "#b0b0b0", COLOURS[0], COLOURS[1], "black"
_FAR = 20.0  # times the baseline's: what lies beyond is not drawn


def draw_front(trained: Trained) -> Figure:
    """Draw goal against price, as ratios to the baseline, in a panel for each price.

    Parameters
    ----------
    trained : Trained
        A run on replicas.

    Returns
    -------
    Figure
    """
    figure = new_figure(11.0, 4.4)
    panels = figure.subplots(1, len(COSTS), sharex=True)
    for number, (axes, cost) in enumerate(zip(panels, COSTS, strict=True), 1):
        _panel(axes, trained, number)
        axes.set_title(_WORDS[cost], fontsize=10)
        axes.set_xlabel(trained.task.options.goal, fontsize=9)
    panels[0].set_ylabel(f"ratio to {trained.task.baseline.name}", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, fontsize=8)
    return figure


def _panel(axes: Axes, trained: Trained, number: int) -> None:
    """Draw one price: the place of its ratio in a member's."""
    drawn = [one for one in trained.members if _is_near(one, number)]
    learned = [one for one in drawn if one.ranked.learned]
    groups = (
        ("tried", _TRIED, 10, [one for one in learned if not one.on_front]),
        ("front, within the limits", _FRONT, 26, [one for one in learned if one.on_front and not one.ranked.out]),
        ("front, beyond them", _OUT, 26, [one for one in learned if one.on_front and one.ranked.out]),
    )
    for label, colour, size, members in groups:
        points = [(one.ratios[0], one.ratios[number]) for one in members]
        axes.scatter(*_columns(points), s=size, color=colour, label=label, zorder=3 if size > 10 else 2)
    chosen = [one for one in drawn if one.ranked.candidate is trained.chosen.winner]
    points = [(one.ratios[0], one.ratios[number]) for one in chosen]
    axes.scatter(
        *_columns(points), s=130, facecolors="none", edgecolors=COLOURS[2], linewidths=1.8, label="choice", zorder=4
    )
    published = [one for one in drawn if not one.ranked.learned]
    points = [(one.ratios[0], one.ratios[number]) for one in published]
    axes.scatter(*_columns(points), s=30, color=_PUBLISHED, marker="x", label="published", zorder=4)
    for one in published:
        # The baseline stands where the lines cross, and in the label of the axis.
        if one.name != trained.task.baseline.name:
            _write(axes, shortened(one.name, 16), one, number)
    for place, one in enumerate(trained.front, 1):
        if one in drawn and one.ranked.learned:
            _write(axes, str(place), one, number)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8)
    bound = _bound(trained, number)
    if bound is not None:
        axes.axhline(bound, color=_OUT, linewidth=1, linestyle="--", label="limit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(axis.get_major_formatter())
        plain_numbers(axis, minor=False)
        _ticks(axis)
    axes.tick_params(labelsize=8)
    axes.margins(0.12)


def _ticks(axis: object) -> None:
    """Put a few round numbers on an axis, however little of a decade it shows."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))  # type: ignore[attr-defined]
    axis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]


def _write(axes: Axes, text: str, one: Member, number: int) -> None:
    place = one.ratios[0], one.ratios[number]
    axes.annotate(text, place, xytext=(4, 3), textcoords="offset points", fontsize=7)


def _is_near(one: Member, number: int) -> bool:
    values = one.ratios[0], one.ratios[number]
    return all(math.isfinite(value) and 1 / _FAR < value < _FAR for value in values)


def _columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _bound(trained: Trained, number: int) -> float | None:
    """Return the most that a price may be, as a ratio to the baseline's; None without a limit or band."""
    cost = COSTS[number - 1]
    base: RankedCandidate = next(
        one.ranked for one in trained.members if one.name == trained.task.baseline.name and not one.ranked.learned
    )
    value = base.means[MEASURED.index(cost)]
    for band in trained.task.options.guard_bands:
        if band.guard == cost and value:
            bound = band.bound(value) / value
            return bound if bound < _FAR else None
    return None
