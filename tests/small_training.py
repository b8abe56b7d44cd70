"""A small log, and worlds of it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from policyfactory.core.options import Float32Array, Int64Array
from policyfactory.policy.network import Network
from policyfactory.search.reinforce.options import PpoOptions, ppo_options
from policyfactory.search.reinforce.rollouts import PaperWorld, StandardWorld, World
from policyfactory.simulation.compat import CommittedLog
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin

JOBS = 40


@functools.cache
def small_log() -> Workload:
    log = generate_lublin(64, 600, seed=5)
    # Three times the load, so that there are queues.
    return dataclasses.replace(log, submit=log.submit // 3)


def small_world(mode: str, episodes: int = 8, *, backfill: bool = True, goal: str = "mean_bsld") -> World:
    if mode == "paper":
        return PaperWorld(CommittedLog.of_workload(small_log()), JOBS, episodes, backfill=backfill, goal=goal)
    return StandardWorld(small_log(), JOBS, episodes, rules=Rules(backfill="easy" if backfill else "none"), goal=goal)


def numbers_from(network: Network) -> Float32Array:
    """Return the numbers of a policy's network: what `network_of` is given."""
    parts = [part.ravel() for layer in network.layers for part in (layer.weights.T, layer.biases)]
    return np.concatenate(parts).astype(np.float32, copy=False)


def all_starts() -> Int64Array:
    return np.arange(len(small_log()) - JOBS)


def few(**changes: object) -> PpoOptions:
    """Return options of a run of a second."""
    settings = {"iterations": 4, "windows": 2, "rollouts": 4, "decisions": 200, "batch": 100, "checkpoint_every": 1}
    return ppo_options(**{**settings, **changes})  # type: ignore[arg-type]
