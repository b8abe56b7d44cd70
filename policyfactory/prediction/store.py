"""Files of trained predictors: forests as JSON, which may come from a stranger.

Sizes are bounded and every number is checked before it is used: a child stands behind its parent and inside its tree,
so that no path through a tree is endless or leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, model_validator

from policyfactory.core.errors import ModelFileError, UsageError
from policyfactory.core.files import atomic_write, dump_json
from policyfactory.core.inputs import read_bytes
from policyfactory.core.text import plain
from policyfactory.core.version import __version__
from policyfactory.engine.past import FEATURES, LEAF, Forest
from policyfactory.policy.network import PolicyFile, decode
from policyfactory.prediction.features import FEATURE_SET, NAMES
from policyfactory.prediction.training import Forests

PREDICTOR_KIND = "policyfactory-predictor"
PREDICTOR_SCHEMA = 1
LARGEST_FILE = 32 << 20  # bytes
MOST_TREES, MOST_NODES = 2_000, 1 << 18  # of a forest
_FORESTS = ("shortness", "share", "tail")
_WHOLE, _TABLE = ("feature", "left", "right", "roots"), ("feature", "threshold", "left", "right")


def forests_to_json(forests: Forests, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model as plain JSON values.

    Parameters
    ----------
    forests : Forests
        A trained model.
    provenance : mapping
        JSON values: command, seed, digests of inputs, versions, settings.
    """
    return {
        "kind": PREDICTOR_KIND,
        "schema_version": PREDICTOR_SCHEMA,
        "written_by": f"policyfactory {__version__}",
        "feature_set": FEATURE_SET,
        "features": list(NAMES),
        "predicts": {
            "shortness": "ln E[10 / max(run time, 10 s)]",
            "share": "ln E[run time / request]",
            "tail": "ninth decile of run time / request; no trees where it was not wanted",
        },
        "jobs": forests.jobs,
        "forests": {name: plain(getattr(forests, name)._asdict()) for name in _FORESTS},
        "provenance": plain(dict(provenance)),
    }


def save_forests(forests: Forests, path: Path | str, *, provenance: Mapping[str, Any]) -> None:
    """Write a trained model as JSON, whole or not at all.

    Parameters
    ----------
    forests : Forests
        The model.
    path : Path or str
        Where to.
    provenance : mapping
        As of `forests_to_json`.

    Raises
    ------
    UsageError
        If nothing was trained, or it is larger than what is read.
    OutputError
        If the file cannot be written.
    """
    if not len(forests.shortness.roots):
        raise UsageError(f"{path}: the predictor was not trained, so there is nothing to keep; give it a longer log")
    most = max(len(getattr(forests, name).feature) for name in _FORESTS)
    text = dump_json(forests_to_json(forests, provenance)) if most <= MOST_NODES else ""
    if most > MOST_NODES or len(text) > LARGEST_FILE:
        raise UsageError(
            f"{path}: a forest of {most:,} nodes is larger than what is read ({MOST_NODES:,} nodes, a file of "
            f"{LARGEST_FILE:,} bytes); train fewer or smaller trees"
        )
    atomic_write(Path(path), text)


def load_forests(path: Path | str) -> Forests:
    """Read a trained model.

    Raises
    ------
    InputError
        If there is no such file, or it is larger than 32 MiB.
    ModelFileError
        If it is no model, is damaged, or is of a newer schema or of other features than this version has.
    """
    return forests_from_json(decode(read_bytes(Path(path), limit=LARGEST_FILE), str(path)), str(path))


def digest_of_jobs(path: Path | str) -> str:
    """Return the digest of the jobs that a model was trained on, as its file says; empty if it does not.

    Raises
    ------
    InputError, ModelFileError
        As of `load_forests`.
    """
    value = decode(read_bytes(Path(path), limit=LARGEST_FILE), str(path))
    provenance = value.get("provenance") if isinstance(value, dict) else None
    digest = provenance.get("workload_sha256") if isinstance(provenance, dict) else None
    return digest if isinstance(digest, str) else ""


def forests_from_json(value: Any, source: str) -> Forests:
    """Return the model of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    content = _PredictorFile.read(value, source)
    if (content.feature_set, content.features) != (FEATURE_SET, list(NAMES)):
        raise ModelFileError(
            f"{source}: was trained on feature set {content.feature_set} of {len(content.features)} features, "
            f"policyfactory {__version__} has set {FEATURE_SET} of {len(NAMES)}; train it again with policyfactory "
            "predict"
        )
    forests = content.forests
    return Forests(forests.shortness.forest(), forests.share.forest(), forests.tail.forest(), content.jobs)


_Node = Annotated[int, Field(ge=0, le=MOST_NODES)]


class _ForestRecord(BaseModel, strict=True, extra="forbid"):
    """A forest whose numbers can be followed without end or error."""

    feature: list[Annotated[int, Field(ge=LEAF, lt=FEATURES)]] = Field(max_length=MOST_NODES)
    threshold: list[FiniteFloat]
    left: list[_Node]
    right: list[_Node]
    roots: list[_Node] = Field(max_length=MOST_TREES)
    base: FiniteFloat

    def forest(self) -> Forest:
        whole = {name: np.array(getattr(self, name), dtype=np.int64) for name in _WHOLE}
        return Forest(**whole, threshold=np.array(self.threshold, dtype=np.float64), base=float(self.base))

    @model_validator(mode="after")
    def _can_be_followed(self) -> Self:
        nodes = len(self.feature)
        if {len(self.threshold), len(self.left), len(self.right)} != {nodes}:
            raise ValueError(f"{', '.join(_TABLE)} need one number each for a node")
        forest = self.forest()
        starts = np.append(forest.roots, nodes)
        if (starts[:1] != 0).any() or (np.diff(starts) < 1).any():
            raise ValueError(f"trees follow one another from node 0 within {nodes:,} nodes")
        is_leaf, end = forest.feature == LEAF, np.repeat(starts[1:], np.diff(starts))
        for name, child in (("left", forest.left), ("right", forest.right)):
            right = np.where(is_leaf, child == 0, (child > np.arange(nodes)) & (child < end))
            if not right.all():
                node = int(np.argmin(right))
                raise ValueError(
                    f"{name}[{node}] is {child[node]}; a later node of its tree, or 0 at a leaf, is expected"
                )
        return self


class _ForestRecords(BaseModel, strict=True, extra="forbid"):
    shortness: _ForestRecord
    share: _ForestRecord
    tail: _ForestRecord

    @model_validator(mode="after")
    def _is_trained(self) -> Self:
        if not (self.shortness.roots and self.share.roots):
            raise ValueError(f"shortness and share have 1 to {MOST_TREES:,} trees each")
        return self


class _PredictorFile(PolicyFile):
    what = "predictor"
    made_by = "predict"
    newest = PREDICTOR_SCHEMA

    kind: Literal["policyfactory-predictor"]
    feature_set: Annotated[int, Field(ge=1)]
    features: list[Annotated[str, Field(max_length=100)]] = Field(max_length=1000)
    jobs: Annotated[int, Field(ge=1, le=1 << 40)]
    forests: _ForestRecords
    predicts: Any = None  # for readers of the file only
