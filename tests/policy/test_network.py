"""Networks as policies: what they compute, what they refuse, and that they go wherever a formula goes."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.formula import expressions, random_jobs, same_bits
from naive.network import random_network, score
from policyfactory.core.errors import UsageError
from policyfactory.policy.expression import parse
from policyfactory.policy.network import STANDARD_INPUTS, Layer, Network, paper_inputs
from policyfactory.policy.policy import Policy
from refusals import refusal, refused
from support import examples


def columns(jobs: list[dict[str, float]]) -> list[np.ndarray]:
    return [np.array([job[name] for job in jobs]) for name in "pqrw"]


@examples(100)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 20), min_size=0, max_size=4),
    st.lists(expressions(depth=3, variables="pqwmf"), min_size=0, max_size=5),
)
def test_scores_equal_the_plain_twin(seed: int, hidden: list[int], formulas: list) -> None:
    inputs = ("log10(w + 10) - 1", *(formula.text() for formula in formulas))
    network = random_network(seed, (len(inputs), *hidden, 1), inputs)
    jobs = random_jobs(8, seed)
    result = Policy.from_network(network).scores(*columns(jobs), m=256, f=jobs[0]["f"])
    for job, value in zip(jobs, result, strict=True):
        plain = score(network, job)
        assert same_bits(value, math.inf if math.isnan(plain) else plain), job


def test_by_hand() -> None:
    # relu(p - 2 q), relu(-p + q + 1); 3 of the first less 2 of the second, and 0.5: the highest first.
    network = Network.of("HAND", ("p", "q"), [([[1, -1], [-2, 1]], [0, 1]), ([[3], [-2]], [0.5])])
    policy = Policy.from_network(network)
    assert policy.scores([10, 1], [1, 4], 0).tolist() == [-(3 * 8 + 0.5), -(-2 * 4 + 0.5)]
    assert (network.widths, network.parameters) == ((2, 2, 1), 9)
    assert policy.variables == {"p", "q"}
    assert policy.is_static


def test_weights_are_those_of_single_precision() -> None:
    network = Network.of("x", ("p",), [([[0.1]], [0])])
    assert Policy.from_network(network).scores([1], [1], 0)[0] == -float(np.float32(0.1))


def test_what_has_no_value_runs_last() -> None:
    network = Network.of("x", ("log10(w)",), [([[1, 0]], [0, 1]), ([[1], [1]], [0])])
    # log10(0) is minus infinity, and infinity times a weight of 0 is no number.
    assert Policy.from_network(network).scores([1, 1], [1, 1], 0, [0, 10]).tolist() == [math.inf, -2.0]
    broken = Network.of("x", ("(p - 1)/(p - 1)",), [([[1, 1]], [0, 0]), ([[1], [1]], [0])])
    assert Policy.from_network(broken).scores([1, 3], [1, 1], 0).tolist() == [math.inf, -2.0]


def test_standard_inputs() -> None:
    job = {"p": 100.0, "q": 10.0, "w": 90.0, "m": 1000.0, "f": 10.0, "r": 0.0}
    one = [
        -Policy.from_network(Network.of("x", (*STANDARD_INPUTS,), [(np.eye(6)[:, [place]], [0])])).scores(
            job["p"], job["q"], 0, job["w"], job["m"], job["f"]
        )[0]
        for place in range(6)
    ]
    assert one == pytest.approx([1, 2, 1, -2, 1, 0.01])


def test_inputs_of_the_paper() -> None:
    inputs = paper_inputs(124_707.0)
    network = random_network(0, (8, 32, 16, 8, 1), inputs)
    assert network.parameters == 961
    assert set().union(*(parse(formula).variables for formula in inputs)) == {"w", "p", "q", "m", "f"}
    values = [
        -Policy.from_network(Network.of("x", inputs, [(np.eye(8)[:, [place]], [0])])).scores(
            [124_707, 1], [257, 1], 0, [86_400, 0], 256, 1
        )
        for place in range(8)
    ]
    assert np.array(values)[:, 0] == pytest.approx([0.99999] * 3 + [1] * 4 + [0.00001])
    assert np.array(values)[:, 1] == pytest.approx([0, 1 / 124_707, 1 / 256] + [1] * 4 + [0.99999])


def test_equal_if_the_numbers_are() -> None:
    one, same, other = random_network(1), random_network(1), random_network(2)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != dataclasses.replace(one, name="OTHER")
    assert Policy.from_network(one) == Policy.from_network(same)
    assert Policy.from_network(one) != Policy.from_network(other)
    assert Policy.from_network(one).formula == f"network 6-5-7-1, digest {one.digest[:12]}"
    assert one.digest != Network.of("NET", (*STANDARD_INPUTS[:5], "f/m + 1"), one_layers(one)).digest


def one_layers(network: Network) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(layer.weights, layer.biases) for layer in network.layers]


def test_it_goes_to_other_processes() -> None:
    policy = Policy.from_network(random_network(1))
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    jobs = random_jobs(5, 1)
    np.testing.assert_array_equal(again.scores(*columns(jobs), 256, 9), policy.scores(*columns(jobs), 256, 9))


def test_its_arrays_are_its_own() -> None:
    weights = np.ones((1, 1), dtype=np.float32)
    layer = Layer(weights, np.zeros(1, dtype=np.float32))
    weights[0, 0] = 7
    assert layer.weights[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[0, 0] = 7


def test_what_needs_a_formula_says_how_to_get_one() -> None:
    policy = Policy.from_network(random_network(1))
    assert not policy.has_formula
    with refusal(UsageError, "NET net.json without"):
        _ = policy.expression


LAYER = ([[1.0]], [0.0])


@pytest.mark.parametrize(
    ("inputs", "layers", "says"),
    [
        ((), [LAYER], "has 0 1 64"),
        (("p",) * 65, [LAYER], "has 65"),
        (("p",), [], "has 0 1 16"),
        (("p",), [LAYER] * 17, "has 17"),
        (("p*",), [LAYER], "input 1"),
        (("p + r",), [LAYER], "input 1"),
        (("p" + " " * 2000,), [LAYER], "input 1 2,001"),
        (("f/m",), [LAYER], "inputs same"),
        (("p", "q"), [LAYER], "has 2 1"),
        (("p",), [([[1, 2]], [0, 0]), LAYER], "layer 1 2"),
        (("p",), [([[1, 2]], [0, 0])], "2 outputs"),
        (("p",), [([[math.nan]], [0])], "layer 1"),
        (("p",), [([[1e39]], [0])], "layer 1"),
        (("p",), [([1.0], [0])], "layer 1"),
        (("p",), [([[1.0]], [0, 1])], "layer 1 2"),
        (("p",), [(np.ones((1, 1025)), np.ones(1025))], "layer 1 1,025 1,024"),
    ],
)
def test_networks_that_cannot_be(inputs: tuple[str, ...], layers: list, says: str) -> None:
    refused(UsageError, f"NET {says}", Network.of, "NET", inputs, layers)


def test_an_unknown_mode_is_refused() -> None:
    refused(UsageError, "fast standard", dataclasses.replace, random_network(1), mode="fast")
