"""Network files: what is written is read, and what a stranger writes is checked."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.network import random_network
from policyfactory.core.errors import InputError, ModelFileError, UsageError
from policyfactory.policy.network import (
    LARGEST_FILE,
    NETWORK_SCHEMA,
    Network,
    load_network,
    network_from_json,
    network_to_json,
    save_network,
)
from policyfactory.policy.store import Model, load_model, resolve, resolve_model, save_model
from refusals import refused
from support import examples

NETWORK = dataclasses.replace(
    random_network(4),
    description="small jobs first",
    source="trained here",
    diagnostics={"warnings": ["stopped early"], "epochs": np.int64(7)},
    provenance={"command": "policyfactory train", "seed": 4},
)


def test_round_trip(tmp_path: Path) -> None:
    save_network(NETWORK, tmp_path / "net.json")
    result = load_network(tmp_path / "net.json")
    assert result == NETWORK
    for one, other in zip(result.layers, NETWORK.layers, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.biases, other.biases)
    for field in ("description", "source", "mode", "provenance", "inputs"):
        assert getattr(result, field) == getattr(NETWORK, field)
    assert result.diagnostics == {"warnings": ["stopped early"], "epochs": 7}
    save_network(result, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_numbers_of_any_size_come_back_to_the_bit(tmp_path: Path) -> None:
    values = np.array([1e-45, 1.1754944e-38, 0.1, -0.0, 1 / 3, 16_777_217, 9.999999e29], dtype=np.float32)
    network = Network.of("x", ("p",) * 7, [(values[:, None], [0])])
    save_network(network, tmp_path / "x.json")
    assert load_network(tmp_path / "x.json").layers[0].weights.tobytes() == values.tobytes()


def test_it_is_a_model_file_as_well(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    save_network(NETWORK, path)
    model = load_model(path)
    assert model.policy.network == NETWORK
    assert (model.policy.name, model.policy.description, model.policy.source) == (
        "NET",
        "small jobs first",
        "trained here",
    )
    assert model.warnings == ("stopped early",)
    assert len(model.sha256) == 64
    assert resolve(path) == resolve(str(path)) == resolve(NETWORK) == model.policy
    assert resolve_model(str(path)) == model
    save_model(model, tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == path.read_bytes()
    save_model(Model(model.policy), tmp_path / "of-the-policy.json")
    assert (tmp_path / "of-the-policy.json").read_bytes() == path.read_bytes()


def test_the_least_that_a_network_needs() -> None:
    value = {
        "kind": "policyfactory-network",
        "schema_version": 1,
        "name": "mine",
        "inputs": ["p"],
        "layers": [{"weights": [[-1]], "biases": [0]}],
    }
    assert network_from_json(value, "mine.json") == Network.of("mine", ("p",), [([[-1]], [0])])


ROW = [0.5] * 5


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("kind",), "policyfactory-model", "policyfactory-network"),
        (("schema_version",), 0, "schema_version 1"),
        (("schema_version",), True, "schema_version 1"),
        (("name",), "x" * 101, "field text"),
        (("name",), 3, "field text"),
        (("name",), "a\nb", "1 100"),
        (("description",), "a\nb", "NET 2000"),
        (("inputs",), "p", "1 64"),
        (("inputs",), [], "1 64"),
        (("inputs",), ["p"] * 65, "1 64"),
        (("inputs", 0), 3, "1 64"),
        (("inputs", 0), "p" * 1001, "1 64"),
        (("inputs", 0), "import os", "NET input 1"),
        (("inputs", 0), "r", "NET input 1"),
        (("inputs",), ["p"] * 5, "NET has 5 6"),
        (("layers",), {}, "1 16"),
        (("layers",), [], "1 16"),
        (("layers", 0), 3, "1 16"),
        (("layers", 0, "more"), 3, "1 16"),
        (("layers", 0, "biases"), None, "1 16"),
        (("layers", 0, "biases", 0), "1", "1 16"),
        (("layers", 0, "biases", 0), True, "1 16"),
        (("layers", 0, "biases", 0), 1e31, "1 16"),
        (("layers", 0, "biases", 0), 10**400, "1 16"),
        (("layers", 0, "weights"), [], "1 16"),
        (("layers", 0, "weights"), [ROW] * 1025, "1 16"),
        (("layers", 0, "weights", 0), [], "1 16"),
        (("layers", 0, "weights", 0), [0] * 1025, "1 16"),
        (("layers", 0, "weights", 0), [0], "1 length"),
        (("layers", 0, "biases"), [0], "layer 1 6 5"),
        (("layers", 1, "weights"), [[1] * 7], "layer 1 5 2"),
        (("mode",), "fast", "field standard"),
        (("mode",), [], "field standard"),
        (("description",), 3, "field description"),
        (("source",), "x" * 2001, "field source"),
        (("diagnostics",), [], "diagnostics object"),
        (("provenance",), None, "provenance object"),
        (("epoch",), {}, "epoch unknown"),
    ],
)
def test_wrong_fields(place: tuple[str | int, ...], value: Any, says: str) -> None:
    whole = copy.deepcopy(network_to_json(NETWORK))
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    refused(ModelFileError, f"net.json {says}", network_from_json, whole, "net.json")


@pytest.mark.parametrize("field", ["name", "inputs", "layers"])
def test_missing_fields(field: str) -> None:
    value = network_to_json(NETWORK)
    del value[field]
    message = refused(ModelFileError, "net.json kind schema_version name", network_from_json, value, "net.json")
    assert f"field {field} " in message


def test_a_newer_schema_is_refused() -> None:
    value = network_to_json(NETWORK) | {"schema_version": NETWORK_SCHEMA + 1, "written_by": "policyfactory 9.9"}
    refused(ModelFileError, "net.json 2 9.9", network_from_json, value, "net.json")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_file_cut_in_half(tmp_path: Path, share: float) -> None:
    path = tmp_path / "net.json"
    save_network(NETWORK, path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    for read in (load_network, load_model):
        refused(ModelFileError, "JSON middle", read, path)


def test_no_network_at_all(tmp_path: Path) -> None:
    refused(InputError, "none.json no such file", load_network, tmp_path / "none.json")
    path = tmp_path / "list.json"
    path.write_text("[1]")
    refused(ModelFileError, "list.json JSON network", load_network, path)
    path.write_bytes(b"\x80\x04pickle")
    refused(ModelFileError, "list.json UTF-8 text 1", load_network, path)
    path.write_text('{"kind": NaN}')
    refused(ModelFileError, "list.json NaN JSON", load_network, path)


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (LARGEST_FILE + 1))
    refused(InputError, "large.json 8,388,608 read", load_network, path)
    monkeypatch.setattr("policyfactory.policy.network.LARGEST_FILE", 10_000)
    layers = [(np.ones((1, 64)), np.ones(64)), (np.full((64, 64), 0.123), np.ones(64)), (np.ones((64, 1)), [0])]
    refused(UsageError, "10,000 would", save_network, Network.of("wide", ("p",), layers), tmp_path / "wide.json")
    assert not (tmp_path / "wide.json").exists()


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["weights", "biases", "p"]), part),
    max_leaves=8,
)


@examples(200)
@given(st.sampled_from(sorted(network_to_json(NETWORK))), JUNK)
def test_a_strangers_field_is_read_or_refused(field: str, value: Any) -> None:
    whole = network_to_json(NETWORK) | {field: value}
    with contextlib.suppress(ModelFileError):
        network_from_json(json.loads(json.dumps(whole)), "net.json")
