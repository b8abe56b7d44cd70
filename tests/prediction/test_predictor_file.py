"""Files of predictors: what is written is read to the bit; a stranger's file can not loop or be read outside."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfactory.core.errors import InputError, ModelFileError, UsageError
from policyfactory.core.jit import kernel
from policyfactory.engine.past import FEATURES, Forest, forest_sum
from policyfactory.prediction.features import FEATURE_SET, NAMES
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.store import (
    LARGEST_FILE,
    MOST_NODES,
    forests_from_json,
    forests_to_json,
    load_forests,
    save_forests,
)
from policyfactory.prediction.training import Forests, train_forests


@kernel
def sums(forest: Forest, rows: np.ndarray) -> np.ndarray:
    values = np.empty(len(rows))
    for row in range(len(rows)):
        values[row] = forest_sum(forest, rows[row])
    return values


@functools.cache
def trained(*, tail: bool = True) -> tuple[Forests, np.ndarray]:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(800, FEATURES))
    outcome = np.zeros((800, 4))
    outcome[:, 1:3] = 1 / (1 + np.exp(-features[:, :2] - features[:, 3:4]))
    return train_forests(features, outcome, PredictorOptions(trees=6), tail=tail), features


NONE: dict[str, Any] = {"feature": [], "threshold": [], "left": [], "right": [], "roots": [], "base": 0}


def stump() -> dict[str, Any]:
    forest = {
        "feature": [0, -1, -1, 2, 1, -1, -1, -1],
        "threshold": [0.5, 1, 2.0, -1e-3, 0.25, -1.0, 0.1, 3],
        "left": [1, 0, 0, 4, 5, 0, 0, 0],
        "right": [2, 0, 0, 7, 6, 0, 0, 0],
        "roots": [0, 3],
        "base": -0.5,
    }
    return {
        "kind": "policyfactory-predictor",
        "schema_version": 1,
        "feature_set": FEATURE_SET,
        "features": list(NAMES),
        "jobs": 500,
        "forests": {"shortness": forest, "share": copy.deepcopy(forest), "tail": copy.deepcopy(NONE)},
    }


@pytest.mark.parametrize("tail", [True, False])
def test_round_trip_is_exact(tmp_path: Path, tail: bool) -> None:
    forests, features = trained(tail=tail)
    save_forests(forests, tmp_path / "one.json", provenance={"command": "policyfactory predict", "seed": np.int64(0)})
    read = load_forests(tmp_path / "one.json")
    assert read.jobs == 800
    for name in ("shortness", "share", "tail"):
        one, other = getattr(forests, name), getattr(read, name)
        for first, second in zip(one, other, strict=True):
            assert np.asarray(first).tobytes() == np.asarray(second).tobytes()
            assert np.asarray(first).dtype == np.asarray(second).dtype
        assert sums(one, features).tobytes() == sums(other, features).tobytes()
    save_forests(read, tmp_path / "two.json", provenance={"command": "policyfactory predict", "seed": 0})
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_the_least_that_a_file_has() -> None:
    read = forests_from_json(stump(), "mine.json")
    assert len(read.tail.roots) == 0
    rows = np.zeros((1, FEATURES))
    assert sums(read.shortness, rows)[0] == -0.5 + 1 + 3


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("kind",), "policyfactory-model", "field kind: .*'policyfactory-predictor'.* got 'policyfactory-model'"),
        (("schema_version",), 0, "field schema_version: .* got 0"),
        (("schema_version",), True, "field schema_version: .* got True"),
        (("schema_version",), 2, "predictor schema 2 .* reads schemas up to 1; install a newer policyfactory"),
        (("feature_set",), FEATURE_SET + 1, r"feature set 2 of 57 features, .* has set 1 of 57; train it again"),
        (("features",), [*NAMES[1:], NAMES[0]], "feature set 1 .* train it again with policyfactory predict"),
        (("features",), list(NAMES[:5]), "feature set 1 of 5 features"),
        (("features",), [3], r"field features\[0\]: .* got 3"),
        (("jobs",), 0, "field jobs: .* got 0"),
        (("jobs",), 1.5, "field jobs: .* got 1.5"),
        (("forests",), [], "field forests: .* got "),
        (("forests", "more"), {}, "field forests.more: "),
        (("forests", "share"), None, "field forests.share: .* got None"),
        (("forests", "share", "more"), 1, "field forests.share.more: .* got 1"),
        (("forests", "share", "base"), "0", "field forests.share.base: .* number"),
        (("forests", "share", "base"), 10**400, "field forests.share.base: .* number"),
        (("forests", "share", "roots"), [], "trees follow one another from node 0"),
        (("forests", "share"), NONE, "field forests: shortness and share have 1 to 2,000 trees"),
        (("forests", "share", "roots"), list(range(2001)), "field forests.share.roots: .* at most 2000 items"),
        (("forests", "share", "roots"), [1, 3], "trees follow one another from node 0"),
        (("forests", "share", "roots"), [0, 0], "trees follow one another from node 0"),
        (("forests", "share", "roots"), [0, 8], "trees follow one another from node 0 within 8 nodes"),
        (("forests", "share", "roots"), [0, -3], r"field forests.share.roots\[1\]: .* got -3"),
        (("forests", "tail", "feature"), [-1], "field forests.tail: .* need one number each for a node"),
        (("forests", "share", "feature"), [], "field forests.share: .* need one number each for a node"),
        (("forests", "share", "feature"), {}, "field forests.share.feature: .* list"),
        (("forests", "share", "feature"), [0] * (MOST_NODES + 1), "share.feature: .* at most 262144 items"),
        (("forests", "share", "feature", 0), -2, r"share.feature\[0\]: .* got -2"),
        (("forests", "share", "feature", 4), FEATURES, r"share.feature\[4\]: .* got 57"),
        (("forests", "share", "feature", 4), True, r"share.feature\[4\]: .* integer"),
        (("forests", "share", "feature", 4), 1.0, r"share.feature\[4\]: .* integer"),
        (("forests", "share", "left", 0), 0, r"forests.share: left\[0\] is 0; a later node of its tree, or 0"),
        (("forests", "share", "left", 4), 3, r"left\[4\] is 3; a later node of its tree"),
        (("forests", "share", "left", 4), -1, r"share.left\[4\]: .* got -1"),
        (("forests", "share", "right", 0), 3, r"right\[0\] is 3; a later node of its tree"),
        (("forests", "share", "right", 3), 8, r"right\[3\] is 8; a later node of its tree"),
        (("forests", "share", "right", 1), 2, r"right\[1\] is 2; .* or 0 at a leaf"),
        (("forests", "share", "right", 1), 10**30, r"share.right\[1\]: "),
        (("forests", "share", "threshold", 1), None, r"share.threshold\[1\]: .* number, got None"),
        (("forests", "share", "threshold", 1), 10**400, r"share.threshold\[1\]: .* number"),
        (("provenance",), [], "field provenance: "),
        (("surprise",), 1, "field surprise: .* got 1"),
    ],
)
def test_wrong_fields(place: tuple[str | int, ...], value: Any, says: str) -> None:
    whole = stump()
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(ModelFileError, match=f"mine.json: .*{says}"):
        forests_from_json(whole, "mine.json")


@pytest.mark.parametrize("field", ["feature_set", "features", "jobs", "forests"])
def test_missing_fields(field: str) -> None:
    whole = stump()
    del whole[field]
    with pytest.raises(ModelFileError, match=f"field {field}: Field required"):
        forests_from_json(whole, "mine.json")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_file_cut_in_half(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.json"
    save_forests(trained()[0], path, provenance={})
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelFileError, match=r"is not JSON: it ends in the middle .* copy the whole file"):
        load_forests(path)


def test_no_predictor_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_forests(tmp_path / "none.json")
    path = tmp_path / "list.json"
    for text, says in (("[1]", "a predictor's file is a JSON object, this one is a list"), ('{"jobs": NaN}', "NaN")):
        path.write_text(text)
        with pytest.raises(ModelFileError, match=says):
            load_forests(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(ModelFileError, match="is not UTF-8 text"):
        load_forests(path)
    path.write_bytes(b" " * (LARGEST_FILE + 1))
    with pytest.raises(InputError, match="more than the 33,554,432 that are read"):
        load_forests(path)


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    with pytest.raises(UsageError, match="was not trained"):
        save_forests(Forests(), path, provenance={})
    forest = trained()[0].share
    large = forest._replace(feature=np.zeros(MOST_NODES + 1, dtype=np.int64))
    with pytest.raises(UsageError, match="train fewer or smaller trees"):
        save_forests(dataclasses.replace(trained()[0], share=large), path, provenance={})
    assert not path.exists()


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["feature", "roots", "p"]), part),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(forests_to_json(Forests(), {}))), JUNK)
def test_a_strangers_field_is_read_or_refused(field: str, value: Any) -> None:
    whole = stump() | {field: value}
    with contextlib.suppress(ModelFileError):
        forests_from_json(json.loads(json.dumps(whole)), "mine.json")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["feature", "left", "right", "roots", "threshold"]),
    st.integers(0, 7),
    st.integers(-3, 10) | st.floats(allow_nan=False),
)
def test_what_is_read_can_be_followed(column: str, at: int, value: float) -> None:
    whole = stump()
    numbers = whole["forests"]["share"][column]
    numbers[at % len(numbers)] = value
    try:
        read = forests_from_json(whole, "mine.json")
    except ModelFileError:
        return
    for tree, root in enumerate(read.share.roots):
        end = [*read.share.roots, len(read.share.feature)][tree + 1]
        reached = [root]
        while reached:
            node = reached.pop()
            assert root <= node < end
            if read.share.feature[node] != -1:
                children = (read.share.left[node], read.share.right[node])
                assert min(children) > node
                reached += children
