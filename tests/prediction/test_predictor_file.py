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
from refusals import refusal, refused


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
        (("kind",), "policyfactory-model", "policyfactory-predictor policyfactory-model"),
        (("schema_version",), 0, "schema_version 0"),
        (("schema_version",), True, "schema_version field"),
        (("schema_version",), 2, "2 1"),
        (("feature_set",), FEATURE_SET + 1, "2 57 1"),
        (("features",), [*NAMES[1:], NAMES[0]], "1 policyfactory"),
        (("features",), list(NAMES[:5]), "1 5"),
        (("features",), [3], "0 3"),
        (("jobs",), 0, "0 field"),
        (("jobs",), 1.5, "1.5 field"),
        (("forests",), [], "field forests"),
        (("forests", "more"), {}, "forests.more field"),
        (("forests", "share"), None, "forests.share field"),
        (("forests", "share", "more"), 1, "forests.share.more 1"),
        (("forests", "share", "base"), "0", "forests.share.base number"),
        (("forests", "share", "base"), 10**400, "forests.share.base number"),
        (("forests", "share", "roots"), [], "0 follow"),
        (("forests", "share"), NONE, "1 2,000"),
        (("forests", "share", "roots"), list(range(2001)), "forests.share.roots 2000"),
        (("forests", "share", "roots"), [1, 3], "0 follow"),
        (("forests", "share", "roots"), [0, 0], "0 follow"),
        (("forests", "share", "roots"), [0, 8], "0 8"),
        (("forests", "share", "roots"), [0, -3], "forests.share.roots 1 -3"),
        (("forests", "tail", "feature"), [-1], "forests.tail number"),
        (("forests", "share", "feature"), [], "forests.share number"),
        (("forests", "share", "feature"), {}, "forests.share.feature field"),
        (("forests", "share", "feature"), [0] * (MOST_NODES + 1), "share.feature 262144"),
        (("forests", "share", "feature", 0), -2, "share.feature 0 -2"),
        (("forests", "share", "feature", 4), FEATURES, "share.feature 4 57"),
        (("forests", "share", "feature", 4), True, "share.feature 4"),
        (("forests", "share", "feature", 4), 1.0, "share.feature 4"),
        (("forests", "share", "left", 0), 0, "forests.share 0"),
        (("forests", "share", "left", 4), 3, "4 3"),
        (("forests", "share", "left", 4), -1, "share.left 4 -1"),
        (("forests", "share", "right", 0), 3, "0 3"),
        (("forests", "share", "right", 3), 8, "3 8"),
        (("forests", "share", "right", 1), 2, "1 2 0"),
        (("forests", "share", "right", 1), 10**30, "share.right 1"),
        (("forests", "share", "threshold", 1), None, "share.threshold 1"),
        (("forests", "share", "threshold", 1), 10**400, "share.threshold 1"),
        (("provenance",), [], "field provenance"),
        (("surprise",), 1, "1 surprise"),
    ],
)
def test_wrong_fields(place: tuple[str | int, ...], value: Any, says: str) -> None:
    whole = stump()
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    refused(ModelFileError, f"mine.json {says}", forests_from_json, whole, "mine.json")


@pytest.mark.parametrize("field", ["feature_set", "features", "jobs", "forests"])
def test_missing_fields(field: str) -> None:
    whole = stump()
    del whole[field]
    refused(ModelFileError, f"mine.json {field} missing", forests_from_json, whole, "mine.json")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_file_cut_in_half(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.json"
    save_forests(trained()[0], path, provenance={})
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    refused(ModelFileError, "JSON middle", load_forests, path)


def test_no_predictor_at_all(tmp_path: Path) -> None:
    refused(InputError, "none.json no such file", load_forests, tmp_path / "none.json")
    path = tmp_path / "list.json"
    for text, says in (("[1]", "list.json JSON object"), ('{"jobs": NaN}', "list.json NaN")):
        path.write_text(text)
        refused(ModelFileError, says, load_forests, path)
    path.write_bytes(b"\x80\x04pickle")
    refused(ModelFileError, "list.json UTF-8 text 1", load_forests, path)
    path.write_bytes(b" " * (LARGEST_FILE + 1))
    refused(InputError, "list.json 33,554,432 read", load_forests, path)


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    refused(UsageError, "model.json trained", save_forests, Forests(), path, provenance={})
    forest = trained()[0].share
    large = forest._replace(feature=np.zeros(MOST_NODES + 1, dtype=np.int64))
    with refusal(UsageError, "model.json train smaller 262,145"):
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
