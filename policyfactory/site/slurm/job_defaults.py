"""What a slurm.conf gives jobs that ask for no memory or no cores: the whole cluster's, and that of one partition."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from policyfactory.site.model import Origin, Setting
from policyfactory.site.slurm.conf import ENDLESS, listed, unsigned

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
    words = (word.partition("=") for word in listed(setting.value))
    return {name.lower(): Setting(name, value, setting.location) for name, _, value in words if name.lower() in _FIELDS}
