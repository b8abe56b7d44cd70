"""The settings of a slurm.conf: how jobs are ordered (Priority*), how the passes look (SchedulerParameters, Select*).

Units are Slurm's: minutes for times of priorities and for bf_window, seconds for the others. A setting is declared in
`policyfactory.site.model`: its default, unit, bounds, and what the simulation calls it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.text import shortened
from policyfactory.site.file import known_settings
from policyfactory.site.model import ASSUMED_VERSION, PARAMETERS, Origin, Priority, Scheduling, Setting, Site
from policyfactory.site.slurm.conf import ENDLESS, Conf, leading, listed, parts_of, refused, seconds, unsigned, yes
from policyfactory.site.values import SECONDS, WEIGHT, parse_version, write_version
from policyfactory.workload.declared import FLAG, LARGEST, Kind

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
    for part in parts_of(setting):
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


# Weights of resources -------------------------------------------------------------------------------------------------

# TRESBillingWeights of a partition, what of a job counts in usage; PriorityWeightTRES.


_WEIGHT = re.compile(r"([-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?)([kKmMgGtTpP]?)", re.ASCII)
_MOST_WORDS = 1000
_POWERS = {unit: power for power, unit in enumerate(" kmgtp")}
# Of resources of which no job holds any: they count for nothing (assoc_mgr_tres_weighted).
NOT_HELD = frozenset({"billing", "energy", "vmem", "pages", "fs/disk"})


def weights_of(
    setting: Setting, origin: Origin, effect: str, what: str = "", silent: Collection[str] = ()
) -> dict[str, float]:
    """Return the weights of resources that a site has, for each core, MB, node and GPU.

    ``Mem=0.25G`` is a quarter for each GB (common/slurm_protocol_api.c, _tres_weight_item).

    Parameters
    ----------
    setting : Setting
        ``CPU=1.0,Mem=0.25G,GRES/gpu=2.0``.
    origin : Origin
        Is told of the resources that a site does not have.
    effect : str
        What these would do, with ``{}`` for the name of one.
    what : str
        Whose they are: ``PartitionName=gpu``.
    silent : collection of str
        Of which of these nothing is to be told.

    Raises
    ------
    SiteError
        If it is no such list (names file and line).
    """
    known, weights = known_settings("tres"), dict[str, float]()
    words = listed(setting.value)
    if len(words) > _MOST_WORDS:
        raise refused(setting, f"at most {_MOST_WORDS:,} weights")
    for word in words:
        name, _, value = word.partition("=")
        match, name = _WEIGHT.fullmatch(value.strip()), name.strip().lower()
        if match is None or not name:
            raise refused(setting, "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0")
        power = _POWERS[match[2].lower() or " "]
        # Memory counts in MB.
        base = _POWERS["m"] if name == "mem" else 0
        weight = float(match[1]) / 1024.0 ** max(power - base, 0)
        if math.isinf(weight):
            # Strtod's ERANGE, with which slurmctld does not start.
            raise refused(setting, f"weights of at most {LARGEST:,}")
        if name in known.modelled and abs(weight) > LARGEST:
            how = f"a weight is at most {LARGEST:,} here, and is taken as that"
            origin.correct(Setting(setting.key, word, setting.location), what, how)
            weight = math.copysign(LARGEST, weight)
        if name in known.modelled:
            weights[name] = weight
        elif weight and name not in silent:
            key = setting.key if what else f"{setting.key} {name}"
            other = Setting(key, f"{name}={weight:g}" if what else f"{weight:g}", setting.location)
            origin.differs(other, effect.format(name), what)
    return weights


# What jobs get that ask for no memory or no cores ---------------------------------------------------------------------

# The whole cluster's defaults, and those of one partition.


_FIELDS = {
    "defmempercpu": "default_memory_per_core",
    "defmempernode": "default_memory_per_node",
    "defmempergpu": "default_memory_per_gpu",
    "defcpupergpu": "default_cores_per_gpu",
}


def job_defaults(settings: Mapping[str, Setting], origin: Origin, what: str = "") -> dict[str, Any]:
    """Return the defaults that are given, by the fields of `Scheduling` and `Partition`; memory in MB.

    Parameters
    ----------
    settings : mapping of str to Setting
        By lower case.
    origin : Origin
        Is told what slurmctld passes over.
    what : str
        Whose they are: ``PartitionName=gpu``; empty: the cluster's.

    Raises
    ------
    SiteError
        If a value is no number (names file and line).
    """
    given = dict(settings)
    if "jobdefaults" in settings:
        given |= _together(settings["jobdefaults"])
    values = {
        field: unsigned(given[key], 64)
        for key, field in _FIELDS.items()
        if key in given and given[key].value.lower() not in {"", *ENDLESS}
    }
    if values.get("default_memory_per_node") and values.pop("default_memory_per_core", 0):
        # Common/read_config.c, _parse_partitionname and _validate_and_set_defaults.
        origin.correct(given["defmempercpu"], what, "slurmctld passes over it, as DefMemPerNode is given")
    return values


@functools.lru_cache(maxsize=16)
def _together(setting: Setting) -> Mapping[str, Setting]:
    """Return the words of JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=1000, as scontrol prints it too."""
    return {part.key.lower(): part for part in parts_of(setting) if part.key.lower() in _FIELDS}


# Defaults that depend on the version of Slurm -------------------------------------------------------------------------

# What a slurm.conf does not say. The one table of them is here, of those whose version a source of Slurm's tells; the
# others are those of `policyfactory.site.model`, which Slurm has had since 22.05. Older ones can have others:
# bf_max_job_test was 100, and is 500. ``scontrol show config`` prints what is in force, and needs none.


@dataclasses.dataclass(frozen=True, slots=True)
class _Default:
    """A default since a version, and where Slurm says so: of a key, or of ``SchedulerParameters NAME``."""

    key: str
    value: str
    since: tuple[int, int]
    source: str


# Of each key the oldest first.
_TABLE = (
    _Default("PriorityType", "priority/basic", (0, 0), "RELEASE_NOTES of 2.0"),
    _Default("PriorityType", "priority/multifactor", (23, 11), "NEWS, 23.11.0rc1"),
    _Default("SelectType", "select/linear", (0, 0), "slurm.conf(5) of 22.05"),
    _Default("SelectType", "select/cons_tres", (23, 11), "NEWS, 23.11.0rc1"),
    # Of cons_res and cons_tres; before, slurmctld did not start without it.
    _Default("SelectTypeParameters", "CR_Core_Memory", (0, 0), "NEWS, 21.08.1"),
    _Default("PriorityFlags", "NO_FAIR_TREE", (0, 0), "NEWS, 19.05.0pre2"),
    _Default("PriorityFlags", "FAIR_TREE", (19, 5), "NEWS, 19.05.0pre2"),
)


def fill_defaults(conf: Conf, version: str | None, name: str, origin: Origin) -> str:
    """Give a slurm.conf what it does not say, where that depends on the version of Slurm; return the version.

    Parameters
    ----------
    conf : Conf
        The file; gets the settings.
    version : str or None
        As ``scontrol --version`` prints it, or its number alone; None: what ``scontrol show config`` says, else the
        one whose rules are simulated then, too.
    name : str
        The file's name.
    origin : Origin
        Is told what was assumed.

    Returns
    -------
    str
        Of Slurm, as ``24.11``; empty where nobody says it.

    Raises
    ------
    UsageError
        If it is no version.
    """
    printed = conf.value("SLURM_VERSION")
    told = version or printed
    if printed and not version and parse_version(printed) is None:
        what = f"SLURM_VERSION={shortened(printed, 40)}"
        origin.remark("assumed", what, f"it is no version of Slurm; the defaults are those of {ASSUMED_VERSION}")
        told = ""
    number = _number(told or ASSUMED_VERSION)
    if conf.reported and not printed:
        what = f"{shortened(name)} has no output of scontrol show config"
        origin.remark("assumed", what, f"all settings of the cluster are the defaults of Slurm {write_version(number)}")
    for key in dict.fromkeys(default.key for default in _TABLE):
        if _missing(conf, key):
            of_key = [default for default in _TABLE if default.key == key]
            taken = next(default for default in reversed(of_key) if default.since <= number)
            setting, _, parameter = key.partition(" ")
            added = f"{parameter}={taken.value}" if parameter else taken.value
            value = ",".join([*listed(conf.value(setting)), added])
            conf.settings[setting.lower()] = Setting(setting, value, f"default of Slurm {write_version(number)}")
            if not printed:
                how = f"the default of Slurm {write_version(number)}{_change(of_key, taken)}"
                origin.remark("assumed", f"{key}={taken.value}", how)
    return write_version(number) if told else ""


def _missing(conf: Conf, key: str) -> bool:
    """Say whether a key is not given, and its default has an effect."""
    if key == "PriorityFlags":
        flags = {flag.upper() for flag in listed(conf.value(key))}
        multifactor = conf.value("PriorityType").lower() != "priority/basic"
        fair = multifactor and conf.value("PriorityWeightFairshare", "0") != "0"
        return fair and not flags & {"FAIR_TREE", "NO_FAIR_TREE", "DEPTH_OBLIVIOUS"}
    if key == "SelectTypeParameters" and "/cons_" not in conf.value("SelectType").lower():
        return False
    setting, _, parameter = key.lower().partition(" ")
    if parameter:
        return parameter not in {entry.partition("=")[0].strip().lower() for entry in listed(conf.value(setting))}
    return key.lower() not in conf.settings


def _change(of_key: list[_Default], taken: _Default) -> str:
    """Return what a default was before, or is since; nothing where there was never another."""
    *before, newest = of_key
    if taken is not newest:
        return f" (since {write_version(newest.since)} it is {newest.value})"
    return f" (before {write_version(newest.since)} it was {before[-1].value})" if before else ""


def _number(version: str) -> tuple[int, int]:
    number = parse_version(version)
    if number is None:
        raise UsageError(
            f"--slurm-version {shortened(version, 40)!r} is no version of Slurm; give for example 24.11, as scontrol "
            "--version prints it"
        )
    return number
