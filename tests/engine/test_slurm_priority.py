"""Fair share by Slurm's kernel, beside the plain Slurm."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from naive import slurm_kernels as plain
from policyfactory.engine.slurm.priority import FairShares, fair_tree, no_fair_tree
from policyfactory.simulation.slurm.machine import shares_of
from policyfactory.site.model import Association, NodeGroup, Partition, Site


def draw(rng: random.Random) -> FairShares:
    """Return a tree of accounts and users with some usage; many have used nothing, or as much as others."""
    associations, accounts = [Association("root")], ["root"]
    for number in range(rng.randint(1, 5)):
        name = f"a{number}"
        associations.append(Association(name, parent=rng.choice(accounts), shares=rng.choice((1, 1, 2, 5))))
        accounts.append(name)
    for number in range(rng.randint(1, 9)):
        shares = rng.choice((0, 1, 1, 3, math.nan))
        associations.append(Association(rng.choice(accounts[1:]), f"u{number}", shares=shares))
    site = Site("drawn", (NodeGroup("n1"),), (Partition("batch"),), associations=tuple(associations))
    shares, _ = shares_of(site)
    for at in range(len(shares.parent) - 1, 0, -1):
        if shares.is_user[at]:
            shares.usage[at] = rng.choice((0.0, 100.0, 100.0, 250.0, 1e6 * rng.random()))
        shares.usage[shares.parent[at]] += shares.usage[at]
    return shares


@pytest.mark.parametrize("rule", ["fair_tree", "no_fair_tree"])
def test_users_have_the_same_factors(rule: str) -> None:
    rng = random.Random(rule)
    for _ in range(150):
        shares = draw(rng)
        by_plain = FairShares(*(column.copy() for column in shares))
        {"fair_tree": fair_tree, "no_fair_tree": no_fair_tree}[rule](shares)
        getattr(plain, rule)(by_plain)
        users = shares.is_user == 1
        np.testing.assert_allclose(shares.factor[users], by_plain.factor[users], rtol=1e-12)
