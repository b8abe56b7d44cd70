"""Checkpoints of training that are damaged; needs no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from policyfactory.core.errors import ModelFileError
from policyfactory.search.reinforce.training import Checkpoint, load_checkpoint, save_checkpoint
from refusals import refused


def test_any_damage_to_a_checkpoint_is_told(tmp_path: Path) -> None:
    path = tmp_path / "train.partial"
    saved = Checkpoint({"a": 1}, 0, (), {"policy": np.arange(3.0)})
    save_checkpoint(path, saved)
    good = path.read_bytes()
    found = load_checkpoint(path)
    assert (found.run, found.iteration, found.history) == (saved.run, 0, ())
    assert np.array_equal(found.arrays["policy"], saved.arrays["policy"])
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        refused(ModelFileError, "train.partial damaged", load_checkpoint, path)


def test_a_checkpoint_of_an_earlier_version_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "train.partial"
    save_checkpoint(path, Checkpoint({}, 0, (), {"policy": np.arange(3.0)}))
    path.write_bytes(path.read_bytes()[32:])  # schema 1: no digest before the npz file
    refused(ModelFileError, "train.partial 1 2 --overwrite", load_checkpoint, path)
