"""A policy as a site_factor plugin of Slurm, in C: the order of jobs follows the clock.

For policies that change while a job waits: those with w, with a threshold, or whose r counts from the oldest waiting
job. The formula and the map to whole numbers are a header of their own, policy.h, which any C compiler takes; what
speaks to Slurm is the same for every policy and is built against the source of the Slurm that runs. What a job asks
for beside time and processors (n, mem, g) it finds as `job_submit.lua` does, and knows the memory's default of the
whole cluster as well.

Seen with Slurm 22.05.8: the plugin is called at each submission, release and update, and for all jobs every
PriorityCalcPeriod (whole minutes, from 1) if there is slurmdbd; site_factor is unsigned with the offset NICE_OFFSET,
2^31, so that 2^31 - 1 is the highest number.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.text import DAY, format_duration
from policyfactory.exports.content import Export, ExportSite, File, comment, header, identifier, uninstall_script
from policyfactory.exports.expressible import fixed_epoch
from policyfactory.exports.languages import C, helpers_of, write_expression
from policyfactory.exports.queue import UNLIMITED_S, Queue, overdue, scores_of
from policyfactory.exports.sample import learn_scale
from policyfactory.exports.scripts import filled, sentences, whole
from policyfactory.policy.expression import ASKED
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import HIGHEST, PriorityScale
from policyfactory.policy.store import Model

_NAME = "slurm-site-factor-c"
_ADDED = "For EASY backfilling, which is optional, add bf_job_part_count_reserve=1 to SchedulerParameters."
_SOURCE = "site_factor_policyfactory.c"


def make(model: Model, site: ExportSite) -> Export:
    """Return the plugin's source, its Makefile and README.

    Raises
    ------
    ExportError
        If r counts from the start of a window; or the formula has m and the site no size.
    """
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, _NAME)
    scale = learn_scale(policy, site.sample, largest=site.weight)
    added = "" if site.log_only else f" {_ADDED}"
    export = Export(
        (
            File(_SOURCE, _text(_SOURCE)),
            File("policy.h", policy_header(model, site, scale)),
            File("Makefile", _text("Makefile")),
        ),
        settings=_settings(policy, log_only=site.log_only),
        install=sentences("slurm.txt", *(["plugin_log"] if site.log_only else []), "plugin_install", ADDED=added),
        rollback=sentences("slurm.txt", "plugin_rollback"),
        limits=_limits(policy, scale, log_only=site.log_only),
        # What the jobs of a list ask for beside time and processors is not known.
        priorities=None if policy.asked else _priorities(policy, scale),
        scale=scale,
        uninstall=uninstall_script(
            policy,
            ("start", "conf", "waiting", "plugin", "log_jobs" if site.log_only else "factor_jobs", "end"),
        ),
    )
    # What comes from strangers is in indented lines, out of which nothing leads.
    readme = filled(
        "plugin_readme.md",
        {
            "HEAD": "\n".join(comment(header(model, site, _NAME, scale), "   ")),
            "SETTINGS": "\n".join(export.settings),
            "INSTALL": "\n".join(_items(export.install)),
            "ROLLBACK": "\n".join(_items(export.rollback)),
            "LIMITS": "\n".join(_items(export.limits)),
        },
    )
    return dataclasses.replace(export, files=(*export.files, File("README.md", readme)))


def _changes(policy: Policy) -> bool:
    """Return whether the place of a job can change while it waits."""
    return not policy.is_static or math.isfinite(policy.threshold)


def _priorities(policy: Policy, scale: PriorityScale) -> Callable[[Queue], NDArray[np.float64]]:
    """Return the Python twin of ``policy_priority`` of policy.h, right after a calculation at the queue's ``now``."""

    def priorities(queue: Queue) -> NDArray[np.float64]:
        numbers = scale.integers(scores_of(policy, queue))
        late = scale.largest + np.clip(queue.now - queue.submit, 0, HIGHEST - scale.largest)
        return np.where(overdue(policy, queue), late, numbers).astype(np.float64)

    return priorities


def policy_header(model: Model, site: ExportSite, scale: PriorityScale) -> str:
    """Return the text of policy.h: the formula, and the map from its value to a whole number; C99, needs no Slurm.

    Parameters
    ----------
    model : Model
        Without m; its epoch fixed, or oldest-waiting.
    site : ExportSite
        What is said in the comment.
    scale : PriorityScale
        The map.
    """
    policy = model.policy
    names = ("p", "q", "r", "w", *ASKED)
    unused = "".join(f"    (void){name};\n" for name in names if name not in policy.variables)
    return filled(
        "policy.h",
        {
            "COMMENT": "\n".join(comment(header(model, site, _NAME, scale), " *")),
            "NAME": identifier(policy.name),
            "UNLIMITED": UNLIMITED_S,
            "CHANGES": int(not policy.is_static),
            "LOG_ONLY": int(site.log_only),
            "ASKS": int(bool(policy.asked)),
            "GPUS": whole("policy_gpus.h"),
            "FROM_OLDEST": int("r" in policy.variables and policy.epoch.rule == "oldest-waiting"),
            "EPOCH": policy.epoch.unix_time or 0,
            "LOW": repr(scale.low),
            "HIGH": repr(scale.high),
            "THRESHOLD": repr(float(policy.threshold)) if math.isfinite(policy.threshold) else "INFINITY",
            "HELPERS": "\n".join(helpers_of(policy.expression, C)),
            "UNUSED": unused,
            "SCORE": write_expression(policy.expression, C),
            "LARGEST": scale.largest,
            "BELOW_LARGEST": scale.largest - 1,
            "ABOVE_LARGEST": HIGHEST - scale.largest,
            "HIGHEST": HIGHEST,
        },
    )


def _text(name: str) -> str:
    """Return a file of the plugin that is the same for every policy."""
    return (files("policyfactory.exports.slurm") / "plugin" / name).read_text(encoding="utf-8")


def _settings(policy: Policy, *, log_only: bool) -> tuple[str, ...]:
    first = (*sentences("slurm.txt", "settings_first"), "PrioritySiteFactorPlugin=site_factor/policyfactory")
    if log_only:  # the others change the order of the queue, or its backfilling
        return first
    return (
        *first,
        "PriorityType=priority/multifactor",
        *(["PriorityCalcPeriod=1"] if _changes(policy) else []),
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_job_part_count_reserve=1",
    )


def _limits(policy: Policy, scale: PriorityScale, *, log_only: bool) -> tuple[str, ...]:
    oldest = "r" in policy.variables and policy.epoch.rule == "oldest-waiting"
    applies = {
        "plugin_changes": _changes(policy),
        "plugin_threshold": math.isfinite(policy.threshold),
        "plugin_oldest": oldest,
        "plugin_asked": bool(policy.asked),
        "plugin_limits": True,
        "hardware": not policy.asked,
        "backfilling": not log_only,
    }
    return sentences(
        "slurm.txt",
        *(name for name, does in applies.items() if does),
        THRESHOLD=format_duration(policy.threshold),
        LARGEST_SCORE=scale.largest,
        HIGHEST=HIGHEST,
        TOLD_APART=format_duration(HIGHEST - scale.largest),
        DAYS=UNLIMITED_S // DAY,
    )


def _items(texts: Iterable[str]) -> Iterator[str]:
    """Yield sentences as items of a list, and commands as what is typed."""
    for text in texts:
        if text.startswith("$ "):
            yield from ("", "  ```sh", f"  {text.removeprefix('$ ')}", "  ```", "")
        else:
            yield f"- {text}"
