"""models/published holds the catalogue as model files (``policyfactory export NAME --to json``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyfactory.exports.content import TARGETS, ExportSite
from policyfactory.policy.store import CATALOGUE, load_model, published_model, resolve


def test_one_file_a_policy(root: Path) -> None:
    assert {path.name for path in (root / "models" / "published").iterdir()} == {f"{name}.json" for name in CATALOGUE}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_file_is_what_the_command_writes(root: Path, name: str) -> None:
    path = root / "models" / "published" / f"{name}.json"
    written = TARGETS["json"].make(published_model(CATALOGUE[name]), ExportSite()).text
    assert load_model(path) == published_model(CATALOGUE[name])
    assert resolve(str(path)) == CATALOGUE[name]
    result, wanted = json.loads(path.read_text(encoding="utf-8")), json.loads(written)
    # A later version writes the same but for its own name.
    del result["written_by"], wanted["written_by"]
    assert result == wanted
