"""A policy as a model file, which every command reads where it takes a policy."""

from __future__ import annotations

from policyfactory.core.artefact import dump_json
from policyfactory.export.targets import Target
from policyfactory.policy.store import Model, model_to_json

__all__ = ["TARGET", "render"]


def render(model: Model) -> str:
    """Return the model as JSON text, as `policyfactory.policy.store.save_model` writes it."""
    return dump_json(model_to_json(model))


TARGET = Target("json", ".json", "model file of policyfactory (JSON)", render)
