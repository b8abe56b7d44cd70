"""A policy as weights of Slurm's own priority/multifactor: nothing to install but lines of configuration.

A linear policy a + b*p + c*q + d*r + e*w is exact where b = 0 and d - e >= 0: c by PriorityWeightTRES, and (d - e) by
the age, as r is now minus the time waited, and now is the same for all jobs. The age weight has no sign, and nothing
multiplies the time limit. For any other policy these are the weights with the fewest inverted pairs of waiting jobs,
and the export says how many are.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.units import DAY
from policyfactory.export.content import Export, File, Site, ascii_text, comment, header, instructions
from policyfactory.export.expressible import check_size, fixed_epoch, linear_coefficients, slope, unexpressed
from policyfactory.export.queue import Queue
from policyfactory.export.scripts import sentences
from policyfactory.export.slurm.factors import LONGEST_AGE, Machine, Weights, make_weights
from policyfactory.export.slurm.nice import queue_script
from policyfactory.export.slurm.uninstall import uninstall_script
from policyfactory.export.slurm.weights_fit import Distance, fit_weights
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["FILE_NAME", "exact_weights", "make"]

FILE_NAME = "policyfactory_weights.conf"
LOG_NAME = "log_weights.sh"
# A Kendall's tau below this is no better than chance.
_USELESS = 0.1
_BACKFILL = "SchedulerParameters=bf_job_part_count_reserve=1"


def exact_weights(policy: Policy, machine: Machine) -> tuple[Weights | None, str]:
    """Return the weights that order all jobs as the policy does, and else why there are none.

    Parameters
    ----------
    policy : Policy
        Without m.
    machine : Machine
    """
    factors = linear_coefficients(policy.expression)
    if factors is None:
        return None, "the formula is not linear"
    if factors["p"]:
        return None, "the formula has p, and no weight of Slurm multiplies the time limit"
    age = factors["r"] - factors["w"]
    if age < 0:
        return None, "later jobs go first, and the age weight of Slurm cannot be negative"
    if not (age or factors["q"]):
        return None, "the terms of the formula cancel each other"
    return make_weights((age, -factors["q"], 0.0), machine), ""


def make(model: Model, site: Site) -> Export:
    """Return the lines of configuration.

    Raises
    ------
    ExportError
        If the policy has m, an r that needs a fixed epoch and has none, or an order that
        no weights come near to.
    """
    policy = model.policy
    check_size(policy)
    if policy.epoch.rule != "oldest-waiting" and slope(policy.expression, "r") is None:
        fixed_epoch(policy, "slurm-weights")
    if site.nodes is not None and site.nodes < 1:
        raise UsageError(f"--nodes {site.nodes}: a cluster has at least 1 node")
    machine = Machine(site.processors or int(site.sample.q.max()), site.nodes if site.processors else None)
    weights, reason = exact_weights(policy, machine)
    if weights is None:
        weights, distance = _nearest(policy, site, machine, reason)
        limits = (*_nearness(weights, distance, site, reason), *_limits(policy, weights, site))
    else:
        limits = (*sentences("slurm.txt", "weights_exact"), *_limits(policy, weights, site))
    name, way = (LOG_NAME, "queue_log") if site.log_only else (FILE_NAME, "weights")
    install, rollback = (sentences("slurm.txt", f"{way}_{what}", FILE=name) for what in ("install", "rollback"))
    head = header(model, site, "slurm-weights") + instructions((), install, rollback, limits)
    if site.log_only:
        ordered = dataclasses.replace(policy, formula=weights.formula, threshold=math.inf)
        return Export((queue_script(LOG_NAME, head, ordered, 0, site, everybody=True),), (), install, rollback, limits)
    text = "\n".join([*comment(head), "", *weights.lines]) + "\n"

    def priorities(queue: Queue) -> NDArray[np.float64]:
        p, q, w = (np.asarray(column, dtype=np.float64) for column in (queue.p, queue.q, queue.now - queue.submit))
        return weights.priorities(p, q, w)

    uninstall = uninstall_script(policy, ("start", "conf", "weights", "end"), FILE_NAME)
    settings, files = (*weights.lines, _BACKFILL), (File(FILE_NAME, text),)
    return Export(files, settings, install, rollback, limits, priorities, uninstall=uninstall)


def _nearest(policy: Policy, site: Site, machine: Machine, reason: str) -> tuple[Weights, Distance]:
    nearest = fit_weights(policy, site.sample, machine)
    if nearest is None:
        raise ExportError(
            f"policy {policy.name} gives the jobs of {site.sample.origin} one score; there is nothing to order by "
            "(does it need --workload LOG, or another policy?)"
        )
    if nearest[1].tau < _USELESS:
        raise ExportError(
            f"policy {policy.name} cannot be made of Slurm's weights: {reason}, and the order of the nearest weights "
            f"has nothing to do with it (Kendall's tau {nearest[1].tau:.2f} on a sample queue); "
            "use --to slurm-site-factor-lua, or slurm-site-factor-c for a policy with w" + _size_hint(site)
        )
    return nearest


def _nearness(weights: Weights, distance: Distance, site: Site, reason: str) -> tuple[str, ...]:
    return sentences(
        "slurm.txt",
        "weights_near",
        *(["weights_no_size"] if weights.machine.nodes is None else []),
        REASON=reason,
        SAMPLE=site.sample.origin,
        INVERTED=f"{100 * distance.inverted:.1f}",
        PAIRS=f"{distance.pairs:,}",
        TIED=f"{100 * distance.tied:.1f}",
        TAU=f"{distance.tau:.3f}",
        FORMULA=weights.formula,
    )


def _size_hint(site: Site) -> str:
    return "" if site.nodes and site.processors else ", or give the size of the cluster: --processors N --nodes N"


def _limits(policy: Policy, weights: Weights, site: Site) -> tuple[str, ...]:
    applies = {
        "weights_age": bool(weights.age),
        "weights_size": bool(weights.size),
        "weights_sample": site.processors is None,
        "weights_limits": True,
    }
    return unexpressed(policy, can_oldest_waiting=True, can_wait=True) + sentences(
        "slurm.txt",
        *(name for name, does in applies.items() if does),
        LONGEST_AGE=LONGEST_AGE // DAY,
        PER_NODE=f"{weights.machine.per_node:g}",
        PROCESSORS=f"{weights.machine.processors:,}",
        SPAN=_span(weights),
        FLAGS=next(line for line in weights.lines if line.startswith("PriorityFlags=")),
    )


def _span(weights: Weights) -> str:
    low = weights.base + min(0.0, weights.processor * weights.machine.processors)
    high = weights.base + max(0.0, weights.processor * weights.machine.processors) + weights.age + abs(weights.size)
    return ascii_text(f"{math.floor(low):,} to {math.ceil(high):,}")
