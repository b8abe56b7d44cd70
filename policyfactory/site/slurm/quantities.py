"""Numbers as Slurm's files write them: times, counts, resources by name (TRES), generic resources of nodes (Gres)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from policyfactory.core.errors import SiteError
from policyfactory.core.text import shortened
from policyfactory.site.model import Limits
from policyfactory.site.origin import Setting
from policyfactory.site.values import LONGEST_TIME, parse_memory
from policyfactory.workload.accounting.times import duration

__all__ = [
    "ENDLESS",
    "gres",
    "hosts",
    "leading",
    "limits",
    "listed",
    "refused",
    "seconds",
    "tres",
    "unsigned",
    "whole",
    "yes",
]

ENDLESS = frozenset({"infinite", "unlimited", "-1"})

_LARGEST = 2**53
_TRES = re.compile(r"[A-Za-z][A-Za-z0-9_/:.-]{0,79}", re.ASCII)
_UNSIGNED = re.compile(r"\+?(?:(0x[0-9a-f]{1,16})|(0[0-7]{0,22})|([1-9]\d{0,19}))(k?)", re.ASCII | re.IGNORECASE)
_LEADING = re.compile(r"\s*([+-]?\d{1,18})", re.ASCII)
_COUNT = re.compile(r"(\d{1,12})([KMGT]?)", re.ASCII | re.IGNORECASE)
_GRES = re.compile(r"(\d{1,12})([KMGTP]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
# Of limits, which resources there are, by their names in TRES.
_FIELDS = {"cpu": "cores", "mem": "memory", "node": "nodes", "gres/gpu": "gpus"}


def refused(setting: Setting, expected: str) -> SiteError:
    """Return the error of a value that is not what it should be."""
    return SiteError(f"{setting.place}: {setting.key} is {shortened(setting.value, 60)!r}; expected {expected}")


def seconds(setting: Setting) -> float:
    """Return the seconds of a time in minutes, or ``days-hours:minutes:seconds``; whole minutes, as Slurm rounds them.

    Raises
    ------
    SiteError
        If it is none.
    """
    if setting.value.lower() in ENDLESS:
        return math.inf
    # Days alone, with their dash, are a time as well.
    known = duration(setting.value.removesuffix("-") + ("-0" if setting.value.endswith("-") else ""))
    rounded = math.inf if known is None else 60.0 * math.ceil(known / 60)
    if rounded > LONGEST_TIME:
        raise refused(
            setting,
            f"minutes, or a time such as 1-12:00:00, or UNLIMITED; at most {LONGEST_TIME // 60:,} minutes",
        )
    return rounded


def whole(setting: Setting, low: int = 0, high: int = _LARGEST) -> int:
    """Return a whole number from ``low`` to ``high``.

    Raises
    ------
    SiteError
        If it is none.
    """
    text = setting.value.strip()
    if not re.fullmatch(r"-?\d{1,16}", text, re.ASCII) or not low <= int(text) <= high:
        raise refused(setting, f"a whole number from {low:,} to {high:,}")
    return int(text)


def unsigned(setting: Setting, bits: int) -> int:
    """Return a number of slurm.conf, as C reads it: 0x10 and 010 are 16 and 8, K is 1024; UNLIMITED is the largest.

    Parameters
    ----------
    setting : Setting
        Of a key that Slurm keeps in so many bits.
    bits : {16, 32, 64}
        A number of 16 bits has no K.

    Raises
    ------
    SiteError
        If it is none that slurmctld would take (parse_value.c).
    """
    largest = (1 << bits) - 1
    text = setting.value.strip().lower()
    match = _UNSIGNED.fullmatch(text)
    number = largest if text in {"unlimited", "infinite"} else -1
    if match and not (match[4] and bits == 16):
        sixteens, eights, tens = match.group(1, 2, 3)
        number = int(sixteens, 16) if sixteens else int(eights, 8) if eights else int(tens)
        number *= 1024 if match[4] else 1
    if not 0 <= number <= largest:
        raise refused(setting, f"a whole number from 0 to {largest:,}")
    return min(number, _LARGEST)


def leading(text: str) -> int:
    """Return the number that a text begins with, 0 if with none: so Slurm reads numbers in lists of parameters."""
    match = _LEADING.match(text)
    return int(match[1]) if match else 0


def hosts(text: str) -> str:
    """Return a host list without the blanks, and the commas too many, that Slurm passes over."""
    return re.sub(r"[\s,]+", ",", text).strip(",")


def yes(setting: Setting) -> bool:
    """Return whether it is YES, UP, TRUE or 1, and not NO, DOWN, FALSE or 0.

    Raises
    ------
    SiteError
        If it is none of them.
    """
    word = setting.value.lower()
    if word in {"yes", "up", "true", "1"}:
        return True
    if word in {"no", "down", "false", "0"}:
        return False
    raise refused(setting, "YES or NO")


def listed(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; none for an empty one."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def tres(setting: Setting) -> dict[str, float]:
    """Return the amounts of resources by their names in lower case: ``cpu=16,mem=1G,gres/gpu=2``; memory in MB.

    Raises
    ------
    SiteError
        If it is no such list.
    """
    amounts: dict[str, float] = {}
    for one in listed(setting.value):
        name, _, value = one.partition("=")
        amount = parse_memory(value) if name.lower() in {"mem", "vmem"} else _number(value)
        if not _TRES.fullmatch(name) or amount is None:
            raise refused(setting, "resources such as cpu=16,mem=64G,gres/gpu=2")
        # -1 takes a limit away.
        if amount >= 0:
            amounts[name.lower()] = amount
    return amounts


def _number(text: str) -> float | None:
    if text.strip() == "-1":
        return -1.0
    match = _COUNT.fullmatch(text.strip())
    if match:
        count = int(match[1]) * _SIZES[match[2].lower()]
        return float(count) if count <= _LARGEST else None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _LARGEST else None


def limits(
    amounts: Mapping[str, float], jobs: float = math.inf, submitted: float = math.inf
) -> tuple[Limits, dict[str, float]]:
    """Return the limits of amounts by TRES, and what of them a site does not have."""
    known = {_FIELDS[name]: amount for name, amount in amounts.items() if name in _FIELDS}
    return Limits(jobs, submitted, **known), {name: amount for name, amount in amounts.items() if name not in _FIELDS}


def gres(setting: Setting) -> tuple[dict[str, int], list[str]]:
    """Return the counts of generic resources, ``gpu`` or with its type ``gpu:a100``, of a node's Gres.

    Returns
    -------
    counts : dict of str to int
        By name.
    bad : list of str
        Those whose count is none: Slurm says so in its log, and goes on (gres.c).
    """
    counts: dict[str, int] = {}
    bad = []
    for one in listed(re.sub(r"\([^()]*\)", "", setting.value)):
        words = [word for word in one.split(":") if word.lower() != "no_consume"]
        match = _GRES.fullmatch(words[-1]) if len(words) > 1 else None
        names = words[:-1] if match else words
        if not all(_TRES.fullmatch(word) for word in names):
            bad.append(one)
            continue
        name = ":".join(names).lower()
        counts[name] = counts.get(name, 0) + (int(match[1]) * _SIZES[match[2].lower()] if match else 1)
    return counts, bad


def gpus(counts: Mapping[str, int]) -> int:
    """Return how many GPUs there are, of whatever types."""
    return sum(count for name, count in counts.items() if name.partition(":")[0] == "gpu")


def types_of_gpus(nodes: Iterable[Mapping[str, int]]) -> list[str]:
    """Return the types of GPUs of nodes, in order."""
    return sorted({name for counts in nodes for name in counts if name.startswith("gpu:")})
