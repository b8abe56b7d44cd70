"""Model files: what is written is read, and what a stranger writes is checked."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
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


def test_the_least_that_a_model_needs() -> None:
    value = {"kind": "policyfactory-model", "schema_version": 1, "name": "mine", "formula": "p*q"}
    assert model_from_json(value, "mine.json") == Model(Policy("mine", "p*q"))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("kind", "other", "expected 'policyfactory-model'"),
        ("kind", None, "expected 'policyfactory-model'"),
        ("schema_version", 0, "whole number from 1"),
        ("schema_version", "1", "whole number from 1"),
        ("schema_version", True, "whole number from 1"),
        ("name", 3, "field name: expected a text"),
        ("name", "x" * 101, "field name: expected a text"),
        ("name", "a\nb", "printable characters"),
        ("formula", None, "field formula: expected a text"),
        ("formula", "p*" * 3000, "at most 4000"),
        ("formula", "import os", "is not a variable"),
        ("formula", "17", "same for all jobs"),
        ("description", ["x"], "field description"),
        ("source", "a\x00", "printable"),
        ("epoch", "fixed", "field epoch"),
        ("epoch", {"rule": "noon"}, "field epoch"),
        ("epoch", {"rule": "fixed", "unix_time": 1.5}, "field epoch"),
        ("epoch", {"rule": "fixed", "unix_time": 10**15}, "field epoch"),
        ("epoch", {"rule": "fixed", "unix_time": None}, "'fixed' has a time"),
        ("epoch", {"rule": "window-start", "more": 1}, "field epoch"),
        ("threshold_s", -1, "seconds >= 0"),
        ("threshold_s", "1h", "seconds >= 0"),
        ("threshold_s", True, "seconds >= 0"),
        ("threshold_s", 10**400, "seconds >= 0"),
        ("coefficients", {}, "a list"),
        ("coefficients", [1], "objects of name"),
        ("coefficients", [{"name": "c", "term": "p", "unit": "1", "value": 1}], "objects of name"),
        ("coefficients", [{"name": "c", "term": "p", "unit": "1", "value": "1", "stderr": None}], "finite numbers"),
        ("coefficients", [{"name": "\n", "term": "p", "unit": "1", "value": 1, "stderr": None}], "objects of name"),
        ("coefficients", [0] * 1001, "at most 1000"),
        ("diagnostics", [], "field diagnostics: expected an object"),
        ("provenance", "me", "field provenance: expected an object"),
        ("exec", "rm -rf", "unknown field 'exec'"),
    ],
)
def test_every_field_is_checked(field: str, value: Any, says: str) -> None:
    content = model_to_json(MODEL)
    content[field] = value
    with pytest.raises(ModelFileError, match=says) as caught:
        model_from_json(content, "m.json")
    assert str(caught.value).startswith("m.json: ")
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("field", ["name", "formula"])
def test_missing_fields_are_named(field: str) -> None:
    content = model_to_json(MODEL)
    del content[field]
    with pytest.raises(ModelFileError, match=f"field {field} is missing"):
        model_from_json(content, "m.json")


def test_a_newer_schema_names_both_versions_and_the_cure() -> None:
    content = {**model_to_json(MODEL), "schema_version": 9, "written_by": "policyfactory 7.1", "shape": {}}
    with pytest.raises(ModelFileError) as caught:
        model_from_json(content, "m.json")
    message = str(caught.value)
    assert "model schema 9, written by policyfactory 7.1," in message
    assert f"policyfactory {__version__} reads schemas up to {MODEL_SCHEMA}" in message
    assert "install a newer policyfactory" in message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", r"m.json:1: is not JSON"),
        (b"{\n\n", r"m.json:3: is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"[]", "this one is a list"),
        (b"3", "this one is a number"),
        (b"null", "this one is a null"),
        (b'{"a": NaN}', "NaN is not JSON; write null"),
        (b'{"a": 1, "a": 2}', "given twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b"9" * 5000, "a number too long"),
        (b"<html>", "is it a model file"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=says):
        load_model(path)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a directory"):
        load_model(tmp_path)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(9 << 20)
    with pytest.raises(InputError, match="bytes, more than"):
        load_model(tmp_path / "large.json")
    with pytest.raises(OutputError, match="is a directory"):
        save_model(MODEL, tmp_path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
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
