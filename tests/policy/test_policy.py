"""A policy: lower runs first, no value runs last, time counted as it says."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.policy.policy import EPOCH_RULES, Epoch, Policy
from refusals import refused


def test_scores_of_three_jobs() -> None:
    saf = Policy("SAF", "p*q")
    assert saf.scores([10, 20, 30], [4, 1, 2], [0, 0, 0]).tolist() == [40, 20, 60]
    assert saf.scores(10, 4, 0).tolist() == [40]
    assert Policy("share", "q/m").scores([1, 1], [64, 128], [0, 0], m=256).tolist() == [0.25, 0.5]


def test_no_value_runs_last_and_log_of_zero_first() -> None:
    policy = Policy("F1", "log10(p)*q + 870*log10(r)")
    scores = policy.scores([10, 10, 10], [1, 1, 1], [-5, 0, 100])
    assert scores[0] == math.inf
    assert scores[1] == -math.inf
    assert scores[2] == 1741
    assert Policy("0/0", "(p - p)/(q - q)").scores(3, 1, 0)[0] == math.inf


def test_waiting_is_zero_unless_given() -> None:
    policy = Policy("LEXP", "-(w + p)/p")
    assert policy.scores([10], [1], [0]).tolist() == [-1]
    assert policy.scores([10], [1], [0], [10]).tolist() == [-2]


def test_arguments_are_left_alone_whatever_their_type() -> None:
    p = np.array([7, 8], dtype=np.int32)
    view = np.arange(8.0)[::4]
    scores = Policy("x", "p*2 + q").scores(p, view, [0, 0])
    assert scores.tolist() == [14, 20]
    assert p.tolist() == [7, 8]
    assert view.tolist() == [0, 4]


def test_lengths_must_agree() -> None:
    refused(UsageError, "p 2 3 1", Policy("x", "p").scores, [1, 2], [1, 2, 3], [0])


@pytest.mark.parametrize(
    ("formula", "epoch", "static"),
    [
        ("p*q", Epoch(), True),
        ("w/p", Epoch(), False),
        ("p - f", Epoch(), False),
        ("log10(r)", Epoch(), True),
        ("log10(r)", Epoch("fixed", 1_700_000_000), True),
        ("log10(r)", Epoch("oldest-waiting"), False),
        ("p*q", Epoch("oldest-waiting"), True),
    ],
)
def test_static_means_that_waiting_changes_nothing(formula: str, epoch: Epoch, *, static: bool) -> None:
    assert Policy("x", formula, epoch=epoch).is_static is static


def test_free_processors_are_the_same_for_all_jobs() -> None:
    policy = Policy("x", "p*min(1, max(0, f - q + 1))")
    assert policy.scores([7, 7, 7], [2, 3, 4], 0, m=8, f=3).tolist() == [7, 7, 0]
    # Unless they are given the whole machine is free.
    assert policy.scores([7, 7, 7], [7, 8, 9], 0, m=8).tolist() == [7, 7, 0]
    refused(FormulaError, "same ranks f/m", Policy, "x", "f/m")


def test_properties() -> None:
    policy = Policy("F1", "log10(p)*q + 870*log10(r)")
    assert policy.variables == {"p", "q", "r"}
    assert policy.expression.text() == policy.formula
    assert policy.program.depth == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", " F1", "F1\n", "a\u2028b", "x" * 101, "\x1b[31m"])
def test_names_that_could_break_a_table_are_refused(name: str) -> None:
    refused(UsageError, "printable characters name", Policy, name, "p")


def test_wrong_policies() -> None:
    refused(UsageError, "description x", Policy, "x", "p", description="two\nlines")
    refused(UsageError, "source x", Policy, "x", "p", source="s" * 2001)
    for threshold in (-1, math.nan):
        refused(UsageError, "threshold x", Policy, "x", "p", threshold=threshold)
    for formula in ("3 + 4", "log2(m)"):
        refused(FormulaError, "same jobs", Policy, "x", formula)
    refused(FormulaError, "variable z", Policy, "x", "p*z")


def test_epochs() -> None:
    refused(UsageError, "noon unknown", Epoch, "noon")  # type: ignore[arg-type]
    for rule, time in [("fixed", None), ("window-start", 5)]:
        refused(UsageError, "fixed time", Epoch, rule, time)  # type: ignore[arg-type]
    described = {Epoch(rule, 7 if rule == "fixed" else None).describe() for rule in EPOCH_RULES}
    assert len(described) == 3
    assert "r counts from Unix time 7" in described
