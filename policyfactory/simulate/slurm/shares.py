"""From associations to the engine's shares."""

from __future__ import annotations

import math

import numpy as np

from policyfactory.engine.slurm_priority import Shares
from policyfactory.site.model import Association, Site

__all__ = ["shares_of"]

_ROOT = ("root", "")


def shares_of(site: Site) -> tuple[Shares, dict[tuple[str, str], int]]:
    """Return the shares of a site, and the number of each association by account and user.

    An account that counts as its parent does (``shares`` NaN) gives its children to that parent.

    Parameters
    ----------
    site : Site
    """
    known = {(one.account, one.user): one for one in site.associations}
    known.setdefault(_ROOT, Association("root"))

    def above(one: Association) -> tuple[str, str]:
        at = (one.account, "") if one.user else (one.parent or "root", "")
        while at != _ROOT and math.isnan(known[at].shares):
            at = (known[at].parent or "root", "")
        return at

    ordered = [_ROOT]
    below: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in known}
    for key, one in known.items():
        if key != _ROOT:
            below[above(one)].append(key)
    for key in ordered:
        ordered.extend(below[key])
    number = {key: place for place, key in enumerate(ordered)}
    count = len(ordered)
    parent, share = np.full(count, -1, dtype=np.int64), np.ones(count)
    for key, its in below.items():
        total = sum(known[child].shares for child in its if not math.isnan(known[child].shares))
        for child in its:
            parent[number[child]] = number[key]
            share[number[child]] = known[child].shares / total if total else 0.0
            if math.isnan(known[child].shares):
                share[number[child]] = math.nan if child[1] else 0.0
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum([len(below[key]) for key in ordered], out=begins[1:])
    children = np.array([number[child] for key in ordered for child in below[key]], dtype=np.int64)
    is_user = np.array([bool(key[1]) for key in ordered], dtype=np.uint8)
    return Shares(parent, is_user, share, begins, children, np.zeros(count), np.zeros(count), np.zeros(count)), number
