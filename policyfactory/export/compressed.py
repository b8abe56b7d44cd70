"""Keep scores apart that whole numbers would make equal: the same order, on a scale of logarithms.

The sizes of scores like -(w/p)**3*q go from 1e-15 to 1e12. Spread evenly over two thousand million numbers, most of
them would get the same one. Then the export is made of another formula with the same order: log10(1 + score/c) for
scores above 0 and its mirror image below, where c is a score as small as many are.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.export.content import Export, Site
from policyfactory.export.scale import learn_scale
from policyfactory.export.targets import Target
from policyfactory.policy.nodes import Binary, Call, Expression, Negative, Number
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import MOST_TIES, tie_share
from policyfactory.policy.store import Model

__all__ = ["Made", "compressed", "make_with_few_ties"]

# Shares of the scores that lie nearer to 0 than the constants that are tried.
_SHARES = (0.001, 0.01, 0.1, 0.5)
_WORDS = "on a scale of logarithms, in the same order"


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """An export and how well it keeps scores apart.

    Parameters
    ----------
    export : Export
    policy : Policy
        What it was made of: the policy, or one with the same order.
    ties : float or None
        Share of neighbouring scores of the site's sample that get one whole number; None without whole numbers.
    """

    export: Export
    policy: Policy
    ties: float | None


def compressed(policy: Policy, unit: float) -> Policy:
    """Return a policy of the same order, whose score grows with the logarithm of the score beyond ``unit``.

    Parameters
    ----------
    policy : Policy
    unit : float
        Scores nearer to 0 than this keep their distances; above 0.
    """

    def side(score: Expression) -> Expression:
        part = Call("max", (score, Number(0.0)))
        return Call("log10", (Binary("+", Number(1.0), Binary("/", part, Number(unit))),))

    score = policy.expression
    formula = Binary("-", side(score), side(Negative(score))).text()
    description = f"{policy.description}; {_WORDS}" if policy.description else _WORDS
    return dataclasses.replace(policy, formula=formula, description=description[-2000:])


def make_with_few_ties(target: Target, model: Model, site: Site) -> Made:
    """Return the export; of a compressed formula, where the policy's own would give more than 1 % of ties.

    Errors are those of the target.
    """
    made = target.make(model, site)
    if made.scale is None:
        return Made(made, model.policy, None)
    first = Made(made, model.policy, tie_share(made.scale, _scores(model.policy, site)))
    if first.ties is None or first.ties <= MOST_TIES:
        return first
    policy, ties = min(((one, _ties(one, site)) for one in _candidates(model.policy, site)), key=lambda tried: tried[1])
    if ties >= first.ties:
        return first
    return Made(target.make(dataclasses.replace(model, policy=policy), site), policy, ties)


def _scores(policy: Policy, site: Site) -> NDArray[np.float64]:
    return site.sample.scores(policy)


def _ties(policy: Policy, site: Site) -> float:
    return tie_share(learn_scale(policy, site.sample, largest=site.weight), _scores(policy, site))


def _candidates(policy: Policy, site: Site) -> list[Policy]:
    scores = np.abs(_scores(policy, site))
    scores = scores[np.isfinite(scores) & (scores > 0)]
    units = sorted(set(np.quantile(scores, _SHARES, method="inverted_cdf").tolist()))
    return [compressed(policy, unit) for unit in units]
