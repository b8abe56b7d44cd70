"""The plain twin of a network: one job, one number at a time, Python's own floats; and small networks to try."""

from __future__ import annotations

import itertools

import numpy as np

from naive.formula import evaluate
from policyfactory.policy.expression import parse
from policyfactory.policy.network import STANDARD_INPUTS, Network


def dense(values: list[float], weights: list[list[float]], biases: list[float], *, cut: bool) -> list[float]:
    """Return the outputs of a layer; with ``cut`` negative ones are 0."""
    outputs = []
    for to, bias in enumerate(biases):
        total = bias
        for value, row in zip(values, weights, strict=True):
            total += value * row[to]
        outputs.append(0.0 if cut and total < 0 else total)
    return outputs


def score(network: Network, job: dict[str, float]) -> float:
    """Return minus the output of the network for a job {p, q, r, w, m, f}: lower runs first."""
    values = [evaluate(parse(formula), job) for formula in network.inputs]
    for place, layer in enumerate(network.layers, start=1):
        is_last = place == len(network.layers)
        values = dense(values, layer.weights.tolist(), layer.biases.tolist(), cut=not is_last)
    return -values[0]


def random_network(
    seed: int, widths: tuple[int, ...] = (6, 5, 7, 1), inputs: tuple[str, ...] = STANDARD_INPUTS, name: str = "NET"
) -> Network:
    """Return a network of random weights, as the learner begins with."""
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(0, 1 / np.sqrt(before), (before, after)), rng.normal(0, 0.3, after))
        for before, after in itertools.pairwise(widths)
    ]
    return Network.of(name, inputs, layers)
