"""The settings of a slurm.conf: how jobs are ordered (Priority*), how the passes look (SchedulerParameters, Select*).

Defaults and units are those of Slurm 22.05.8: minutes for times of priorities and for bf_window, seconds for the
others.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from policyfactory.site.known import known_settings
from policyfactory.site.model import NotModelled
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.settings import Priority, Scheduling
from policyfactory.site.slurm.conf import Conf
from policyfactory.site.slurm.quantities import ENDLESS, listed, refused, seconds, tres, whole, yes

__all__ = ["enforced", "read_priority", "read_scheduling"]

_WEIGHTS = {
    "age": "PriorityWeightAge", "fair_share": "PriorityWeightFairshare", "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition", "qos": "PriorityWeightQOS", "association": "PriorityWeightAssoc",
}  # fmt: skip
_PRIORITY_FLAGS = (
    "ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE", "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS",
    "NO_NORMAL_TRES",
)  # fmt: skip
_RESETS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
# SchedulerParameters by the seconds of their unit; None: a count.
_UNITS: dict[str, float | None] = {
    "default_queue_depth": None, "partition_job_depth": None, "sched_interval": 1.0, "batch_sched_delay": 1.0,
    "sched_max_job_start": None, "bf_interval": 1.0, "bf_window": 60.0,
    "bf_resolution": 1.0, "bf_max_job_test": None, "bf_max_job_part": None, "bf_max_job_user": None,
    "bf_max_job_user_part": None, "bf_max_job_assoc": None, "bf_max_job_start": None, "bf_min_prio_reserve": None,
    "bf_job_part_count_reserve": None, "bf_min_age_reserve": 1.0,
}  # fmt: skip
_ABSENT = Setting("", "", "")
# Slurm says in its log that a value beyond these is invalid, and takes the default.
_BOUNDS = {
    "bf_min_prio_reserve": (0, 2**32 - 1), "bf_interval": (1, 10800), "bf_window": (1, 43200),
    "bf_resolution": (1, 3600),
    "bf_max_job_test": (1, 1_000_000),
}  # fmt: skip


def read_priority(conf: Conf) -> tuple[Priority, list[NotModelled]]:
    """Return how a slurm.conf orders jobs, and what is not modelled of that.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    given = conf.settings
    values: dict[str, Any] = {
        name: whole(given[key.lower()], 0, 2**32 - 1) for name, key in _WEIGHTS.items() if key.lower() in given
    }
    missing: list[NotModelled] = []
    if "priorityweighttres" in given:
        values["tres"], missing = _weights(given["priorityweighttres"])
    for name, key in (
        ("max_age", "prioritymaxage"), ("calculation_period", "prioritycalcperiod"),
        ("half_life", "prioritydecayhalflife"),
    ):  # fmt: skip
        if key in given:
            values[name] = seconds(given[key])
    if math.isinf(values.get("half_life", 0.0)):
        values["half_life"] = 0.0
    if values.get("calculation_period", 60.0) < 60 or math.isinf(values.get("calculation_period", 60.0)):
        raise refused(given["prioritycalcperiod"], "at least one minute")
    if "priorityfavorsmall" in given:
        values["favor_small"] = yes(given["priorityfavorsmall"])
    reset = given.get("priorityusageresetperiod")
    if reset is not None and reset.value.upper() not in _RESETS:
        raise refused(reset, f"one of {', '.join(_RESETS)}")
    values["flags"] = _priority_flags(conf)
    kind = conf.value("PriorityType", "priority/basic").lower()
    if kind not in {"priority/basic", "priority/multifactor"}:
        raise refused(given["prioritytype"], "priority/basic or priority/multifactor")
    return Priority(kind="basic" if kind.endswith("basic") else "multifactor", **values), missing


def _weights(setting: Setting) -> tuple[dict[str, float], list[NotModelled]]:
    """Return PriorityWeightTRES of the resources that a site has, and those of others."""
    known, weights = known_settings("slurm", "tres"), tres(setting)
    missing = [
        NotModelled(
            f"{setting.key} {name}",
            f"{weight:g}",
            setting.place,
            f"jobs would gain priority by the {name} they ask for",
        )
        for name, weight in weights.items()
        if name not in known.modelled and weight
    ]
    return {name: weight for name, weight in weights.items() if name in known.modelled}, missing


def _priority_flags(conf: Conf) -> tuple[str, ...]:
    """Return the flags that hold, in Slurm's own order: some stand for others."""
    words = {flag.upper() for flag in listed(conf.value("PriorityFlags"))}
    if "DEPTH_OBLIVIOUS" in words:
        words.add("NO_FAIR_TREE")
    if "NO_NORMAL_ALL" in words:
        words.update(flag for flag in _PRIORITY_FLAGS if flag.startswith("NO_NORMAL_"))
    return tuple(flag for flag in _PRIORITY_FLAGS if flag in words)


def enforced(conf: Conf) -> tuple[str, ...]:
    """Return which of associations, limits, qos and safe AccountingStorageEnforce names, or implies."""
    words = {word.lower() for word in listed(conf.value("AccountingStorageEnforce"))}
    implied = {"1": "associations", "2": "limits", "all": "associations limits qos safe"}
    words |= {one for word in words for one in implied.get(word, "").split()}
    if words & {"safe"}:
        words.add("limits")
    if words & {"limits", "qos", "wckeys"}:
        words.add("associations")
    return tuple(word for word in ("associations", "limits", "qos", "safe") if word in words)


def read_scheduling(conf: Conf, threads: int, origin: Origin) -> tuple[Scheduling, list[NotModelled]]:
    """Return how the passes of a slurm.conf look, and what is not modelled of that.

    Parameters
    ----------
    conf : Conf
        The file.
    threads : int
        The most threads that a core of a node has.
    origin : Origin
        Is told where they stand.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    select, missing = _select(conf, threads)
    values, more = _parameters(conf, origin)
    given = conf.settings
    kind = conf.value("SchedulerType", "sched/backfill").lower()
    if kind not in {"sched/backfill", "sched/builtin"}:
        raise refused(given["schedulertype"], "sched/backfill or sched/builtin")
    for name, key in (("default_memory_per_core", "defmempercpu"), ("default_memory_per_node", "defmempernode")):
        if key in given and given[key].value.lower() not in ENDLESS:
            values[name] = whole(given[key], 0, 2**40)
    # Slurm takes the one per node where both are given.
    if values.get("default_memory_per_node"):
        values["default_memory_per_core"] = 0
    over = given.get("overtimelimit")
    if over is not None:
        values["kill_overrun"] = math.inf if over.value.lower() in ENDLESS else 60.0 * whole(over, 0, 65535)
    return Scheduling(backfill=kind == "sched/backfill", select=select, **values), [*missing, *more]


def _parameters(conf: Conf, origin: Origin) -> tuple[dict[str, Any], list[NotModelled]]:
    """Return the fields of SchedulerParameters that are given, and what of them is not modelled."""
    setting = conf.settings.get("schedulerparameters", _ABSENT)
    found: list[NotModelled] = []
    values: dict[str, Any] = {}
    known = known_settings("slurm", "parameters")
    parts: dict[str, Setting] = {}
    origin.note("scheduling", "", parts)
    for one in listed(setting.value):
        name, _, text = one.partition("=")
        part = Setting(name.strip(), text.strip(), setting.place)
        parts[part.key.lower()] = part
        # A flag that is there is on, and has no value of its own.
        missing = known.judge(part.key, part.value or "yes", part.place, "SchedulerParameters")
        found += [] if missing is None else [missing]
        lower = "bf_max_job_test" if part.key.lower() == "max_job_bf" else part.key.lower()
        if lower == "bf_continue":
            values[lower] = True
        elif lower in _UNITS:
            found += _take_parameter(values, lower, part)
    return values, found


def _take_parameter(values: dict[str, Any], name: str, part: Setting) -> list[NotModelled]:
    """Take one value; return that it was not taken, where Slurm itself would not."""
    if name == "sched_interval" and part.value == "-1":
        effect = "the main pass would not run: jobs would start by backfilling only"
        return [NotModelled("SchedulerParameters sched_interval", "-1", part.place, effect)]
    low, high = _BOUNDS.get(name, (0, 2**31 - 1))
    if not re.fullmatch(r"-?\d{1,10}", part.value, re.ASCII):
        raise refused(part, f"a whole number from {low:,} to {high:,}")
    number = int(part.value)
    if not low <= number <= high:
        effect = f"Slurm would take it for invalid (it allows {low:,} to {high:,}) and use the default; so do we"
        return [NotModelled(f"SchedulerParameters {part.key}", part.value, part.place, effect)]
    unit = _UNITS[name]
    values[name] = number if unit is None else number * unit
    if name == "bf_min_prio_reserve":
        values[name] = float(number)
    return []


def _select(conf: Conf, threads: int) -> tuple[Literal["cores", "cores+memory", "nodes"], list[NotModelled]]:
    """Return what jobs take of nodes, and what is not modelled of it."""
    setting = conf.settings.get("selecttypeparameters", _ABSENT)
    words = [word.upper() for word in listed(setting.value)]
    found = []
    known = known_settings("slurm", "select")
    for word in words:
        missing = known.judge(word, "yes", setting.place, "SelectTypeParameters")
        found += [] if missing is None else [missing]
    shared = any(word.startswith(("CR_CPU", "CR_CORE", "CR_SOCKET")) and "DEFAULT" not in word for word in words)
    kind = conf.value("SelectType").lower()
    if kind.endswith("/linear") or (not kind and not shared):
        return "nodes", found
    units = [word for word in words if word.startswith(("CR_CORE", "CR_SOCKET")) and "DEFAULT" not in word]
    if threads > 1 and any(word.startswith("CR_CORE") for word in units):
        effect = f"jobs would be given whole cores: CPUs in steps of {threads}"
        found.append(NotModelled("SelectTypeParameters", setting.value, setting.place, effect))
    if any(word.startswith("CR_SOCKET") for word in units):
        effect = "jobs would be given whole sockets"
        found.append(NotModelled("SelectTypeParameters", setting.value, setting.place, effect))
    # Without a word of it, Slurm counts cores and memory.
    return ("cores+memory" if not shared or any("MEMORY" in word for word in words) else "cores"), found
