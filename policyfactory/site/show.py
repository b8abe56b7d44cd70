"""A site in words: rows for tables of its partitions, of settings that are no defaults, of what is not modelled."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from policyfactory.core.text import counted, format_duration, shortened
from policyfactory.site.fits import lay_out
from policyfactory.site.model import Association, Limits, Partition, Preemption, Qos, Site
from policyfactory.site.slurm.settings import default_settings
from policyfactory.workload.declared import written_values

PARTITIONS = ["partition", "nodes", "cores", "memory (GB)", "GPUs", "tier", "longest", "most nodes", "notes"]
_LONGEST = 80  # characters of a name in a table
NOT_MODELLED = ["setting", "value", "where", "what it would change"]


def summary(site: Site) -> str:
    """Return a site in one line."""
    layout = lay_out(site)
    parts = [
        counted(len(layout.names), "node"),
        counted(int(layout.cores.sum()), "core"),
        *([counted(int(layout.gpus.sum()), "GPU")] if layout.gpus.any() else []),
        counted(len(site.partitions), "partition"),
        *([f"{len(site.qos):,} QOS"] if site.qos else []),
        *([counted(len(site.associations), "association")] if site.associations else []),
        *([counted(len(site.reservations), "reservation")] if site.reservations else []),
        *([f"{len(site.outages):,} times of nodes away"] if site.outages else []),
    ]
    return f"{shortened(site.name)}: {', '.join(parts)}"


def partition_rows(site: Site) -> list[list[str]]:
    """Return a row for each partition, of the columns `PARTITIONS`."""
    layout = lay_out(site)
    rows = []
    for partition, members in zip(site.partitions, layout.members, strict=True):
        notes = [
            *(["default"] if partition.default else []),
            *(["whole nodes"] if partition.exclusive else []),
            *([] if partition.up else ["down"]),
            *([f"QOS {shortened(partition.qos, _LONGEST)}"] if partition.qos else []),
            *([f"at least {partition.min_nodes:,} nodes"] if partition.min_nodes > 1 else []),
            *(["some accounts only"] if partition.allowed_accounts else []),
            *(["some QOS only"] if partition.allowed_qos else []),
            *_stopped(partition, "jobs"),
        ]
        memory = int(layout.memory[members].sum())
        rows.append(
            [
                shortened(partition.name, _LONGEST),
                f"{int(members.sum()):,}",
                f"{int(layout.cores[members].sum()):,}",
                f"{memory / 1024:,.0f}" if memory else "-",
                f"{int(layout.gpus[members].sum()):,}",
                f"{partition.tier}",
                format_duration(partition.max_time),
                "no limit" if math.isinf(partition.max_nodes) else f"{partition.max_nodes:,.0f}",
                ", ".join(notes) or "-",
            ]
        )
    return rows


def setting_rows(site: Site) -> list[list[str]]:
    """Return a row for each setting of priorities and of the passes that is not its version's default, with that."""
    rows = []
    priority, scheduling = default_settings(site)
    for name, default in (("priority", priority), ("scheduling", scheduling), ("preemption", Preemption())):
        usual = written_values(default, every=True)
        given = written_values(getattr(site, name), every=True).items()
        rows += [[f"{name}.{key}", _text(value), _text(usual[key])] for key, value in given if value != usual[key]]
    if site.enforced:
        rows.append(["enforced", _text(list(site.enforced)), "-"])
    return rows


def limit_rows(site: Site) -> list[list[str]]:
    """Return a row for each QOS and each account that has limits or a priority, with these in words."""
    rows = []
    for qos in site.qos:
        words = [*_limits(qos), *([f"priority {qos.priority:,}"] if qos.priority else []), *_stopped(qos, "its jobs")]
        if qos.preempts:
            words.append(f"stops jobs of {shortened(', '.join(qos.preempts), 2 * _LONGEST)}")
        if words:
            rows.append([f"QOS {shortened(qos.name, _LONGEST)}", ", ".join(words)])
    for assoc in site.associations:
        words, account = list(_limits(assoc)), shortened(assoc.account, _LONGEST)
        if words:
            whose = f"user {shortened(assoc.user, _LONGEST)} of {account}" if assoc.user else f"account {account}"
            rows.append([whose, ", ".join(words)])
    return rows


def not_modelled_rows(site: Site) -> list[list[str]]:
    """Return a row for each setting that is there and not modelled, of the columns `NOT_MODELLED`."""
    return [
        [
            shortened(setting.name, _LONGEST),
            shortened(setting.value, 40) or "-",
            setting.place or "-",
            shortened(setting.effect, 240),
        ]
        for setting in site.not_modelled
    ]


def _stopped(entry: Partition | Qos, whose: str) -> Iterator[str]:
    """Give what is said of jobs that are stopped for others."""
    if entry.preempt_mode:
        how = {"off": "not stopped", "requeue": "put back", "cancel": "cancelled"}[entry.preempt_mode]
        yield f"{whose} {how} for others"
    if entry.grace_time:
        yield f"grace time {format_duration(entry.grace_time)}"


def _limits(entry: Qos | Association) -> Iterator[str]:
    for field in dataclasses.fields(entry):
        value = getattr(entry, field.name)
        if isinstance(value, Limits):
            for name, most in written_values(value).items():
                yield f"{field.name} {name} {most}"
    if math.isfinite(entry.max_wall):
        yield f"longest {format_duration(entry.max_wall)}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {number}" for name, number in value.items()]
    if isinstance(value, list):
        return shortened(", ".join(map(str, value)), 4 * _LONGEST) or "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
