"""The figures of docs/train.md: what a search has found on the windows of the paper's table V."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.policy.policy import Policy
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.clean import read
from policyfactory.workload.windows import cut
from support import shared_path

THREE = "log10(max(p, 1)) + 0.5279*log10(q) - 0.2395*(log10(w + 10) - 1) + 1.844*min(1, max(0, f - q + 1))"
TWELVE = (
    "log10(max(p, 1)) + 15.09*log10(q) - 5.911*(log10(w + 10) - 1) + 7.524*min(1, max(0, f - q + 1)) + "
    "16.3*log10(max(p, 1))**2 + 27.38*log10(q)**2 - 9.027*(log10(w + 10) - 1)**2 - 5.902*log10(max(p, "
    "1))*log10(q) + 9.582*log10(max(p, 1))*(log10(w + 10) - 1) + 20.13*log10(max(p, 1))*min(1, max(0, f - "
    "q + 1)) + 6.24*log10(q)*(log10(w + 10) - 1) - 45.16*log10(q)*min(1, max(0, f - q + 1)) + "
    "0.8558*(log10(w + 10) - 1)*min(1, max(0, f - q + 1))"
)


@pytest.mark.parametrize(
    ("formula", "backfill", "found", "network"), [(THREE, "none", 204.733, 254.67), (TWELVE, "easy", 33.9018, 58.64)]
)
def test_what_was_found_is_below_the_network_on_its_own_windows(
    formula: str, backfill: str, found: float, network: float
) -> None:
    log = read(shared_path("traces/lublin_256.swf"), preset="rlscheduler", estimate_missing="runtime")
    windows = cut(log, "rlscheduler:10x1024jobs:1")
    policy = Policy("found", formula)
    rules = {"compatibility": "rlscheduler", "backfill": backfill}
    values = [measure(simulate(window, policy, **rules), "mean_bsld")["mean_bsld"] for window in windows]
    assert np.mean(values) == pytest.approx(found, rel=1e-4)
    assert np.mean(values) < network
