"""Networks in the simulator: one policy after another, in tuners, and where they are refused."""

from __future__ import annotations

import math

import numpy as np

from naive.network import random_network
from naive.online_cases import NETWORKS, Shape, random_workload
from policyfactory.core.errors import UsageError
from policyfactory.policy.network import Network
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE, resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation, Tuner
from refusals import refusal


def test_a_network_that_is_a_formula_gives_its_schedule() -> None:
    rng = np.random.default_rng(31)
    # The area and the wait, as minus the output of one layer: exact in single precision.
    network = Policy.from_network(Network.of("AREA", ("p*q", "w"), [([[-1], [0.5]], [0])]))
    formula = Policy("AREA", "p*q - 0.5*w")
    for _ in range(30):
        workload = random_workload(rng, Shape(jobs=60))
        one, other = simulate(workload, network), simulate(workload, formula)
        np.testing.assert_array_equal(one.start, other.start)


def test_a_queue_that_is_handed_from_policy_to_policy() -> None:
    rng = np.random.default_rng(32)
    policies = [resolve("WFP3"), *NETWORKS, resolve("SAF")]
    for _ in range(20):
        workload = random_workload(rng, Shape(jobs=40))
        for number, policy in enumerate(policies):
            simulation = SwitchingSimulation(workload, policies)
            simulation.run(number, math.inf)
            np.testing.assert_array_equal(simulation.start, simulate(workload, policy).start)


def test_a_tuner_chooses_among_networks() -> None:
    rng = np.random.default_rng(33)
    workload = random_workload(rng, Shape(jobs=300, gap=20, longest=60))
    alone = Tuner("one", (NETWORKS[0],), "simulate", 300).run(workload, Rules(), seed=1, number=1)
    np.testing.assert_array_equal(alone.start, simulate(workload, NETWORKS[0]).start)
    both = Tuner("two", (NETWORKS[0], CATALOGUE["SPF"]), "simulate", 300).run(workload, Rules(), seed=1, number=1)
    assert (both.start >= workload.submit).all()


def test_the_programs_of_sc17_see_no_free_processors() -> None:
    workload = random_workload(np.random.default_rng(34), Shape(overruns=False))
    with refusal(UsageError, "NET f"):
        simulate(workload, Policy.from_network(random_network(1)), compatibility="sc17", decide_by="runtime")
    blind = Policy.from_network(random_network(1, (2, 3, 1), ("w", "p")))
    assert len(simulate(workload, blind, compatibility="sc17", decide_by="runtime").start) == len(workload)
