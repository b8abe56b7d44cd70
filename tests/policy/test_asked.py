"""Formulas that read what jobs ask for besides processors and time: n, mem and g; c is the cores."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import ExportError, FormulaError, UsageError
from policyfactory.engine.waiting import score_waiting
from policyfactory.exports.content import TARGETS
from policyfactory.exports.export import export
from policyfactory.policy.algebra import shorter_formula
from policyfactory.policy.explain import explain, parse_job
from policyfactory.policy.expression import parse, to_latex
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Requests, Workload
from policyfactory.workload.machine import assume, parse_assumptions
from refusals import refused

assert score_waiting  # compiled with the requests behind the predictions


def workload(n: int = 60, *, memory: bool = True, seed: int = 3) -> Workload:
    """Return jobs on 8 processors, more than fit at once, with what they ask for."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 40 * n, n))
    run = rng.integers(50, 900, n)
    columns = (np.arange(1, n + 1), submit, run, run + rng.integers(0, 300, n), rng.integers(1, 9, n))
    asked = dataclasses.replace(
        Requests.unknown(n),
        nodes=rng.integers(1, 5, n),
        memory=rng.integers(0, 64_000, n) if memory else np.full(n, -1),
        gpus=rng.integers(0, 4, n),
    )
    return Workload("asks", 8, *columns, rng.integers(0, 5, n), np.full(n, -1), requests=asked)


def test_the_names_are_variables_and_c_is_the_cores() -> None:
    assert Policy("x", "n + mem*g").asked == ("n", "mem", "g")
    assert Policy("x", "p*q").asked == ()
    assert parse("p*c") == parse("p*q")
    # In a form that is to be fitted, c is a coefficient as any other letter.
    assert parse("a*p + c*q", coefficients=True).coefficients == ("a", "c")
    assert to_latex(parse("mem*q/n")) == r"\frac{\mathrm{mem} \, q}{n}"
    assert shorter_formula(parse("2*(mem*g) + 3*m")).expression.text() == "mem*g"
    refused(FormulaError, "cores variable", parse, "p*cores")


@pytest.mark.parametrize("formula", ["p*mem", "n + g*p", "ln(1 + mem) + 2*n", "g", "c*mem*n"])
@pytest.mark.parametrize("backfill", ["easy", "conservative", "none"])
def test_a_schedule_by_requests_is_that_of_a_function_that_knows_them(formula: str, backfill: Any) -> None:
    jobs = workload()
    asked = jobs.requests
    assert asked is not None
    policy = Policy("asks", formula)
    rows = np.stack([asked.nodes, asked.memory, asked.gpus]).astype(np.float64)
    key = policy.scores(jobs.requested_time, jobs.processors, jobs.submit - jobs.submit[0], m=8, asked=rows)
    known = simulate(jobs, Policy.from_function(lambda _: key, "KNOWN"), backfill=backfill)
    np.testing.assert_array_equal(simulate(jobs, policy, backfill=backfill).start, known.start)
    # The same order, scored anew at each pass: 0*w changes nothing.
    timed = simulate(jobs, Policy("timed", f"{formula} + 0*w"), backfill=backfill)
    np.testing.assert_array_equal(timed.start, known.start)


@pytest.mark.parametrize("formula", ["e*mem", "e*mem + 0*w"])
def test_requests_and_predictions_go_together(formula: str) -> None:
    jobs = workload(200)
    first = simulate(jobs, Policy("both", formula))
    # Twice the memory of every job is the same order, the memory of others is not.
    assert jobs.requests is not None
    twice = dataclasses.replace(jobs, requests=dataclasses.replace(jobs.requests, memory=2 * jobs.requests.memory))
    np.testing.assert_array_equal(simulate(twice, Policy("both", formula)).start, first.start)
    turned = dataclasses.replace(jobs.requests, memory=jobs.requests.memory[::-1])
    assert (simulate(dataclasses.replace(jobs, requests=turned), Policy("both", formula)).start != first.start).any()


def test_what_the_log_does_not_say_is_an_error_with_its_cure() -> None:
    jobs = workload(memory=False)
    policy = Policy("by memory", "p*mem")
    said = "60 --assume mem=2000*q"
    refused(UsageError, said, simulate, jobs, policy)
    refused(UsageError, "60 jobs asks", simulate, dataclasses.replace(jobs, requests=None), Policy("x", "p + 0*w + n"))
    filled = assume(jobs, "mem=2000*q, n=q/4")
    assert filled.requests is not None
    assert filled.requests.memory.tolist() == (2000 * jobs.processors).tolist()
    # The log says the nodes, which therefore stay.
    assert filled.requests.nodes.tolist() == jobs.requests.nodes.tolist()  # type: ignore[union-attr]
    assert filled.requests.assumed == ("assumed mem=2000*q for 60 of 60 jobs, of which the log does not say it",)
    assert filled.origin.endswith(filled.requests.assumed[0])
    assert filled.sha256() != jobs.sha256()
    np.testing.assert_array_equal(simulate(filled, policy).start, simulate(jobs, Policy("by area", "p*q")).start)


def test_assumptions_are_read_and_rounded() -> None:
    processors = np.array([1, 32, 33, 64])
    values = {str(one): one.values(processors).tolist() for one in parse_assumptions("n=q/32,mem=1.5*q,g=0")}
    assert values == {"n=q/32": [1, 1, 2, 2], "mem=1.5*q": [2, 48, 50, 96], "g=0": [0, 0, 0, 0]}
    assert parse_assumptions("n=0")[0].values(processors).tolist() == [1, 1, 1, 1]
    assert parse_assumptions("n=2*q/64")[0].values(processors).tolist() == [1, 1, 2, 2]
    for text in ("", "mem", "mem=", "x=1", "mem=q/0", "mem=2,mem=3", "g=-1", "mem=1e3", "mem=q*2", "c=1"):
        refused(UsageError, "n=q/32,mem=2000 example", parse_assumptions, text)


@pytest.mark.parametrize("compatibility", ["sc17", "rlscheduler"])
def test_other_programs_do_not_know_them(compatibility: Any) -> None:
    refused(UsageError, "mem without x", simulate, workload(), Policy("x", "p*mem"), compatibility=compatibility)


def test_scores_and_explanations_take_them() -> None:
    policy = Policy("x", "p*mem + n - g")
    assert policy.scores([2.0], [1], [0], asked=[[3], [5], [7]]).tolist() == [2 * 5 + 3 - 7]
    refused(UsageError, "asked 2 1 3", policy.scores, [2.0], [1], [0], asked=[[3], [5]])
    refused(UsageError, "n mem g score x", policy.scores, [2.0], [1], [0])
    explained = explain(policy, parse_job("p=2 n=3 mem=5 g=7"))
    assert explained.score == 6
    assert [term.value for term in explained.terms] == [10, 3, -7]
    assert explain(Policy("x", "p*c"), parse_job("p=2 c=3")).score == 6
    refused(UsageError, "mem= g= x", explain, policy, parse_job("p=2 n=3"))
    refused(UsageError, "n= 0 1 n", parse_job, "n=0")


def test_each_target_takes_them_or_says_that_it_does_not(tmp_path: Path) -> None:
    policy = Policy("asks", "p*mem + n*g")
    taken = {name for name, target in TARGETS.items() if target.asked}
    assert {"python", "c", "lua", "latex", "json"} <= taken
    for name in TARGETS:
        if name in taken:
            export(policy, name, epoch="2026-01-01", workload=workload(500))
        else:
            refused(ExportError, f"n mem g {name} python", export, policy, name, epoch="2026-01-01")


@pytest.mark.slow
def test_without_a_workload_the_range_is_learnt_from_jobs_that_ask_for_all_of_it() -> None:
    # All targets get such jobs from one function.
    export(Policy("asks", "p*mem + n*g"), "slurm-site-factor-lua", epoch="2026-01-01")


def test_the_program_in_python_has_them_as_arguments(tmp_path: Path) -> None:
    made = export(Policy("asks", "p*mem + n*g"), "python", tmp_path / "asks.py")
    assert made.paths
    namespace: dict[str, Any] = {}
    exec(compile((tmp_path / "asks.py").read_text(), "asks.py", "exec"), namespace)
    assert namespace["score"](2, 1, n=3, mem=5, g=7) == 2 * 5 + 3 * 7
    with pytest.raises(TypeError, match="missing 3 required keyword-only arguments: 'n', 'mem', and 'g'"):
        namespace["score"](2, 1)


def test_a_model_file_keeps_them(tmp_path: Path) -> None:
    export(Policy("asks", "p*mem*c"), "json", tmp_path / "asks.json")
    content = json.loads((tmp_path / "asks.json").read_text())
    assert content["units"]["mem"] == "requested memory of the job, in all (MB)"
    again = resolve(str(tmp_path / "asks.json"))
    assert again.formula == "p*mem*c"
    assert again.variables == {"p", "q", "mem"}
