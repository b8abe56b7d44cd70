"""Tuners, plainly: each choice is computed anew from the whole past, as in the equations of TPDS'18, section 5."""

from __future__ import annotations

from collections.abc import Sequence


def follow_the_leader(costs: Sequence[Sequence[float]], discount: float, periods: int) -> list[int]:
    """Equations 4 and 5: the least discounted sum of the past periods' costs; the first of equals."""
    choices = []
    for now in range(periods):
        past = [(t, row) for t, row in enumerate(costs) if t < now]
        totals = [sum(discount ** (now - 1 - t) * row[arm] for t, row in past) for arm in range(len(costs[0]))]
        choices.append(totals.index(min(totals)))
    return choices


def mean_waits(seen: Sequence[tuple[int, int, int, float]], arms: int, discount: float) -> list[float]:
    """Equation 9, both sums discounted from the policy's last period on; ``seen`` has (period, arm, jobs, wait)."""
    means = []
    for arm in range(arms):
        own = [(period, jobs, wait) for period, which, jobs, wait in seen if which == arm and jobs]
        last = max((period for period, _, _ in own), default=0)
        jobs_sum = sum(discount ** (last - period) * jobs for period, jobs, _ in own)
        wait_sum = sum(discount ** (last - period) * wait for period, _, wait in own)
        means.append(wait_sum / jobs_sum if own else 0.0)
    return means


def epsilon_greedy(
    world: Sequence[Sequence[tuple[int, float]]],
    arms: int,
    epsilon: float,
    discount: float,
    coins: Sequence[float],
    picks: Sequence[int],
) -> list[int]:
    """Equation 10 in a world that shows (jobs, wait) of the policy in force; ``world[period][arm]``."""
    choices: list[int] = []
    seen: list[tuple[int, int, int, float]] = []
    for period, row in enumerate(world):
        means = mean_waits(seen, arms, discount)
        arm = picks[period] if coins[period] < epsilon else means.index(min(means))
        choices.append(arm)
        seen.append((period, arm, *row[arm]))
    return choices
