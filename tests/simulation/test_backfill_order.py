"""A policy with an order of its own for backfilling, and who refuses it."""

from __future__ import annotations

from typing import Any

import pytest

import policyfactory as pf
from daily_log import habits
from policyfactory.core.errors import ExportError, UsageError
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation
from refusals import refused

PAIR = Policy("PAIR", "p*q", backfill_formula="p")


@pytest.mark.parametrize(
    ("formula", "backfill"),
    [("p*q", "p"), ("p*q", "q - w"), ("p / (1 + w)", "p"), ("p*q", "e*q"), ("e", "p")],
)
def test_it_starts_the_jobs_that_the_same_order_of_the_rules_starts(formula: str, backfill: str) -> None:
    predicted = "e" in formula + backfill
    log = habits(16) if predicted else pf.generate_lublin(64, 1_000, seed=2)
    pair = simulate(log, Policy("PAIR", formula, backfill_formula=backfill))
    queue, scan = Policy("QUEUE", formula), Policy("SCAN", backfill)
    by_rules = simulate(log, queue, backfill_policy=scan)
    assert pair.start.tolist() == by_rules.start.tolist()
    assert pair.backfilled.tolist() == by_rules.backfilled.tolist()
    assert predicted or pair.start.tolist() != simulate(log, queue).start.tolist()


@pytest.mark.parametrize(
    "rules",
    [
        {"backfill": "none"},
        {"backfill": "conservative"},
        {"backfill": "slurm"},
        {"compatibility": "sc17"},
        {"compatibility": "rlscheduler"},
        {"compatibility": "ocst"},
        {"backfill_policy": "SPF"},
    ],
)
def test_it_is_refused_under_rules_that_have_no_such_order_or_another(rules: dict[str, Any]) -> None:
    log = pf.generate_lublin(16, 40, seed=1)
    assert simulate(log, PAIR) is not None
    refused(UsageError, "PAIR backfilling without", simulate, log, PAIR, **rules)


@pytest.mark.parametrize("target", ["python", "slurm-site-factor-c", "slurm-site-factor-lua", "oar", "pbs"])
def test_no_target_but_json_carries_it(target: str) -> None:
    with pytest.raises(ExportError, match="own for backfilling, by p, which"):
        pf.export(Model(PAIR), target)
    assert '"backfill_formula": "p"' in pf.export(Model(PAIR), "json").files[0].text


def test_a_run_that_goes_from_one_policy_to_another_has_none() -> None:
    log = pf.generate_lublin(16, 40, seed=1)
    refused(UsageError, "PAIR --backfill-order", SwitchingSimulation, log, [PAIR, Policy("SPF", "p")], Rules())
