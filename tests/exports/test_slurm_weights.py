"""Weights of priority/multifactor: exact where they can be, and an honest distance where they cannot."""

from __future__ import annotations

import dataclasses
import functools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.hostile import PIECES, TEXTS, hostile_model
from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.text import DAY
from policyfactory.exports.content import Export, ExportSite
from policyfactory.exports.expressible import linear_coefficients, slope
from policyfactory.exports.slurm.multifactor import (
    LONGEST_AGE,
    WEIGHTS_NAME,
    ExportMachine,
    MultifactorWeights,
    Waiting,
    by_weights,
    distance,
    exact_weights,
    fit_weights,
    make_weights,
    waiting_jobs,
)
from policyfactory.policy.expression import parse
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, Model, resolve_model
from refusals import refusal, refused
from sites import make_queue, make_sample, make_site
from support import examples

MACHINE = ExportMachine(64, 4)
EPOCH = Epoch("fixed", 1_767_225_600)


def site(nodes: int | None = 4) -> ExportSite:
    return dataclasses.replace(make_site(processors=64), nodes=nodes)


def export_of(policy: Policy, nodes: int | None = 4) -> Export:
    return by_weights(Model(policy), site(nodes))


def test_linear_formulas_are_distinguished_from_others() -> None:
    result = linear_coefficients(parse("3 - 2*(p + q/4) + (r - w)*0.5 - 1e-3*w"))
    assert result == pytest.approx({"p": -2, "q": -0.5, "r": 0.5, "w": -0.501})
    assert linear_coefficients(parse("p*(q + 1) - p*q + 1/2")) == {"p": 1, "q": 0, "r": 0, "w": 0}
    for formula in ("p*q", "log10(r)", "q/m", "max(q, 3)", "q**2", "abs(w)", "q + r/p"):
        assert linear_coefficients(parse(formula)) is None, formula
    assert slope(parse("p*q - 2*r"), "r") == -2
    assert slope(parse("p*log10(r)"), "r") is None
    assert slope(parse("p*q"), "r") == 0


@examples(40)
@given(
    st.floats(-1e3, 1e3).filter(lambda c: abs(c) > 1e-3),
    st.floats(0, 1e-2).filter(lambda d: d == 0 or d > 1e-5),
    st.sampled_from([" + {d}*r", " - {d}*w", " + {d}*r + {d}*w - {d}*w"]),
    st.integers(1, 50),
)
def test_exact_weights_order_every_queue_as_the_formula_does(c: float, d: float, term: str, seed: int) -> None:
    policy = Policy("x", f"5 + {c:.12f}*q" + term.format(d=f"{d:.12f}"), epoch=EPOCH)
    weights, reason = exact_weights(policy, MACHINE)
    assert weights is not None, reason
    queue = make_queue(200, seed=seed)
    age = (queue.now - queue.submit).astype(float)
    scores = policy.scores(queue.p, queue.q, queue.submit - 1_767_225_600, age)
    result = weights.priorities(queue.p.astype(float), queue.q.astype(float), age)
    order = np.argsort(scores, kind="stable")
    # One whole number stands for this much of a score; who is further apart is never the other way round.
    reach = abs(c) * 64 + d * LONGEST_AGE
    unit = reach / 2e9
    rise = np.diff(result[order])
    assert not (rise[np.diff(scores[order]) > 4 * unit] > 0).any()
    assert rise.max() <= 2
    assert result.min() >= 1
    assert result.max() < 2**32


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("p + q", "time limit"),
        ("q - 1e-3*r", "negative"),
        ("q + w", "negative"),
        ("p*q", "not linear"),
        ("r + w", "cancel"),
    ],
)
def test_what_is_not_exact_says_why(formula: str, reason: str) -> None:
    weights, said = exact_weights(Policy("x", formula, epoch=EPOCH), MACHINE)
    assert weights is None
    assert reason in said


def test_the_file_is_what_slurm_reads() -> None:
    made = export_of(CATALOGUE["SQF"])
    lines = [line for line in made.text.splitlines() if not line.startswith("#")]
    assert lines == [
        "",
        "PriorityType=priority/multifactor",
        "PriorityFlags=ACCRUE_ALWAYS,NO_NORMAL_TRES",
        "PriorityWeightPartition=2000001000",
        "PriorityWeightTRES=CPU=-31250000.000000",
        "PriorityWeightAge=0",
        "PriorityWeightJobSize=0",
        "PriorityWeightFairshare=0",
        "PriorityWeightQOS=0",
        "PriorityWeightAssoc=0",
    ]
    assert made.files[0].name == WEIGHTS_NAME
    assert made.settings == (*lines[1:], "SchedulerParameters=bf_job_part_count_reserve=1")
    assert any("exact" in line and "NOT" not in line for line in made.limits)
    aged = export_of(CATALOGUE["FCFS"])
    assert {"PriorityWeightAge=2000000000", "PriorityMaxAge=28-0", "PriorityCalcPeriod=1"} <= set(aged.settings)
    assert any("slurmdbd" in line for line in aged.limits)


def test_the_sum_is_that_of_the_man_page() -> None:
    weights = MultifactorWeights(1000, 50_000, -2.5, -70_000, MACHINE)
    p, q, w = np.array([600.0, 61.0, 1e12]), np.array([32.0, 1.0, 64.0]), np.array([DAY, 100 * DAY, 0.0])
    # Ten minutes on half the machine; two (rounded up) on what counts as a node of 16; no limit at all.
    size = np.array([0.5 / 10, 0.25 / 2, 0.0])
    age = np.array([50_000 / 28, 50_000, 0.0])
    assert list(weights.priorities(p, q, w)) == list(np.floor(1000 + age - 2.5 * q + 70_000 * (1 - size)))
    assert MultifactorWeights(0, 0, -5.0, 0, MACHINE).priorities(p, q, w).min() == 1


def test_the_distance_is_that_of_all_pairs() -> None:
    draw = np.random.default_rng(3)
    scores = np.append(draw.integers(0, 12, 40).astype(float), [np.inf, np.inf, -np.inf])
    priorities = draw.integers(0, 9, 43).astype(float)
    nothing = np.zeros(43)
    counts = {"pairs": 0, "inverted": 0, "tied": 0}
    for i in range(43):
        for j in range(43):
            if scores[i] < scores[j]:
                counts["pairs"] += 1
                counts["inverted"] += bool(priorities[i] < priorities[j])
                counts["tied"] += bool(priorities[i] == priorities[j])
    result = distance(Waiting(nothing, nothing, nothing, scores), priorities)
    assert result.pairs == counts["pairs"]
    assert result.inverted == pytest.approx(counts["inverted"] / counts["pairs"])
    assert result.tied == pytest.approx(counts["tied"] / counts["pairs"])
    assert result.tau == pytest.approx(1 - 2 * result.inverted - result.tied)
    assert distance(Waiting(nothing, nothing, nothing, nothing), priorities).pairs == 0


@pytest.mark.parametrize("formula", ["-max(q, 16)/p", "q**2", "1e4*log10(q) - w - 0*p*q", "max(q, 16)/p - 1e-6*w"])
def test_weights_that_exist_are_found(formula: str) -> None:
    result = fit_weights(Policy("x", formula), make_sample(), MACHINE)
    assert result is not None
    assert result[1].tau > (0.9 if "log10" in formula else 0.98)


@pytest.mark.parametrize("name", ["SAF", "F1", "WFP3", "LPF"])
def test_the_printed_distance_holds_for_jobs_that_were_not_seen(name: str) -> None:
    policy = dataclasses.replace(CATALOGUE[name], epoch=EPOCH)
    made = export_of(policy)
    said = next(line for line in made.limits if line.startswith("NOT exact"))
    inverted, tied = (float(x) for x in re.findall(r"([\d.]+) %", said))
    tau = re.search(r"tau is ([\d.]+)", said)
    assert tau is not None
    assert float(tau.group(1)) == pytest.approx(1 - 2 * inverted / 100 - tied / 100, abs=0.003)
    assert inverted < 20
    # The formula that it prints orders as the priorities do.
    text = next(line for line in made.limits if line.startswith("What they order by")).partition("evaluate: ")[2]
    own = Policy("weights", text)
    queue = make_queue(300)
    assert made.priorities is not None
    result = made.priorities(queue)
    scores = own.scores(queue.p, queue.q, 0.0, queue.now - queue.submit)
    # Its numbers have nine digits.
    assert np.abs((scores - scores[0]) + (result - result[0])).max() <= 10
    # And other jobs are as near.
    waiting = waiting_jobs(policy, make_sample(seed=9), 64, 500, draw=7)
    near = distance(waiting, made.priorities(_as_queue(waiting)))
    assert near.tau == pytest.approx(float(tau.group(1)), abs=0.08)
    assert export_of(policy).text == made.text


def _as_queue(waiting: Waiting):  # type: ignore[no-untyped-def]
    queue = make_queue(len(waiting))
    columns = {name: getattr(waiting, name).astype(np.int64) for name in "pqw"}
    return dataclasses.replace(queue, p=columns["p"], q=columns["q"], submit=queue.now - columns["w"])


def test_without_the_nodes_the_time_limit_has_no_factor() -> None:
    made = export_of(CATALOGUE["SAF"], nodes=None)
    assert "PriorityWeightJobSize=0" in made.settings
    assert any("--nodes" in line for line in made.limits)
    refused(ExportError, "--nodes 0.05", export_of, CATALOGUE["SPF"], nodes=None)


def test_waits_are_those_of_jobs_that_are_seen_waiting() -> None:
    # Three kinds of jobs, as many of each, that wait 0, 1,000 and 9,000 s; w is any part of it, as in every sample.
    kind = np.arange(30_000) % 3
    part = np.random.default_rng(1).random(30_000)
    sample = dataclasses.replace(make_sample(30_000), p=60.0 * kind, w=part * np.array([0.0, 1e3, 9e3])[kind])
    waiting = waiting_jobs(CATALOGUE["SPF"], sample, 64, 8000)
    shares = [(waiting.p == 60 * k).mean() for k in range(3)]
    assert shares == pytest.approx([0.0, 0.1, 0.9], abs=0.02)
    quantiles = np.quantile(waiting.w[waiting.p == 120], [0.0, 0.25, 0.5, 0.75, 1.0])
    assert quantiles == pytest.approx([0, 2250, 4500, 6750, 9000], abs=250)
    without = waiting_jobs(CATALOGUE["SPF"], dataclasses.replace(sample, w=np.zeros(30_000)), 64, 4000)
    assert without.w.max() == pytest.approx(2 * DAY, rel=0.01)
    # With the rule oldest-waiting, the oldest has the least r that there is.
    oldest = waiting_jobs(Policy("x", "r", epoch=Epoch("oldest-waiting")), sample, 64, 50)
    assert oldest.scores.min() == 1


def test_what_no_weights_come_near_to_is_refused_with_the_cure() -> None:
    for name in ("LCFS", "CUB-CTC-SP2"):
        refused(
            ExportError,
            "tau slurm-site-factor-lua -0.03 --to",
            export_of,
            dataclasses.replace(CATALOGUE[name], epoch=EPOCH),
        )
    with refusal(ExportError, "one score 9 --workload"):
        by_weights(
            Model(Policy("x", "p*q")),
            ExportSite(lambda: dataclasses.replace(make_sample(9), p=np.ones(9), q=np.ones(9)), 4),
        )
    refused(ExportError, "--processors", by_weights, Model(Policy("x", "q/m + p/m")), make_site())
    refused(ExportError, "--epoch", by_weights, resolve_model("F1"), site())
    refused(UsageError, "1 least --nodes", by_weights, resolve_model("SQF"), dataclasses.replace(site(), nodes=0))


def test_the_largest_numbers_fit_into_a_priority() -> None:
    for gains in [(0.0, -1.0, 0.0), (1.0, -1e9, 1e-9), (0.0, 1e-9, -1e9), (1e-12, 0.0, 0.0)]:
        weights = make_weights(gains, MACHINE)
        p, q = np.array([1.0, 1e9, 60.0]), np.array([1.0, 64.0, 64.0])
        result = weights.priorities(p, q, np.array([0.0, 1e9, 1e3]))
        assert result.min() >= 1000
        assert result.max() < 2**32 - 1
        assert max(weights.base, weights.age, abs(weights.size)) < 2**32


def test_the_threshold_is_said_to_be_lost() -> None:
    made = export_of(dataclasses.replace(CATALOGUE["SQF"], threshold=72_000.0))
    assert any("threshold is left out" in line for line in made.limits)


def test_what_becomes_of_the_sites_own_weights_and_flags_is_said() -> None:
    for name in ("SQF", "SAF"):
        made = export_of(CATALOGUE[name])
        flags = next(line for line in made.settings if line.startswith("PriorityFlags="))
        assert any(f"{flags},NO_FAIR_TREE" in line and "INCR_ONLY cannot" in line for line in made.limits)
        assert any("Without slurmdbd leave NO_FAIR_TREE and DEPTH_OBLIVIOUS out" in line for line in made.limits)
        assert any("the site's own go" in line for line in made.limits)
        assert any("restart slurmctld" in line for line in made.rollback)
        assert any("restart slurmctld" in line for line in made.install)


def lines_of(policy: Policy, words: str) -> list[str]:
    """Return the lines that Slurm reads, where every text of the model is ``words``."""
    own = ExportSite(lambda: dataclasses.replace(make_sample(300), origin=words), 64, words, words, 4)
    text = by_weights(hostile_model(policy, words), own).text
    assert text.isascii()
    return [line for line in text.split("\n") if line.partition("#")[0].strip()]


@functools.cache
def benign(name: str) -> list[str]:
    return lines_of(CATALOGUE[name], "x")


@examples(60)
@given(TEXTS)
def test_texts_of_a_stranger_stay_in_comments(words: str) -> None:
    assert lines_of(CATALOGUE["SQF"], words) == benign("SQF")


def test_the_worst_texts_stay_in_comments_beside_nearest_weights() -> None:
    assert lines_of(CATALOGUE["SAF"], "".join(PIECES)) == benign("SAF")
    assert all(line.startswith("Priority") for name in ("SQF", "SAF") for line in benign(name))
    # A comment of slurm.conf ends with its line, whatever stands before that: a backslash would join the next one.
    text = by_weights(hostile_model(CATALOGUE["SQF"], "\\"), site()).text
    assert not any(line.endswith("\\") for line in text.split("\n"))
