"""A policy as a site_factor plugin of Slurm, in C: the order of jobs follows the clock.

For policies that change while a job waits: those with w, with a threshold, or whose r counts from the oldest waiting
job. The formula and the map to whole numbers are a header of their own, policy.h, which any C compiler takes; what
speaks to Slurm is the same for every policy and is built against the source of the Slurm that runs.

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

from policyfactory.core.units import format_duration
from policyfactory.export.expressible import fixed_epoch, prepare
from policyfactory.export.languages.c import LANGUAGE
from policyfactory.export.languages.code import helpers_of, write_expression
from policyfactory.export.queue import UNLIMITED_S, Queue, overdue, scores_of
from policyfactory.export.scale import Scale, learn_scale
from policyfactory.export.scripts import filled
from policyfactory.export.slurm.instructions import (
    BACKFILLING,
    HARDWARE,
    SCORE_WAITING,
    SETTINGS_FIRST,
    SIZE,
    TAKE_SCORES,
    TIME,
    UNSCORED,
    beside,
)
from policyfactory.export.targets import Export, File, Site, Target, header, identifier
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["HIGHEST", "TARGET", "make", "policy_header"]

HIGHEST = 2**31 - 1  # of a site_factor; overdue jobs are above the scale's largest
_NAME = "slurm-site-factor-c"
_SOURCE = "site_factor_policyfactory.c"
_MAKEFILE = "Makefile"


def make(model: Model, site: Site) -> Export:
    """Return the plugin's source, its Makefile and README.

    Raises
    ------
    ExportError
        If r counts from the start of a window; or the formula has m and the site no size.
    """
    model = prepare(model, processors=site.processors)
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, _NAME)
    scale = learn_scale(policy, site.sample, site.processors, largest=site.weight)
    export = Export(
        (
            File(_SOURCE, _text(_SOURCE)),
            File("policy.h", policy_header(model, site, scale)),
            File(_MAKEFILE, _text(_MAKEFILE)),
        ),
        settings=_settings(policy),
        install=_INSTALL,
        rollback=_ROLLBACK,
        limits=_limits(policy, scale),
        priorities=_priorities(policy, scale),
        scale=scale,
    )
    readme = File("README.md", "\n".join(_readme(model, site, export)) + "\n")
    return dataclasses.replace(export, files=(*export.files, readme))


def _changes(policy: Policy) -> bool:
    """Return whether the place of a job can change while it waits."""
    return not policy.is_static or math.isfinite(policy.threshold)


def _priorities(policy: Policy, scale: Scale) -> Callable[[Queue], NDArray[np.float64]]:
    """Return the Python twin of ``policy_priority`` of policy.h, right after a calculation at the queue's ``now``."""

    def priorities(queue: Queue) -> NDArray[np.float64]:
        numbers = scale.integers(scores_of(policy, queue))
        late = scale.largest + np.clip(queue.now - queue.submit, 0, HIGHEST - scale.largest)
        return np.where(overdue(policy, queue), late, numbers).astype(np.float64)

    return priorities


def policy_header(model: Model, site: Site, scale: Scale) -> str:
    """Return the text of policy.h: the formula, and the map from its value to a whole number; C99, needs no Slurm.

    Parameters
    ----------
    model : Model
        Without m; its epoch fixed, or oldest-waiting.
    site : Site
        What is said in the comment.
    scale : Scale
        The map.
    """
    policy = model.policy
    comment = "\n".join(f" * {line}".rstrip() for line in header(model, site, _NAME, scale))
    unused = "".join(f"    (void){name};\n" for name in "pqrw" if name not in policy.variables)
    return filled(
        "policy.h",
        {
            "COMMENT": comment,
            "NAME": identifier(policy.name),
            "UNLIMITED": UNLIMITED_S,
            "CHANGES": int(not policy.is_static),
            "FROM_OLDEST": int("r" in policy.variables and policy.epoch.rule == "oldest-waiting"),
            "EPOCH": policy.epoch.unix_time or 0,
            "LOW": repr(scale.low),
            "HIGH": repr(scale.high),
            "THRESHOLD": repr(float(policy.threshold)) if math.isfinite(policy.threshold) else "INFINITY",
            "HELPERS": "\n".join(helpers_of(policy.expression, LANGUAGE)),
            "UNUSED": unused,
            "SCORE": write_expression(policy.expression, LANGUAGE),
            "LARGEST": scale.largest,
            "BELOW_LARGEST": scale.largest - 1,
            "ABOVE_LARGEST": HIGHEST - scale.largest,
            "HIGHEST": HIGHEST,
        },
    )


def _text(name: str) -> str:
    """Return a file of the plugin that is the same for every policy."""
    return (files("policyfactory.export.slurm") / "plugin" / name).read_text(encoding="utf-8")


def _settings(policy: Policy) -> tuple[str, ...]:
    return (
        SETTINGS_FIRST,
        "PriorityType=priority/multifactor",
        "PrioritySiteFactorPlugin=site_factor/policyfactory",
        *(["PriorityCalcPeriod=1"] if _changes(policy) else []),
        "SchedulerType=sched/backfill",
        "SchedulerParameters=bf_job_part_count_reserve=1",
    )


_INSTALL = (
    (
        "Get the source of exactly the Slurm that runs: the tar ball that it was built from or, with the packages of "
        "Debian and Ubuntu and a deb-src line in apt's sources:"
    ),
    "$ apt-get source slurm-wlm",
    "Build the plugin in this folder; the source need not be configured or compiled:",
    "$ make SLURM_SOURCE=FOLDER_OF_THE_SOURCE",
    "Copy it into Slurm's PluginDir (into another folder: make install PLUGINDIR=FOLDER, and PluginDir=FOLDER:OLD):",
    "$ sudo make install",
    (
        "Put the settings into slurm.conf. Change lines that are there (bf_job_part_count_reserve=1 is added to the "
        "SchedulerParameters): a second line switches the first one off. Restart slurmctld; a reconfiguration does not "
        "load a plugin. slurmctld.log then names policy and range."
    ),
    (
        "Jobs that wait already are rated at the restart with slurmdbd, else at any update. This one sets their nice "
        "values to what they are and changes nothing else; running tasks of arrays are not touched:"
    ),
    SCORE_WAITING,
    "Jobs that have no number:",
    UNSCORED,
    (
        "After an update of Slurm build and install it again: slurmctld does not load a plugin of another version. It "
        "runs on without, says so in its log, and new jobs get 0, which is last."
    ),
)

_ROLLBACK = (
    (
        "Take PrioritySiteFactorPlugin and PrioritySiteFactorParameters out of slurm.conf and restart slurmctld. "
        "Then take the numbers from the jobs that wait:"
    ),
    TAKE_SCORES,
)


def _limits(policy: Policy, scale: Scale) -> tuple[str, ...]:
    sentences = []
    if _changes(policy):
        sentences.append(
            "Slurm calculates anew when it starts and every PriorityCalcPeriod, in whole minutes from 1, and only with "
            "slurmdbd (AccountingStorageType=accounting_storage/slurmdbd). Without it a job keeps the number of its "
            "submission until it is changed or released, and slurmctld.log says so."
        )
    if math.isfinite(policy.threshold):
        sentences.append(
            f"A job that has waited longer than {format_duration(policy.threshold)} goes first from the next "
            f"calculation on, with a number from {scale.largest} to {HIGHEST}: overdue jobs are told apart by the "
            f"second up to {format_duration(HIGHEST - scale.largest)}."
        )
    if "r" in policy.variables and policy.epoch.rule == "oldest-waiting":
        sentences.append("The job that has waited longest is that of the last calculation, held jobs left out.")
    return (
        *sentences,
        beside(scale.largest),
        "The plugin sets site_factor: what a job_submit.lua or an operator gave there is overwritten.",
        f"{TIME} A job of which p or q is not known runs last.",
        SIZE,
        HARDWARE,
        "Slurm counts a requeued job as submitted when it was requeued; so does the plugin at its next rating.",
        (
            "PrioritySiteFactorParameters=epoch=...,low=...,high=...,threshold=...,wait=... changes a value without a "
            "new build. A value that cannot be is said in slurmctld.log, and then none of them is used. wait=eligible "
            "counts the time waited from when a job could run, as Slurm's age factor does; wait=submit is the default."
        ),
        BACKFILLING,
    )


def _readme(model: Model, site: Site, export: Export) -> Iterator[str]:
    """Yield the lines of the README; what comes from strangers is in indented lines, out of which nothing leads."""
    yield "# A priority plugin for Slurm"
    yield ""
    yield from (f"    {line}".rstrip() for line in header(model, site, _NAME, export.scale))
    yield ""
    yield f"`{_SOURCE}` speaks to Slurm and is the same for every policy; `policy.h` has the formula."
    yield "Both are seen with Slurm 22.05.8; the plugin is compiled against 24.11.5 as well."
    yield from ("", "## Settings in slurm.conf", "", "```", *export.settings, "```")
    yield from ("", "## Build and install", "", *_items(export.install))
    yield from ("", "## Roll back", "", *_items(export.rollback))
    yield from ("", "## Limits", "", *_items(export.limits))
    yield from ("", "## Licence", "")
    yield "The source includes headers of Slurm, which are under the GNU General Public License, version 2 or later,"
    yield "and so is the plugin. Pass the built plugin on only with its source."


def _items(texts: Iterable[str]) -> Iterator[str]:
    """Yield sentences as items of a list, and commands as what is typed."""
    for text in texts:
        if text.startswith("$ "):
            yield from ("", "  ```sh", f"  {text.removeprefix('$ ')}", "  ```", "")
        else:
            yield f"- {text}"


TARGET = Target(_NAME, "Slurm: source, Makefile and README of a C plugin, for policies that change as jobs wait", make)
