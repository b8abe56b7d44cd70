"""A policy as a model file, which every command reads where it takes a policy."""

from __future__ import annotations

from policyfactory.core.artefact import dump_json
from policyfactory.export.targets import Export, File, Site, Target, identifier
from policyfactory.policy.store import Model, model_to_json

__all__ = ["TARGET", "make", "render"]


def render(model: Model) -> str:
    """Return the model as JSON text, as `policyfactory.policy.store.save_model` writes it."""
    return dump_json(model_to_json(model))


def make(model: Model, site: Site) -> Export:  # noqa: ARG001
    """Return the file; a model is the same at every site."""
    return Export((File(f"{identifier(model.policy.name)}.json", render(model)),))


TARGET = Target("json", "model file of policyfactory (JSON)", make)
