"""Every kernel against its plain twin on small random workloads: 1,600 here, 100,000 in the nightly target.

Fewer workloads notice fewer mutants: their runs (tests/mutation) have 500 of each kernel, as a part of a night has.

Each night has its own seed, which ``conftest.py`` draws and prints; ``POLICYFACTORY_SEED`` repeats a night.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from naive.small_workloads import FEATURES, KERNELS, small_workload
from support import NIGHTLY

# Workloads of each of the eight kernels in a part; the parts can run side by side.
MUTANTS = bool(os.environ.get("POLICYFACTORY_MUTANTS"))
PARTS, EACH = 25 if NIGHTLY else 1, 500 if NIGHTLY or MUTANTS else 200
SEED = int(os.environ.get("POLICYFACTORY_SEED", "51"))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_is_its_plain_twin(kernel: str, part: int) -> None:
    least, compare = KERNELS[kernel]
    print(f"POLICYFACTORY_SEED={SEED}")  # noqa: T201 (pytest shows it with a failure)
    rng = np.random.default_rng([SEED, list(KERNELS).index(kernel), part])
    seen: Counter[str] = Counter()
    for _ in range(EACH):
        workload = small_workload(rng, least)
        seen.update(name for name, (_, holds) in FEATURES.items() if holds(workload))
        compare(rng, workload)
    for name, (share, _) in FEATURES.items():
        if name != "one job" or least == 1:
            assert seen[name] >= share * EACH, f"{name}: {seen[name]} of {EACH} workloads"


def test_the_number_of_workloads() -> None:
    assert PARTS * EACH * len(KERNELS) == (100_000 if NIGHTLY else 4000 if MUTANTS else 1600)
