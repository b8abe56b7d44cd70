"""What the inputs of a network do: known by hand where the network is, dead where they do nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from naive.network import random_network
from naive.network import score as plain_score
from policyfactory.core.errors import UsageError
from policyfactory.core.picture import save_picture
from policyfactory.policy.explain import (
    JobSample,
    NetworkEffects,
    draw_effects,
    explain,
    input_values,
    network_effects,
    outputs,
    parse_job,
    wide_jobs,
)
from policyfactory.policy.network import Network, paper_inputs
from policyfactory.policy.policy import Policy
from refusals import refused
from snapshots import snapshot


def linear(inputs: tuple[str, ...], weights: list[float]) -> Network:
    return Network.of("LINEAR", inputs, [(np.array(weights)[:, None], [0.25])])


def test_of_a_linear_network() -> None:
    # The score is minus the output: more of q is later, more of w sooner.
    effects = network_effects(linear(("log10(q)", "log10(w + 10) - 1", "log10(p)"), [-2, 0.5, 0]))
    size, wait, request = effects.inputs
    assert effects.live == (size, wait)
    assert effects.dead == (request,)
    snapshot(request.why_dead)
    assert (size.label, size.variable, size.words) == ("processors", "q", "more: later")
    assert (wait.label, wait.variable, wait.words) == ("wait", "w", "more: sooner")
    # Every job has the same curve: 2 log10(q) less its mean.
    curve = 2 * np.log10(size.axis)
    np.testing.assert_allclose(size.mean, curve - curve.mean(), atol=1e-12)
    np.testing.assert_allclose(size.low, size.high, atol=1e-12)
    assert size.swing == pytest.approx(np.ptp(curve))
    assert size.share + wait.share == pytest.approx(1)
    assert size.share == pytest.approx(size.swing / (size.swing + wait.swing))


def test_four_live_inputs_of_the_papers_network() -> None:
    network = random_network(5, (8, 32, 16, 8, 1), paper_inputs(100_000.0))
    effects = network_effects(network)
    assert [one.label for one in effects.live] == ["wait", "request", "processors (share)", "fits now"]
    assert [(one.number, one.why_dead) for one in effects.dead] == [(place, "constant") for place in (4, 5, 6, 7)]
    assert effects.inputs[7].axis.tolist() == pytest.approx([0.00001, 0.99999])
    assert sum(one.share for one in effects.inputs) == pytest.approx(1)
    json.dumps(effects.as_dict(), allow_nan=False)


def test_an_input_that_these_jobs_do_not_tell_apart() -> None:
    jobs = JobSample(np.array([60.0, 90]), np.array([4.0, 4]), np.zeros(2), np.full(2, 8.0), 8.0, "two jobs")
    effects = network_effects(linear(("p", "q", "w"), [1, 1, 1]), jobs)
    assert [one.why_dead for one in effects.inputs] == ["", "constant for two jobs", "constant for two jobs"]


def test_what_turns_is_said() -> None:
    # |log10(p) - 3|: the score falls up to 1000 s and rises then.
    bent = Network.of("BENT", ("log10(p)",), [([[1, -1]], [-3, 3]), ([[-1], [-1]], [0])])
    (effect,) = network_effects(bent).inputs
    turn = effect.axis[np.argmin(effect.mean)]
    assert 700 < turn < 1400
    snapshot(effect.words)
    assert effect.words.endswith(", then later")


@pytest.mark.parametrize(("slope", "words"), [(-0.02, "more: sooner"), (-0.5, "sooner up to 1")])
def test_a_little_rise_is_no_turn(slope: float, words: str) -> None:
    # From 1000 s on the score rises again, by so much of how it fell.
    bent = Network.of("BENT", ("log10(p)",), [([[1, -1]], [-3, 3]), ([[slope], [-1]], [0])])
    (effect,) = network_effects(bent).inputs
    assert effect.words.startswith(words)


def test_what_goes_either_way_is_said() -> None:
    # The product of the signs of two inputs, nearly: more of the one is sooner or later, as the other is.
    mixed = Network.of(
        "MIXED",
        ("min(1, max(0, p/3600)) - 0.5", "min(1, max(0, f - q + 1)) - 0.5"),
        [([[1, -1, 1, -1], [1, -1, -1, 1]], [0, 0, 0, 0]), ([[1], [1], [-1], [-1]], [0])],
    )
    p = np.repeat([600.0, 3600.0], 50)
    jobs = JobSample(p, np.ones(100), np.zeros(100), np.tile([0.0, 8.0], 50), 8.0, "halves")
    snapshot(network_effects(mixed, jobs).inputs[1].words)


def test_free_processors_are_the_same_for_the_whole_queue() -> None:
    (_, free) = network_effects(linear(("p", "f/m"), [1, 1])).inputs
    assert (free.label, free.variable) == ("free processors (share)", "f")
    snapshot(free.words)


def test_inputs_are_those_of_the_array_machine() -> None:
    jobs = wide_jobs(64)
    assert (jobs.q <= 64).all()
    assert (jobs.f <= 64).all()
    assert jobs.q.min() == 1
    network = random_network(6)
    table = np.column_stack([input_values(formula, jobs) for formula in network.inputs])
    result = -outputs(network, table)
    for at in range(0, len(jobs), 7):
        job = {"p": jobs.p[at], "q": jobs.q[at], "w": jobs.w[at], "f": jobs.f[at], "m": jobs.m, "r": 0.0}
        plain = plain_score(network, {name: float(value) for name, value in job.items()})
        assert result[at] == pytest.approx(plain, rel=1e-9, abs=1e-9)
        exact = Policy.from_network(network).scores(job["p"], job["q"], 0, job["w"], job["m"], job["f"])
        assert result[at] == pytest.approx(exact[0], rel=1e-9, abs=1e-9)


def test_jobs_without_a_value_are_left_out() -> None:
    network = linear(("log10(w)", "p"), [1, 1])
    jobs = JobSample(np.array([60.0, 90, 120]), np.ones(3), np.array([0.0, 10, 100]), np.ones(3), 8.0, "three jobs")
    assert len(network_effects(network, jobs).jobs) == 2
    nothing = JobSample(np.array([60.0]), np.ones(1), np.zeros(1), np.ones(1), 8.0, "a job")
    refused(UsageError, "value inputs LINEAR", network_effects, network, nothing)
    refused(UsageError, "nobody job", JobSample, np.empty(0), np.empty(0), np.empty(0), np.empty(0), 8.0, "nobody")


@pytest.mark.parametrize("widths", [(8, 4, 1), pytest.param((8, 1), marks=pytest.mark.slow)])
def test_the_picture(tmp_path: Path, widths: tuple[int, ...]) -> None:
    effects = network_effects(random_network(7, widths, paper_inputs(100_000.0)))
    figure = draw_effects(effects)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title().rpartition(" (")[0] for axes in shown] == [
        "wait",
        "request",
        "processors (share)",
        "fits now",
    ]
    assert "4 constants" in figure.get_supxlabel()
    assert [text.get_text() for text in shown[-1].get_xticklabels()] == ["no", "yes"]
    one, other = (save_picture(draw_effects(effects), tmp_path / f"{name}.svg") for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_a_picture_of_nothing() -> None:
    effects = network_effects(linear(("p", "q"), [0, 0]))
    assert not effects.live
    assert isinstance(effects, NetworkEffects)
    figure = draw_effects(effects)
    assert not [axes for axes in figure.axes if axes.get_visible()]
    snapshot(figure.get_supxlabel())


def test_a_job_under_a_network() -> None:
    policy = Policy.from_network(linear(("p", "q", "min(1, max(0, f - q + 1))", "0.5"), [-1, 0, 100, 3]))
    refused(UsageError, "4-1 q= f= LINEAR", explain, policy, parse_job("p=60"))
    result = explain(policy, parse_job("p=60 q=4 f=3"))
    assert result.score == 60 - 1.5 - 0.25
    assert [(term.value, term.words) for term in result.terms] == [
        (60, "more: later"),
        (4, "does not change near this job"),
        (0, "more: sooner"),
        (0.5, "the same for all jobs"),
    ]
    snapshot(result.changes)
