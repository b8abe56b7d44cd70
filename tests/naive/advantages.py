"""The plain twin of `policyfactory.search.reinforce.training`: one decision at a time."""

from __future__ import annotations

Episode = dict[str, list[float]]
"""``cost`` of each decision, how many jobs were ``started`` before it, and the ``whole`` cost (one number)."""


def to_go(cost: list[float], gamma: float) -> list[float]:
    return [sum(gamma ** (later - at) * cost[later] for later in range(at, len(cost))) for at in range(len(cost))]


def against_others(episodes: list[Episode], one: int, at: int, gamma: float) -> float:
    """Return the mean cost to go of all rollouts where as many jobs were started, minus one's own, by the mean cost."""
    expected = 0.0
    for other in episodes:
        reached = [step for step, s in enumerate(other["started"]) if s <= episodes[one]["started"][at]]
        expected += to_go(other["cost"], gamma)[max(reached, default=0)]
    mean = sum(episode["whole"][0] for episode in episodes) / len(episodes)
    return (expected / len(episodes) - to_go(episodes[one]["cost"], gamma)[at]) / mean


def generalised(cost: list[float], value: list[float], gamma: float, gae: float) -> list[float]:
    """Return the generalised advantages of an episode, whose end is worth 0."""
    following = [*value[1:], 0.0]
    delta = [-c + gamma * after - v for c, after, v in zip(cost, following, value, strict=True)]
    return [
        sum((gamma * gae) ** (later - at) * delta[later] for later in range(at, len(delta))) for at in range(len(delta))
    ]
