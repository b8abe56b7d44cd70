"""The settings of a slurm.conf: how jobs are ordered (Priority*), how the passes look (SchedulerParameters, Select*).

Units are Slurm's: minutes for times of priorities and for bf_window, seconds for the others. Defaults that depend on
the version were filled in before (`policyfactory.site.slurm.defaults`). A setting is declared in
`policyfactory.site.model`: its default, unit, bounds, and what the simulation calls it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

from policyfactory.site.consistent import known_settings
from policyfactory.site.model import PARAMETERS, Origin, Priority, Scheduling, Setting, Site
from policyfactory.site.slurm.billing import weights_of
from policyfactory.site.slurm.conf import ENDLESS, Conf, leading, listed, refused, seconds, unsigned, yes
from policyfactory.site.slurm.defaults import fill_defaults
from policyfactory.site.slurm.job_defaults import job_defaults
from policyfactory.site.values import SECONDS, WEIGHT
from policyfactory.workload.declared import FLAG, Kind

# How slurm.conf writes the fields of `Priority` that are keys of it, by their kinds.
_READ: dict[Kind, Callable[[Setting], Any]] = {WEIGHT: lambda pair: unsigned(pair, 32), SECONDS: seconds, FLAG: yes}
_PRIORITY_FLAGS = (
    "ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE", "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS",
    "NO_NORMAL_TRES", "MAX_TRES", "MAX_TRES_GRES",
)  # fmt: skip
_RESETS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
_ABSENT = Setting("", "", "")
_CRAY = ("cray", "cray_aries", "alps")  # on top of select/linear, if not told otherwise
_SELECT = ("linear", "cons_res", "cons_tres", "serial", *_CRAY)
_KINDS = ("priority/basic", "priority/multifactor", "priority/multifactor2")  # the last until Slurm 14.11
# Until Slurm 17.11 other programs could decide on the order.
_OTHER_SCHEDULERS = ("sched/wiki", "sched/wiki2", "sched/hold", "sched/gang")


def read_priority(conf: Conf, origin: Origin) -> Priority:
    """Return how a slurm.conf orders jobs; the origin is told what is not modelled of that.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    given = conf.settings
    values: dict[str, Any] = {
        field.name: _READ[field.metadata["kind"]](given[key])
        for field in dataclasses.fields(Priority)
        if (key := field.metadata.get("slurm", "").lower()) in given
    }
    if "priorityweighttres" in given:
        effect = "jobs would gain priority by the {} they ask for"
        values["tres"] = weights_of(given["priorityweighttres"], origin, effect)
    if math.isinf(values.get("half_life", 0.0)):
        values["half_life"] = 0.0
    if values.get("calculation_period", 60.0) < 60 or math.isinf(values.get("calculation_period", 60.0)):
        raise refused(given["prioritycalcperiod"], "at least one minute")
    reset = given.get("priorityusageresetperiod")
    if reset is not None and reset.value.upper() not in _RESETS:
        raise refused(reset, f"one of {', '.join(_RESETS)}")
    values["flags"] = _priority_flags(conf)
    kind = conf.value("PriorityType").lower()
    if kind not in _KINDS:
        raise refused(given["prioritytype"], "priority/basic or priority/multifactor")
    return Priority(kind="basic" if kind.endswith("basic") else "multifactor", **values)


def default_settings(site: Site) -> tuple[Priority, Scheduling]:
    """Return the settings of a slurm.conf that says nothing, by the version of a site."""
    version, given = site.scheduling.slurm_version, site.priority
    plain, weighed = Conf(), Conf()
    # How fair share is counted has a default where it weighs.
    for key, value in (("PriorityType", f"priority/{given.kind}"), ("PriorityWeightFairshare", f"{given.fair_share}")):
        weighed.settings[key.lower()] = Setting(key, value, "")
    for conf in (plain, weighed):
        fill_defaults(conf, version or None, "", Origin({}))
    priority = dataclasses.replace(read_priority(plain, Origin({})), flags=_priority_flags(weighed))
    return priority, dataclasses.replace(read_scheduling(plain, Origin({})), slurm_version=version)


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
    words |= {other for word in words for other in implied.get(word, "").split()}
    if words & {"safe"}:
        words.add("limits")
    if words & {"limits", "qos", "wckeys"}:
        words.add("associations")
    return tuple(word for word in ("associations", "limits", "qos", "safe") if word in words)


def read_scheduling(conf: Conf, origin: Origin) -> Scheduling:
    """Return how the passes of a slurm.conf look.

    Parameters
    ----------
    conf : Conf
        The file.
    origin : Origin
        Is told where they stand, and what is not modelled of that.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    select = _select(conf, origin)
    given, kind = conf.settings, conf.value("SchedulerType", "sched/backfill").lower()
    if kind in _OTHER_SCHEDULERS:
        effect = "another program would decide which job starts; sched/builtin is taken in its place"
        origin.differs(given["schedulertype"], effect)
    elif kind not in {"sched/backfill", "sched/builtin"}:
        raise refused(given["schedulertype"], "sched/backfill or sched/builtin")
    values = _parameters(conf, origin)
    values |= job_defaults(given, origin)
    over = given.get("overtimelimit")
    if over is not None:
        values["kill_overrun"] = math.inf if over.value.lower() in ENDLESS else 60.0 * unsigned(over, 16)
    backfill = kind == "sched/backfill" and values.pop("backfill", True)
    return Scheduling(backfill=backfill, select=select, **values)


def _parameters(conf: Conf, origin: Origin) -> dict[str, Any]:
    """Return the fields of SchedulerParameters that are given."""
    setting = conf.settings.get("schedulerparameters", _ABSENT)
    values: dict[str, Any] = {}
    known = known_settings("parameters")
    parts: dict[str, Setting] = {}
    origin.note("scheduling", "", parts)
    for word in listed(setting.value):
        name, _, text = word.partition("=")
        part = Setting(name.strip(), text.strip(), setting.location)
        parts[part.key.lower()] = part
        # A flag that is there is on, and has no value of its own.
        known.judge([dataclasses.replace(part, value=part.value or "yes")], origin, "SchedulerParameters")
        lower = "bf_max_job_test" if part.key.lower() == "max_job_bf" else part.key.lower()
        if lower == "bf_continue":
            values[lower] = True
        elif lower in PARAMETERS:
            _add_parameter(values, lower, part, origin)
    if values.get("bf_max_job_assoc") and values.get("bf_max_job_user"):
        values["bf_max_job_user"] = 0
        origin.correct(parts["bf_max_job_user"], "SchedulerParameters", "bf_max_job_assoc takes precedence; it is 0")
    return values


def _add_parameter(values: dict[str, Any], name: str, part: Setting, origin: Origin) -> None:
    """Take one value, or the default as Slurm does where it is none (backfill.c, job_scheduler.c)."""
    number, declared = leading(part.value), PARAMETERS[name]
    if name == "sched_interval" and number == -1:
        effect = "the main pass would not run: jobs would start by backfilling only"
        origin.differs(Setting(name, "-1", part.location), effect, "SchedulerParameters")
    elif name == "bf_interval" and number == -1:
        values["backfill"] = False
    elif declared.low <= number <= declared.high:
        values[name] = number * declared.unit
    else:
        how = f"it is none from {declared.low:,} to {declared.high:,}; slurmctld takes the default, and so do we"
        origin.correct(part, "SchedulerParameters", how)


def _select(conf: Conf, origin: Origin) -> Literal["cores", "cores+memory", "nodes"]:
    """Return what jobs take of nodes."""
    setting = conf.settings.get("selecttypeparameters", _ABSENT)
    words = [word.upper() for word in listed(setting.value)]
    known_settings("select").judge(
        [Setting(word, "yes", setting.location) for word in words], origin, "SelectTypeParameters"
    )
    shared = any(word.startswith(("CR_CPU", "CR_CORE", "CR_SOCKET")) and "DEFAULT" not in word for word in words)
    kind = conf.value("SelectType").lower().removeprefix("select/")
    if kind not in _SELECT:
        taken = "whole nodes" if "linear" in kind else "cores and memory"
        chosen = dataclasses.replace(conf.settings["selecttype"], key="SelectType")
        origin.differs(chosen, f"it is unknown to policyfactory; {taken} are taken")
    if kind == "linear" or (kind in _CRAY and not any(word.startswith("OTHER_CONS") for word in words)):
        return "nodes"
    units = [word for word in words if word.startswith(("CR_CORE", "CR_SOCKET")) and "DEFAULT" not in word]
    given = dataclasses.replace(setting, key="SelectTypeParameters")
    if any(word.startswith("CR_SOCKET") for word in units):
        origin.differs(given, "jobs would be given whole sockets")
    # Without a word of it, Slurm counts cores and memory.
    return "cores+memory" if not shared or any("MEMORY" in word for word in words) else "cores"
