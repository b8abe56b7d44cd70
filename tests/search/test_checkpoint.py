"""Checkpoints of training that are damaged; needs no torch."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from policyfactory.core.errors import ModelFileError
from policyfactory.search.reinforce.training import Checkpoint, load_checkpoint, save_checkpoint


def test_any_damage_to_a_checkpoint_is_told(tmp_path: Path) -> None:
    """zipfile, zlib and numpy raise what they like at a file that is damaged."""
    path = tmp_path / "train.partial"
    save_checkpoint(path, Checkpoint({"a": 1}, 0, (), {"policy": np.arange(3.0)}))
    good = path.read_bytes()
    for at in range(len(good)):
        for byte in {good[at] ^ 1, 0x27, 0xFF}:
            path.write_bytes(good[:at] + bytes([byte]) + good[at + 1 :])
            with contextlib.suppress(ModelFileError):
                load_checkpoint(path)
