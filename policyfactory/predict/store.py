"""Files of trained predictors: forests as JSON, which may come from a stranger.

Sizes are bounded and every number is checked before it is used: a child stands behind its parent and inside its tree,
so that no path through a tree is endless or leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import ModelFileError, UsageError
from policyfactory.core.files import atomic_write, dump_json
from policyfactory.core.inputs import read_bytes
from policyfactory.core.options import Int64Array
from policyfactory.core.version import __version__
from policyfactory.engine.past import FEATURES, LEAF, Forest
from policyfactory.policy.network import (
    Check,
    Schema,
    decode,
    is_number,
    is_text,
    is_whole,
    kind_word,
    plain,
    shown,
)
from policyfactory.predict.features import FEATURE_SET, NAMES
from policyfactory.predict.training import Forests

__all__ = [
    "LARGEST_FILE", "MOST_NODES", "digest_of_jobs",
    "forests_from_json", "forests_to_json", "load_forests", "save_forests",
]  # fmt: skip

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
        "forests": {name: _forest_to_json(getattr(forests, name)) for name in _FORESTS},
        "provenance": plain(dict(provenance)),
    }


def _forest_to_json(forest: Forest) -> dict[str, Any]:
    return {name: plain(values) for name, values in forest._asdict().items()}


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


def forests_from_json(value: Any, place: str) -> Forests:
    """Return the model of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    if not isinstance(value, dict):
        raise ModelFileError(f"{place}: a predictor's file is a JSON object, this one is a {kind_word(value)}")
    _SCHEMA.check(value, place)
    if value["feature_set"] != FEATURE_SET or value["features"] != list(NAMES):
        raise ModelFileError(
            f"{place}: was trained on feature set {shown(value['feature_set'])} of {len(value['features'])} features, "
            f"policyfactory {__version__} has set {FEATURE_SET} of {len(NAMES)}; train it again with policyfactory "
            "predict"
        )
    forests = value["forests"]
    made = {name: _forest(forests[name], f"{place}: field forests.{name}", name) for name in _FORESTS}
    return Forests(**made, jobs=value["jobs"])


def _forest(value: Any, place: str, name: str) -> Forest:
    """Return a forest whose numbers can be followed without end or error."""
    if not isinstance(value, dict) or set(value) != set(Forest._fields):
        raise ModelFileError(f"{place}: expected an object of {', '.join(Forest._fields)}, got {shown(value)}")
    for column in (*_WHOLE, "threshold"):
        _check_list(value[column], f"{place}.{column}", whole=column in _WHOLE)
    if not is_number(value["base"]):
        raise ModelFileError(f"{place}.base: expected a finite number, got {shown(value['base'])}")
    trees, lengths = len(value["roots"]), [len(value[column]) for column in _TABLE]
    if trees > MOST_TREES or (trees == 0 and name != "tail"):
        raise ModelFileError(f"{place}.roots: expected 1 to {MOST_TREES:,} trees, got {trees:,}")
    if len(set(lengths)) > 1:
        raise ModelFileError(
            f"{place}: {', '.join(_TABLE)} have {', '.join(map(str, lengths))} numbers; each node has one of each"
        )
    whole = {column: np.array(value[column], dtype=np.int64) for column in _WHOLE}
    forest = Forest(**whole, threshold=np.array(value["threshold"], dtype=np.float64), base=float(value["base"]))
    _check_trees(forest, place)
    return forest


def _check_list(values: Any, place: str, *, whole: bool) -> None:
    if not isinstance(values, list) or len(values) > MOST_NODES:
        raise ModelFileError(f"{place}: expected a list of at most {MOST_NODES:,} numbers, got {shown(values)}")
    for at, value in enumerate(values):
        # Whole numbers have to fit an array; places are checked against the tree afterwards.
        if not (is_whole(value) and abs(value) <= MOST_NODES if whole else is_number(value)):
            kind = f"a whole number up to {MOST_NODES:,}" if whole else "a finite number"
            raise ModelFileError(f"{place}[{at}]: expected {kind}, got {shown(value)}")


def _check_trees(forest: Forest, place: str) -> None:
    nodes, roots = len(forest.feature), forest.roots
    starts = np.append(roots, nodes)
    if (starts[:1] != 0).any() or (np.diff(starts) < 1).any():
        raise ModelFileError(
            f"{place}.roots: trees follow one another from node 0 within {nodes:,} nodes; the file is damaged"
        )
    is_leaf = forest.feature == LEAF
    end = np.repeat(starts[1:], np.diff(starts))
    _check_nodes(
        (forest.feature >= LEAF) & (forest.feature < FEATURES), forest.feature, f"{place}.feature", "a feature"
    )
    for name, child in (("left", forest.left), ("right", forest.right)):
        right = np.where(is_leaf, child == 0, (child > np.arange(nodes)) & (child < end))
        _check_nodes(right, child, f"{place}.{name}", "a later node of its tree, or 0 at a leaf")


def _check_nodes(right: Any, values: Int64Array, place: str, expected: str) -> None:
    if not right.all():
        at = int(np.argmin(right))
        raise ModelFileError(f"{place}[{at}]: expected {expected}, got {values[at]}; the file is damaged")


_FIELDS: dict[str, Check] = {
    "kind": (lambda value: value == PREDICTOR_KIND, f"{PREDICTOR_KIND!r} (is it a file of policyfactory predict?)"),
    "schema_version": (lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "feature_set": (lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "features": (
        lambda value: isinstance(value, list) and len(value) <= 1000 and all(is_text(name, 100) for name in value),
        "a list of at most 1,000 names",
    ),
    "jobs": (lambda value: is_whole(value) and 1 <= value <= 1 << 40, "the number of jobs it was trained on"),
    "forests": (
        lambda value: isinstance(value, dict) and set(value) == set(_FORESTS),
        f"an object of {', '.join(_FORESTS)}",
    ),
    "provenance": (lambda value: isinstance(value, dict), "an object"),
}
_SCHEMA = Schema(
    "predictor",
    PREDICTOR_SCHEMA,
    _FIELDS,
    ("kind", "schema_version", "feature_set", "features", "jobs", "forests"),
    frozenset({"predicts", "written_by"}),
)
