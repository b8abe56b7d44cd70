"""How the policy of the next period is chosen from what is known of the past ones.

Sections 5.1 to 5.3 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
policies", IEEE TPDS 29(10), 2018. Decided here, where the article is silent:

- Equal costs: the first in the list goes first. So the first policy, usually the site's own, is used until
  past periods favour another.
- Bandits: a policy that has not been seen, because it was never in force or because no job ended while it was, has
  the cost 0 (equation 9 with 0/0 read as 0). Each policy is tried once, in the list's order, before one comes
  again. The published simulator (freuk/ocst, bandit.ml) starts like that too.
- A period in which no job ended teaches nothing.
- Equation 9 divides a sum that is discounted by a number of jobs that is not: taken as printed, the cost of a
  policy that is left alone would fall to 0, and the worst would come back. Here both are discounted, by the age of a
  period relative to the policy's own last one. Without discount, as in the article, that is the same.
"""

from __future__ import annotations

import abc
from typing import Literal

import numpy as np

from policyfactory.core.arrays import FloatArray

__all__ = ["EpsilonGreedy", "Feedback", "FollowTheLeader", "Learner", "Strategy", "Uniform"]

Feedback = Literal["simulate", "noisy", "bandit", "random", "thompson", "ucb"]


class Strategy(abc.ABC):
    """What chooses; asked once a period, in order."""

    @abc.abstractmethod
    def choose(self, period: int) -> int:
        """Return the policy of ``period``."""


class Learner(Strategy):
    """What learns from the jobs that ended under the policy in force."""

    @abc.abstractmethod
    def learn(self, period: int, arm: int, jobs: int, wait_s: float) -> None:
        """Take in what was seen in ``period`` under policy ``arm``: the jobs that ended in it and their total wait."""


class FollowTheLeader(Strategy):
    """The policy with the least cost over the past periods (equations 4 and 5, 7 and 8).

    Parameters
    ----------
    costs : float64 array (periods, arms), seconds
        Cost of each policy in each period; periods after the last row cost nothing.
    discount : float
        Weight of a period relative to the next one.
    """

    def __init__(self, costs: FloatArray, discount: float) -> None:
        self._costs = costs
        self._discount = discount
        self._total = np.zeros(costs.shape[1])
        self._known = 0

    def choose(self, period: int) -> int:
        """Return the first of the policies with the least discounted cost of the periods before ``period``."""
        # Equation (4), one period at a time: w(->T) = lambda w(->T-1) + w(T-1).
        for past in range(self._known, period):
            self._total *= self._discount
            if past < len(self._costs):
                self._total += self._costs[past]
        self._known = period
        return int(np.argmin(self._total))


class Uniform(Strategy):
    """Any policy, each with the same probability.

    Parameters
    ----------
    arms : int
        Number of policies.
    pick : Generator
        One number is drawn each period.
    """

    def __init__(self, arms: int, pick: np.random.Generator) -> None:
        self._arms = arms
        self._pick = pick

    def choose(self, period: int) -> int:  # noqa: ARG002 (all periods are the same)
        """Return a policy drawn at random."""
        return int(self._pick.integers(self._arms))


class EpsilonGreedy(Learner):
    """Mostly the policy with the least mean wait per job so far, sometimes any (equations 9 and 10).

    Parameters
    ----------
    arms : int
        Number of policies.
    epsilon : float
        Probability with which a period is given to a policy drawn at random.
    discount : float
        Weight of a period relative to the next one.
    coin, pick : Generator
        One number of each is drawn every period, whether it is needed or not: so with ``epsilon`` 1 the choices are
        those of `Uniform` with the same ``pick``, and two values of ``epsilon`` meet the same luck.
    """

    def __init__(
        self, arms: int, epsilon: float, discount: float, coin: np.random.Generator, pick: np.random.Generator
    ) -> None:
        self._epsilon = epsilon
        self._discount = discount
        self._coin = coin
        self._any = Uniform(arms, pick)
        self._last = np.zeros(arms, dtype=np.int64)
        self._jobs = np.zeros(arms)
        self._wait_s = np.zeros(arms)

    def choose(self, period: int) -> int:
        """Return the best policy so far, or with probability epsilon any."""
        explores = self._coin.random() < self._epsilon
        drawn = self._any.choose(period)
        return drawn if explores else int(np.argmin(self.means()))

    def learn(self, period: int, arm: int, jobs: int, wait_s: float) -> None:
        """Add what was seen to the policy's discounted mean (see the head of this module)."""
        if jobs:
            fade = self._discount ** int(period - self._last[arm])
            self._jobs[arm] = fade * self._jobs[arm] + jobs
            self._wait_s[arm] = fade * self._wait_s[arm] + wait_s
            self._last[arm] = period

    def means(self) -> FloatArray:
        """Return the mean wait of each policy in seconds; 0 for one that was not seen yet."""
        return np.divide(self._wait_s, self._jobs, out=np.zeros(len(self._jobs)), where=self._jobs > 0)
