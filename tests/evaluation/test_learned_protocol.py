"""evaluate/learned.toml: it can be read, has the formulas that `learn` tries, and measures second halves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.evaluation.protocol import Protocol, read_protocol
from policyfactory.learning.choice import FORMULAS
from policyfactory.policy.store import CATALOGUE
from policyfactory.workload.clean import read


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return read_protocol(Path(__file__).parents[2] / "evaluate" / "learned.toml")


def test_the_formulas_are_those_that_learn_tries(protocol: Protocol) -> None:
    for plan in protocol.experiments:
        assert plan.table.formulas == {name: FORMULAS[name] for name in ("E-S50-Q30", "E-USERS")}
        assert set(plan.table.policies) <= {*CATALOGUE, *FORMULAS}


@pytest.mark.parametrize("name", ["kth", "curie"])
def test_the_second_half_is_measured(protocol: Protocol, name: str, shared: Callable[[str], Path]) -> None:
    plan = next(one for one in protocol.experiments if one.table.name == name)
    jobs = read(shared(f"traces/{protocol.logs[name].file}"))
    assert plan.table.lead_in is not None
    assert plan.table.lead_in.jobs == len(jobs) // 2
