"""Model files: what is written is read, and what a stranger writes is checked."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory import __version__
from policyfactory.core.errors import InputError, ModelFileError, OutputError, PolicyfactoryError
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import (
    MODEL_SCHEMA,
    FittedNumber,
    Model,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)
from refusals import refused
from support import examples

MODEL = Model(
    Policy("Über-F1", "log10(p)*q + 1043*log10(r)", "fitted here", "own data", Epoch("fixed", 1_767_225_600), 72_000.0),
    (FittedNumber("c1", "log10(p)*q", 8.25e-6, 1.5e-8, "1/processors"), FittedNumber("c2", "log10(r)", 0.0086)),
    {"mae": np.float64(0.0026), "vif": np.array([1.5, math.inf]), "warnings": ["none"], "tuples": np.int64(441)},
    {"command": "policyfactory fit x.csv", "seed": 7, "inputs": {"x.csv": "ab" * 32}},
)


def test_round_trip(tmp_path: Path) -> None:
    save_model(MODEL, tmp_path / "m.json")
    result = load_model(tmp_path / "m.json")
    assert result.policy == MODEL.policy
    assert result.coefficients[0] == MODEL.coefficients[0]
    assert math.isnan(result.coefficients[1].stderr)
    assert result.diagnostics == {"mae": 0.0026, "vif": [1.5, None], "warnings": ["none"], "tuples": 441}
    assert result.provenance == MODEL.provenance
    # The same model gives the same bytes.
    save_model(result, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_what_the_file_holds() -> None:
    value = model_to_json(MODEL)
    assert value["kind"] == "policyfactory-model"
    assert value["schema_version"] == MODEL_SCHEMA
    assert value["formula"] == "log10(p)*q + 1043*log10(r)"
    assert value["latex"] == r"\log_{10}\left(p\right) \, q + 1043 \, \log_{10}\left(r\right)"
    assert sorted(value["units"]) == ["p", "q", "r"]
    assert value["epoch"] == {"rule": "fixed", "unix_time": 1_767_225_600}
    assert value["threshold_s"] == 72_000
    assert model_to_json(Model(Policy("x", "p")))["threshold_s"] is None


def test_an_order_of_its_own_for_backfilling_is_kept(tmp_path: Path) -> None:
    assert "backfill_formula" not in model_to_json(MODEL)
    model = Model(Policy("PAIR", "p*q", backfill_formula="-ln(s)"))
    save_model(model, tmp_path / "pair.json")
    assert load_model(tmp_path / "pair.json").policy == model.policy
    assert pickle.loads(pickle.dumps(model.policy)) == model.policy
    assert model.policy.needs_predictions
    assert not Policy("PAIR", "p*q", backfill_formula="p").needs_predictions


def test_the_least_that_a_model_needs() -> None:
    value = {"kind": "policyfactory-model", "schema_version": 1, "name": "mine", "formula": "p*q"}
    assert model_from_json(value, "mine.json") == Model(Policy("mine", "p*q"))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("kind", "other", "policyfactory-model"),
        ("kind", None, "policyfactory-model"),
        ("schema_version", 0, "1 number"),
        ("schema_version", "1", "1 number"),
        ("schema_version", True, "1 number"),
        ("name", 3, "text"),
        ("name", "x" * 101, "text"),
        ("name", "a\nb", "printable characters"),
        ("formula", None, "text"),
        ("formula", "p*" * 3000, "4000 most"),
        ("formula", "import os", "variable"),
        ("formula", "17", "same jobs"),
        ("description", ["x"], "text"),
        ("source", "a\x00", "printable"),
        ("epoch", "fixed", "rule"),
        ("epoch", {"rule": "noon"}, "rule"),
        ("epoch", {"rule": "fixed", "unix_time": 1.5}, "rule"),
        ("epoch", {"rule": "fixed", "unix_time": 10**15}, "rule"),
        ("epoch", {"rule": "fixed", "unix_time": None}, "fixed time"),
        ("epoch", {"rule": "window-start", "more": 1}, "rule"),
        ("threshold_s", -1, "0 seconds"),
        ("threshold_s", "1h", "0 seconds"),
        ("threshold_s", True, "0 seconds"),
        ("threshold_s", 10**400, "0 seconds"),
        ("backfill_formula", "1 +", "formula"),
        ("backfill_formula", "17", "same jobs"),
        ("backfill_formula", 3, "text"),
        ("coefficients", {}, "list"),
        ("coefficients", [1], "objects"),
        ("coefficients", [{"name": "c", "term": "p", "unit": "1", "value": 1}], "objects"),
        (
            "coefficients",
            [{"name": "c", "term": "p", "unit": "1", "value": "1", "stderr": None}],
            "finite numbers",
        ),
        ("coefficients", [{"name": "\n", "term": "p", "unit": "1", "value": 1, "stderr": None}], "objects"),
        ("coefficients", [0] * 1001, "1000 most"),
        ("diagnostics", [], "object"),
        ("provenance", "me", "object"),
        ("exec", "rm -rf", "unknown"),
    ],
)
def test_every_field_is_checked(field: str, value: Any, says: str) -> None:
    content = model_to_json(MODEL)
    content[field] = value
    assert refused(ModelFileError, f"{field} {says}", model_from_json, content, "m.json").startswith("m.json: ")


@pytest.mark.parametrize("field", ["name", "formula"])
def test_missing_fields_are_named(field: str) -> None:
    content = model_to_json(MODEL)
    del content[field]
    refused(ModelFileError, f"m.json {field} missing", model_from_json, content, "m.json")


def test_a_key_that_is_no_text_is_refused() -> None:
    content = model_to_json(MODEL) | {"\udc00": 1}
    refused(ModelFileError, "m.json key udc00", model_from_json, content, "m.json")


def test_a_newer_schema_names_both_versions_and_the_cure() -> None:
    content = {**model_to_json(MODEL), "schema_version": 9, "written_by": "policyfactory 7.1", "shape": {}}
    refused(ModelFileError, f"m.json 9 7.1 {__version__} {MODEL_SCHEMA} install", model_from_json, content, "m.json")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "m.json:1 JSON"),
        (b"{\n\n", "m.json:3 JSON 3"),
        (b"\xff\xfe", "m.json UTF-8 1"),
        (b"[]", "m.json one list"),
        (b"3", "m.json one number"),
        (b"null", "m.json one null"),
        (b'{"a": NaN}', "m.json NaN JSON"),
        (b'{"a": 1, "a": 2}', "m.json given twice"),
        (b"[" * 200_000, "m.json nested deeply"),
        (b"9" * 5000, "m.json number long"),
        (b"<html>", "m.json:1 model file"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(data)
    refused(ModelFileError, says, load_model, path)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    refused(InputError, "none.json no such file", load_model, tmp_path / "none.json")
    refused(InputError, f"{tmp_path} directory", load_model, tmp_path)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(9 << 20)
    refused(InputError, "large.json bytes 9,437,184", load_model, tmp_path / "large.json")
    refused(OutputError, f"{tmp_path} directory", save_model, MODEL, tmp_path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@examples(400)
@given(st.sampled_from(sorted(model_to_json(MODEL))), JSON_VALUES)
def test_any_value_of_any_field_is_read_or_refused(field: str, value: Any) -> None:
    content = copy.deepcopy(model_to_json(MODEL))
    content[field] = value
    try:
        model = model_from_json(json.loads(json.dumps(content)), "m.json")
    except ModelFileError:
        return
    assert model.policy.name.isprintable()
    model_to_json(model)


def test_errors_of_a_model_file_are_ours() -> None:
    assert issubclass(ModelFileError, PolicyfactoryError)


def test_the_warnings_of_a_model_are_sentences_and_bounded() -> None:
    policy = Policy("X", "p")
    assert Model(policy).warnings == ()
    assert Model(policy, diagnostics={"warnings": "none"}).warnings == ()
    assert Model(policy, diagnostics={"warnings": [1, "a", None, "b"]}).warnings == ("a", "b")
    many = Model(policy, diagnostics={"warnings": ["w" * 1000] * 50}).warnings
    assert len(many) == 10
    assert {len(text) for text in many} == {300}
