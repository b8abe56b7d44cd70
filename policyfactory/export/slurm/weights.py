"""A policy as weights of Slurm's own priority/multifactor: nothing to install but lines of configuration.

A linear policy a + b*p + c*q + d*r + e*w is exact where b = 0 and d - e >= 0: c by PriorityWeightTRES, and (d - e) by
the age, as r is now minus the time waited, and now is the same for all jobs. The age weight has no sign, and nothing
multiplies the time limit. For any other policy these are the weights with the fewest inverted pairs of waiting jobs,
and the export says how many are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.units import DAY
from policyfactory.export.expressible import fixed_epoch, linear_coefficients, prepare, slope, unexpressed
from policyfactory.export.queue import Queue
from policyfactory.export.slurm.factors import LONGEST_AGE, Machine, Weights, make_weights
from policyfactory.export.slurm.weights_fit import Distance, fit_weights
from policyfactory.export.targets import Export, File, Site, Target, ascii_text, header, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["FILE_NAME", "TARGET", "exact_weights", "make"]

FILE_NAME = "policyfactory_weights.conf"
# A Kendall's tau below this is no better than chance.
_USELESS = 0.1
_BACKFILL = "SchedulerParameters=bf_job_part_count_reserve=1"

_INSTALL = (
    (
        f"Copy {FILE_NAME} beside slurm.conf, on every host that has one. In slurm.conf, put a # before the lines of "
        "the same names (keep them for the way back) and add:"
    ),
    f"$ Include {FILE_NAME}",
    "For EASY backfilling, add bf_job_part_count_reserve=1 to the SchedulerParameters of slurm.conf.",
    "Where PriorityType was another one, restart slurmctld; else:",
    "$ scontrol reconfigure",
    "Look at the parts of each waiting job's priority:",
    "$ sprio -l",
)
_ROLLBACK = (
    (
        "Remove the Include line and take the # away from the lines of before. Where PriorityType is another one then, "
        "restart slurmctld (reconfigure does not change it); else:"
    ),
    "$ scontrol reconfigure",
)


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
        If the policy has m without ``site.processors``, an r that needs a fixed epoch and has none, or an order that
        no weights come near to.
    """
    model = prepare(model, processors=site.processors)
    policy = model.policy
    if "m" in policy.variables:
        raise ExportError(f"policy {policy.name} has m; give the machine's size: --processors N")
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
        limits = ("These weights are exact: they order jobs as the formula does.", *_limits(policy, weights, site))
    settings = (*weights.lines, _BACKFILL)
    comment = [*header(model, site, "slurm-weights"), *instructions((), _INSTALL, _ROLLBACK, limits)]
    text = "\n".join([*(f"# {line}".rstrip() for line in comment), "", *weights.lines]) + "\n"

    def priorities(queue: Queue) -> NDArray[np.float64]:
        p, q, w = (np.asarray(column, dtype=np.float64) for column in (queue.p, queue.q, queue.now - queue.submit))
        return weights.priorities(p, q, w)

    return Export((File(FILE_NAME, text),), settings, _INSTALL, _ROLLBACK, limits, priorities)


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


def _nearness(weights: Weights, distance: Distance, site: Site, reason: str) -> list[str]:
    sentences = [
        (
            f"NOT exact: {reason}. These are the nearest weights. On a sample queue ({site.sample.origin}) "
            f"{100 * distance.inverted:.1f} % of {distance.pairs:,} pairs of waiting jobs are the other way round and "
            f"{100 * distance.tied:.1f} % are not told apart; Kendall's tau is {distance.tau:.3f} (1: the same order)."
        ),
        f"What they order by, LOWER first, for policyfactory evaluate: {weights.formula}",
        "The exact order: --to slurm-site-factor-lua (or slurm-site-factor-c, for a policy with w).",
    ]
    if weights.machine.nodes is None:
        sentences.append(
            "Slurm's SMALL_RELATIVE_TO_TIME, the only factor in which the time limit counts, was not tried: "
            "give the size of the cluster, --processors N --nodes N."
        )
    return sentences


def _size_hint(site: Site) -> str:
    return "" if site.nodes and site.processors else ", or give the size of the cluster: --processors N --nodes N"


def _limits(policy: Policy, weights: Weights, site: Site) -> list[str]:
    sentences = list(unexpressed(policy, can_oldest_waiting=True, can_wait=True))
    if weights.age:
        sentences += [
            (
                "The age needs slurmdbd; without it Slurm logs that it ignores PriorityWeightAge. A job's age is 0 "
                "until the next recalculation, up to a minute (PriorityCalcPeriod=1) after its submission."
            ),
            f"Jobs that have waited longer than {LONGEST_AGE // DAY} days count as if they had waited that long.",
        ]
    if weights.size:
        sentences.append(
            f"The size factor takes a job for at least a whole node ({weights.machine.per_node:g} processors), for as "
            "many nodes as it asks for (-N), its limit in whole minutes, and without one that of the partition."
        )
    if site.processors is None:
        sentences.append(
            f"The weights are for a cluster of {weights.machine.processors:,} processors, the largest job of the "
            "sample; on a larger one give --processors N, or the priorities of its largest jobs tie."
        )
    ours = next(line for line in weights.lines if line.startswith("PriorityFlags="))
    sentences += [
        "All partitions must have the same PriorityJobFactor (1 without it).",
        (
            "The file sets the weights of fair-share, QOS and associations to 0: the site's own go. Where they shall "
            f"count, write them into the file, with a size beside priorities of {_span(weights)}."
        ),
        (
            "It also replaces the site's PriorityFlags. Those of fair-share (NO_FAIR_TREE, DEPTH_OBLIVIOUS; in older "
            "Slurm FAIR_TREE), of QOS and associations (NO_NORMAL_QOS, NO_NORMAL_ASSOC) and CALCULATE_RUNNING can be "
            f"kept, behind ours: {ours},NO_FAIR_TREE. INCR_ONLY cannot: it keeps priorities from falling."
        ),
    ]
    return sentences


def _span(weights: Weights) -> str:
    low = weights.base + min(0.0, weights.processor * weights.machine.processors)
    high = weights.base + max(0.0, weights.processor * weights.machine.processors) + weights.age + abs(weights.size)
    return ascii_text(f"{math.floor(low):,} to {math.ceil(high):,}")


TARGET = Target("slurm-weights", "weights of Slurm's priority/multifactor (exact for some linear policies)", make)
