"""From a policy to what a program or a scheduler loads; one module a target."""

from __future__ import annotations

from policyfactory.export import c, latex, lua, model_json, pbs, python
from policyfactory.export.prepare import prepare
from policyfactory.export.targets import Target

__all__ = ["TARGETS", "Target", "prepare"]

TARGETS: dict[str, Target] = {module.TARGET.name: module.TARGET for module in (python, c, lua, latex, model_json, pbs)}
