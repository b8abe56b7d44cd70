"""The preemption of a slurm.conf and of its QOS: which running jobs are stopped for which others, and how.

Jobs that are suspended (SUSPEND, GANG) and those that are stopped within their QOS (WITHIN) are not simulated; the
import says so. Facts: src/common/read_config.c, src/interfaces/preempt.c and select/cons_tres of Slurm 24.11.5.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Literal

from policyfactory.site.file import known_settings
from policyfactory.site.model import Origin, Partition, Preemption, Qos, Setting
from policyfactory.site.slurm.conf import Conf, leading, listed, parts_of, refused
from policyfactory.site.values import LONGEST_TIME
from policyfactory.workload.accounting.times import duration

_Kind = Literal["none", "partition_prio", "qos"]
_Outcome = Literal["", "off", "requeue", "cancel"]
_KINDS: dict[str, _Kind] = {"preempt/none": "none", "preempt/partition_prio": "partition_prio", "preempt/qos": "qos"}
_OUTCOMES: tuple[_Outcome, ...] = ("requeue", "cancel", "off")
_MODES = ("off", "requeue", "cancel", "suspend", "gang", "within", "cluster", "checkpoint", "priority")
_SUSPENDED = "running jobs would be suspended for others and go on later; here nobody is stopped for them"
_UNSAID = {"", "cluster"}
_INCOMPATIBLE = "nobody is stopped, as PreemptMode of the cluster is OFF; slurmctld does not start with the two"
_LARGEST_PRIORITY = 2**32 - 3  # NO_VAL is no priority
_MOST_REORDERS = 2**31 - 1
_ABSENT = Setting("", "", "")


def preempts(conf: Conf) -> bool:
    """Tell whether running jobs are stopped or suspended for others on a cluster."""
    kind = conf.value("PreemptType", "preempt/none").lower()
    return not kind.endswith("/none") or "gang" in conf.value("PreemptMode").lower()


def read_preemption(conf: Conf, origin: Origin) -> Preemption:
    """Return what a slurm.conf says of preemption; the origin is told what is not modelled of that.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    given = conf.settings
    kind = conf.value("PreemptType", "preempt/none").lower()
    kind = kind if kind in _KINDS or "/" in kind else f"preempt/{kind}"
    if not preempts(conf):
        return Preemption()
    if kind not in _KINDS:
        origin.differs(given["preempttype"], "another rule would say which running jobs are stopped; here nobody is")
        return Preemption()
    mode = _mode(given.get("preemptmode", _ABSENT), "", origin) or "off"
    if _KINDS[kind] != "none" and mode == "off" and not _modes(conf.value("PreemptMode")) - {"off"}:
        origin.differs(given["preempttype"], _INCOMPATIBLE)
    if _KINDS[kind] == "none" or mode == "off":
        return Preemption()
    words = _parameters(conf, origin)
    least = words.get("min_exempt_priority", _ABSENT)
    if least.value and not 0 <= leading(least.value) <= _LARGEST_PRIORITY:
        raise refused(least, f"a whole number from 0 to {_LARGEST_PRIORITY:,}")
    count = words.get("reorder_count", words.get("preempt_reorder_count", Setting("", "1", "")))
    reorders = leading(count.value)
    if not 0 <= reorders <= _MOST_REORDERS:
        origin.correct(count, "PreemptParameters", f"it is none from 0 to {_MOST_REORDERS:,}; it is taken as 1")
        reorders = 1
    return Preemption(
        kind=_KINDS[kind],
        mode=mode,
        exempt_time=_exempt(given["preemptexempttime"], 0.0) if "preemptexempttime" in given else 0.0,
        youngest_first=bool(words.keys() & {"youngest_first", "preempt_youngest_first"}),
        strict_order=bool(words.keys() & {"strict_order", "preempt_strict_order"}),
        reorder_count=reorders,
        min_exempt_priority=float(leading(least.value)) if least.value else math.inf,
        job_requeue=conf.value("JobRequeue", "1") != "0",
    )


def _parameters(conf: Conf, origin: Origin) -> dict[str, Setting]:
    """Return the words of PreemptParameters, and of SchedulerParameters, where some of them were before."""
    words: dict[str, Setting] = {}
    for key in ("schedulerparameters", "preemptparameters"):
        setting = conf.settings.get(key, _ABSENT)
        for part in parts_of(setting):
            words[part.key.lower()] = part
            if key == "preemptparameters":
                # A flag that is there is on, and has no value of its own.
                flag = dataclasses.replace(part, value=part.value or "yes")
                known_settings("preemption").judge([flag], origin, "PreemptParameters")
    return words


def partition_preemption(partition: Partition, settings: Mapping[str, Setting], origin: Origin) -> Partition:
    """Return a partition with what its settings say of jobs that are stopped by the tiers of partitions."""
    mode, grace = settings.get("preemptmode", _ABSENT), settings.get("gracetime")
    return dataclasses.replace(
        partition,
        preempt_mode=_mode(mode, f"PartitionName={partition.name}", origin),
        grace_time=0.0 if grace is None else _grace(grace),
    )


def qos_preemption(qos: Qos, row: Mapping[str, Setting], origin: Origin) -> Qos:
    """Return a QOS with what its row says of preemption."""
    mode, grace, exempt = row.get("preemptmode", _ABSENT), row.get("gracetime"), row.get("preemptexempttime", _ABSENT)
    # What a QOS has as "off" is no word of its own (preempt/qos, _job_preempt_mode).
    of_qos: _Outcome = "" if mode.value.lower() == "off" else _mode(mode, f"QOS {qos.name}", origin)
    return dataclasses.replace(
        qos,
        preempts=listed(row["preempt"].value.lower()) if "preempt" in row else (),
        preempt_mode=of_qos,
        grace_time=0.0 if grace is None or not grace.value else _grace(grace),
        exempt_time=_exempt(exempt, math.inf) if exempt.value else math.inf,
    )


def _mode(setting: Setting, of: str, origin: Origin) -> _Outcome:
    """Return what becomes of jobs that are stopped; empty: what is said elsewhere."""
    words = _modes(setting.value)
    if not words <= set(_MODES):
        raise refused(setting, "OFF, REQUEUE, CANCEL, SUSPEND, GANG or WITHIN")
    setting = dataclasses.replace(setting, key="PreemptMode")
    if words & {"suspend", "checkpoint"}:
        origin.differs(setting, _SUSPENDED, of)
        return "off"
    if "gang" in words:
        origin.differs(setting, "jobs that share cores would take turns", of)
    if "within" in words:
        origin.differs(setting, "jobs would be stopped for others of their QOS of a higher priority", of)
    return next((word for word in _OUTCOMES if word in words), "")


@functools.lru_cache(maxsize=16)
def _modes(text: str) -> frozenset[str]:
    """Return the words of a PreemptMode, which may be that of PartitionName=DEFAULT."""
    return frozenset(word.lower() for word in listed(text)) - _UNSAID


def _grace(setting: Setting) -> float:
    """Return a grace time: seconds, or a time with colons."""
    text = setting.value
    if text.lower() in {"infinite", "unlimited"}:
        return float(LONGEST_TIME)
    known = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else duration(text)
    if known is None or known > LONGEST_TIME:
        raise refused(setting, "a number of seconds, or HH:MM:SS")
    return float(known)


def _exempt(setting: Setting, otherwise: float) -> float:
    """Return a time from a start on in which a job is safe; -1 says none."""
    if setting.value.startswith("-1") or setting.value.lower() in {"infinite", "unlimited", "none"}:
        return otherwise
    known = duration(setting.value)
    if known is None or known > LONGEST_TIME:
        raise refused(setting, "a time, for example 00:10:00")
    return float(known)
