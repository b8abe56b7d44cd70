"""Defaults that Slurm has changed from version to version, for what a slurm.conf does not say.

The one table of them is here, of those whose version a source of Slurm's tells; the others are those of
`policyfactory.site.model`, which Slurm has had since 22.05. Older ones can have others: bf_max_job_test was 100, and
is 500. ``scontrol show config`` prints what is in force, and needs none.
"""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError
from policyfactory.core.text import shortened
from policyfactory.site.model import ASSUMED_VERSION, Origin, Setting
from policyfactory.site.slurm.conf import Conf, listed
from policyfactory.site.values import parse_version, write_version


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
