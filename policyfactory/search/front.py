"""The file of a Pareto front, and how another member of it becomes the policy of the folder."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.inputs import read_bytes
from policyfactory.core.outputs import exclusive, refuse_earlier
from policyfactory.policy.file_fields import decode
from policyfactory.policy.store import Model, model_from_json, model_to_json, save_model
from policyfactory.search.pareto import COSTS, Member
from policyfactory.search.result import Trained

__all__ = ["FRONT", "front_json", "pick"]

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
