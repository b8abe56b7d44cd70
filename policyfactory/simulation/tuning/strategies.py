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

Modern bandits are Thompson sampling and an upper-confidence-bound rule, on costs that are made comparable first.

Waits have no upper end and no scale that is known beforehand, weeks differ far more than policies do, and a queue is
handed on from one period to the next. So what a period cost under the policy in force is first divided by the mean
wait of all jobs seen so far, whatever the policy: 1 is an average period, in every log, and the unit does not matter.
Both rules then believe in a normal distribution of each policy's cost around the mean of all policies (a policy that
was not seen has that mean), with a variance that is estimated from all periods together; a log without a second
observation of any policy has the variance of the prior guess. A policy need not be tried before another comes again:
what is known of the others says what to expect of it. Old periods weigh less with a discount below 1.

Thompson sampling (Biometrika 25, 1933) takes the logarithm of the cost plus 1/2, so that a few terrible weeks do not
decide alone, and draws from the beliefs. Its standard deviations are halved: with a hundred periods and a dozen
policies the whole posterior explores until the end (the factor is v of Agrawal and Goyal, "Thompson sampling for
contextual bandits with linear payoffs", ICML 2013). The upper confidence bound is Bayes-UCB (Kaufmann, Cappe and
Garivier, "On Bayesian upper confidence bounds for bandit problems", AISTATS 2012): of each policy the 1 - 1/t quantile
of what it may be worth, on the mean wait per job itself, each period weighing by its jobs, as equation 9 of IEEE TPDS
29(10), 2018, does; its discount is that of Garivier and Moulines ("On upper-confidence bound policies for switching
bandit problems", ALT 2011). docs/tuning.md says how the two fare.
"""

from __future__ import annotations

import abc
from statistics import NormalDist
from typing import Literal

import numpy as np

from policyfactory.core.options import FloatArray

Feedback = Literal["simulate", "noisy", "bandit", "random", "thompson", "ucb"]


class Strategy(abc.ABC):
    """What chooses; asked once a period, in order."""

    @abc.abstractmethod
    def choose(self, period: int) -> int:
        """Return the policy of ``period``."""


class LearningStrategy(Strategy):
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


class EpsilonGreedy(LearningStrategy):
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


# Modern bandits. ------------------------------------------------------------------------------------------------------

_LOG_OFFSET = 0.5  # of an average period's cost: waits far below the average are all about as good
_VARIANCE = 1.0  # prior variance of a period's cost; counts as one observation
_TEMPER = 0.5  # factor of the standard deviations that are drawn from


class Beliefs(LearningStrategy):
    """What was seen of each policy, and the normal distributions that follow from it.

    Parameters
    ----------
    arms : int
        Number of policies.
    discount : float
        Weight of a period relative to the next one.
    """

    _spread: float  # prior standard deviation of a policy's mean around the mean of all

    def __init__(self, arms: int, discount: float) -> None:
        self._arms = arms
        self._discount = discount
        self._period: list[int] = []
        self._arm: list[int] = []
        self._jobs: list[int] = []
        self._wait_s: list[float] = []

    def learn(self, period: int, arm: int, jobs: int, wait_s: float) -> None:
        """Keep what was seen; a period in which no job ended teaches nothing."""
        if jobs:
            self._period.append(period)
            self._arm.append(arm)
            self._jobs.append(jobs)
            self._wait_s.append(wait_s)

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of each policy's cost, each (arms,); all alike if nothing is known."""
        jobs, wait = np.array(self._jobs, dtype=np.float64), np.array(self._wait_s)
        age = np.array(self._period[-1:] * len(jobs)) - np.array(self._period)
        fade = self._discount ** age.astype(np.float64)
        if not (fade * wait).any():
            return np.zeros(self._arms), np.zeros(self._arms)
        # 1 is the mean wait of all jobs so far.
        cost = wait / jobs * ((fade * jobs).sum() / (fade * wait).sum())
        arm = np.array(self._arm)
        cost, weight = self._observed(cost, fade, jobs)
        seen = np.bincount(arm, weight, self._arms).astype(np.float64)
        centre = float(np.average(cost, weights=weight))
        means = np.bincount(arm, weight * cost, self._arms)
        means = np.divide(means, seen, out=np.full(self._arms, centre), where=seen > 0)
        free = max(0.0, float(weight.sum()) - float((seen > 0).sum()))
        squares = float((weight * (cost - means[arm]) ** 2).sum())
        variance = (squares + _VARIANCE) / (free + 1)
        precision = 1 / self._spread**2 + seen / variance
        return (centre / self._spread**2 + seen * means / variance) / precision, 1 / np.sqrt(precision)

    @abc.abstractmethod
    def _observed(self, cost: FloatArray, fade: FloatArray, jobs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the observations, normal with a common variance, and their weights, each (n,).

        Parameters
        ----------
        cost : float64 array (n,)
            Cost of each period, in average periods.
        fade, jobs : float64 arrays (n,)
            Its weight by age, and its jobs.
        """


class ThompsonSampling(Beliefs):
    """A cost is drawn for each policy from what is believed of it; the least is chosen.

    Parameters
    ----------
    arms : int
        Number of policies.
    discount : float
        Weight of a period relative to the next one.
    random : Generator
        ``arms`` numbers are drawn each period.
    """

    _spread = 0.5  # of the logarithm: policies differ by about a factor of 1.6

    def __init__(self, arms: int, discount: float, random: np.random.Generator) -> None:
        super().__init__(arms, discount)
        self._random = random

    def choose(self, period: int) -> int:  # noqa: ARG002 (what counts is what was seen)
        """Return the policy with the least cost of those drawn; the first while nothing is known."""
        drawn = self._random.standard_normal(self._arms)
        mean, deviation = self.posterior()
        return int(np.argmin(mean + _TEMPER * deviation * drawn))

    def _observed(self, cost: FloatArray, fade: FloatArray, jobs: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002 (see Ucb)
        return np.log(_LOG_OFFSET + cost), fade


class Ucb(Beliefs):
    """The policy that is best if each is as good as it may reasonably be (Bayes-UCB); the first of equals."""

    _spread = 0.4  # in average periods

    def choose(self, period: int) -> int:  # noqa: ARG002 (what counts is what was seen)
        """Return the policy with the least lower bound of its cost; the first while nothing is known."""
        mean, deviation = self.posterior()
        reach = NormalDist().inv_cdf(1 - 1 / (len(self._arm) + 2))
        return int(np.argmin(mean - reach * deviation))

    def _observed(self, cost: FloatArray, fade: FloatArray, jobs: FloatArray) -> tuple[FloatArray, FloatArray]:
        return cost, fade * jobs / jobs.mean()
