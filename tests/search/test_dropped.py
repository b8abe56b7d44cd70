"""Whoever learns, judges or reviews says first, before any work, that most of a log's jobs were dropped."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from policyfactory.policy.network import Network
from policyfactory.review.times import read_accounting
from policyfactory.search.arena import Arena
from policyfactory.search.distill import distill
from policyfactory.search.run import train


def test_most_of_a_log_is_dropped(tmp_path: Path) -> None:
    # Only evaluate, learn and workload said so.
    rows = "".join(f"{n} {n} 0 {-1 if n % 3 else 60} 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 31))
    log = tmp_path / "log.swf"
    log.write_text(f"; MaxProcs: 4\n{rows}")
    network = Network.of("n", ("p",), [([[-1.0]], [0.0])])
    for begin in (
        lambda: train(log),
        lambda: distill(network, log),
        lambda: Arena(log, ledger=tmp_path / "ledger.json"),
        lambda: read_accounting([log]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=r"most jobs of .*log\.swf were dropped, 20 of 30"):
                begin()
