"""Scores that whole numbers would make equal are kept apart on a scale of logarithms, in the same order."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.exports.content import Export, ExportSite, File
from policyfactory.exports.export import compressed, export, make_with_few_ties
from policyfactory.exports.sample import learn_scale, wide_sample
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import MOST_TIES, PriorityScale, scale_of, tie_share
from policyfactory.policy.store import CATALOGUE, Model
from policyfactory.workload.models.lublin import default_workload
from sites import make_site

START = Epoch("fixed", 1_767_225_600)


def scaled(model: Model, site: ExportSite) -> Export:
    return Export((File("x", model.policy.formula),), scale=learn_scale(model.policy, site.sample, largest=site.weight))


SCALED = SimpleNamespace(make=scaled)
UNSCALED = SimpleNamespace(make=lambda model, _: Export((File("x", model.policy.formula),)))


def test_a_policy_with_too_many_ties_is_exported_on_a_scale_of_logarithms() -> None:
    policy = CATALOGUE["WFP3"]
    site = ExportSite(lambda: wide_sample(policy))
    sample = site.sample
    scores = policy.scores(sample.p, sample.q, sample.r, sample.w)
    assert tie_share(learn_scale(policy, sample), scores) > 2 * MOST_TIES
    done = make_with_few_ties(SCALED, Model(policy), site)
    assert done.ties is not None
    assert done.ties < MOST_TIES
    assert done.export.text == done.policy.formula
    assert done.policy.description.endswith("on a scale of logarithms, in the same order")
    assert done.export.scale is not None
    other = done.policy.scores(sample.p, sample.q, sample.r, sample.w)
    numbers = done.export.scale.integers(other)
    # No inversion on a million jobs.
    assert (np.diff(numbers[np.argsort(scores, kind="stable")]) <= 0).all()


def test_jobs_without_a_score_are_said() -> None:
    jobs = default_workload().select(np.arange(500))
    policy = Policy("ROOT", "sqrt(q - 8)*p")
    done = export(policy, "slurm-site-factor-lua", workload=jobs)
    (said,) = [text for text in done.warnings if "no score" in text]
    assert f"{int((jobs.processors < 8).sum())} of 500 jobs" in said
    assert not any("no score" in text for text in export("SAF", "slurm-site-factor-lua", workload=jobs).warnings)


def test_a_log_from_before_the_epoch_has_scores() -> None:
    assert START.unix_time is not None
    jobs = dataclasses.replace(default_workload().select(np.arange(500)), unix_start=START.unix_time - 10**8)
    done = export("F1", "slurm-site-factor-lua", workload=jobs, epoch=START.unix_time)
    assert not any("NaN" in text for text in done.warnings)


def test_scores_that_differ_by_rounding_alone_are_no_ties() -> None:
    p, q = (column.ravel() for column in np.meshgrid(60.0 * 2 ** np.arange(12), 2.0 ** np.arange(8)))
    scores = np.log(p) + np.log(q)
    assert len(np.unique(scores)) > len(np.unique(p * q))
    scale = scale_of(scores)
    assert scale is not None
    assert tie_share(scale, scores) == 0.0
    # Half of these neighbours differ by more than rounding and share a number: three, three, and infinite ones apart.
    near = PriorityScale(0.0, 1.0, 10)
    assert tie_share(near, [0.1, 0.1 + 1e-15, 0.11, 0.9, -np.inf, np.inf, np.nan]) == 0.5


@pytest.mark.parametrize("name", ["F1", "SAF", "LIN-SYNTHETIC"])
def test_another_is_exported_as_it_is(name: str) -> None:
    model = Model(dataclasses.replace(CATALOGUE[name], epoch=START))
    done = make_with_few_ties(SCALED, model, make_site())
    assert done.policy is model.policy
    assert done.ties is not None
    assert done.ties < MOST_TIES


def test_ties_are_those_of_the_weight_that_was_asked_for() -> None:
    model = Model(dataclasses.replace(CATALOGUE["F1"], epoch=START))
    ties = []
    for weight in (2_000_000_000, 10_000, 100):
        done = make_with_few_ties(SCALED, model, dataclasses.replace(make_site(), weight=weight))
        assert done.export.scale is not None
        assert done.export.scale.largest == weight
        assert done.ties is not None
        ties.append(done.ties)
    assert ties[0] < MOST_TIES < ties[1] < ties[2] < 1


def test_without_whole_numbers_there_is_nothing_to_keep_apart() -> None:
    done = make_with_few_ties(UNSCALED, Model(CATALOGUE["WFP3"]), ExportSite())
    assert (done.policy, done.ties) == (CATALOGUE["WFP3"], None)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=20), st.floats(1e-9, 1e9))
def test_the_order_is_the_same(values: list[float], unit: float) -> None:
    p = np.array(values)
    ones = np.ones_like(p)
    order = np.argsort(p, kind="stable")
    result = compressed(Policy("x", "p"), unit).scores(p, ones, ones)
    assert (np.diff(result[order]) >= 0).all()
    # What is not near another by the precision of a double on this scale stays apart.
    far = np.diff(p[order]) > 1e-9 * np.maximum(np.abs(p[order][1:]), np.abs(p[order][:-1])) + 1e-9 * unit
    assert (np.diff(result[order])[far] > 0).all()


def test_no_value_and_infinity_stay_where_they_are() -> None:
    policy = compressed(Policy("x", "log10(p)"), 0.5)
    ones = np.ones(4)
    assert policy.scores([-1.0, 0.0, 1.0, np.inf], ones, ones).tolist() == [np.inf, -np.inf, 0.0, np.inf]
