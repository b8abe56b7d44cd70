"""What the tests of all targets need: policies to export and jobs to rank."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from naive.formula import random_jobs
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE

JOBS = random_jobs(1000, seed=11)

# Every operation, every function, and the edges of the grammar.
MORE = [
    Policy("All of it", "min(p, q*w, 3) + max(log2(q), ln(p), -sqrt(r)) - abs(p - w)/(exp(-q/m) + 1)*2"),
    Policy("powers", "p**0.37*q**-0.5 + (w - p)**3 - p**17*1e-60 + 2**-q"),
    Policy("signs", "-(-p) - (-q) + -3*-w"),
    Policy("no value", "log10(w - p) + sqrt(r - p)*q"),
    Policy("division", "(p - 60)/(q - 2) + w/(log2(q)*p)"),
    Policy("overflow", "exp(p) - p**16*1e300*p**16"),
    Policy("constants", "p*log10(7) + q*2**0.5 + r*exp(1.5) - sqrt(3)"),
]
POLICIES = [*CATALOGUE.values(), *MORE]


def expected(policy: Policy) -> np.ndarray:
    p, q, r, w, *asked = (np.array([job[name] for job in JOBS]) for name in ("p", "q", "r", "w", "n", "mem", "g"))
    return policy.scores(p, q, r, w, JOBS[0]["m"], asked=asked)


def same_order(scores: np.ndarray, others: np.ndarray) -> bool:
    """Return whether both rank the jobs alike, ties included."""
    ranks = np.unique(scores, return_inverse=True)[1]
    return bool((ranks == np.unique(others, return_inverse=True)[1]).all())


def compiler() -> str:
    """Return a C compiler; skip without one, except in CI, where it must be there."""
    result = shutil.which("gcc") or shutil.which("cc")
    if result is None:
        if os.environ.get("CI") == "true":
            pytest.fail("a C compiler is needed")
        pytest.skip("no C compiler")
    return result
