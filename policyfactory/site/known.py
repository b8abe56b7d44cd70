"""Which settings of Slurm are modelled, which change nobody's start, and what the others would change."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.resources
import operator
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from policyfactory.site.model import NotModelled

__all__ = ["UNKNOWN", "Settings", "known_settings", "with_hints"]

UNKNOWN = "unknown to policyfactory: check its spelling, or what it does in your version of the scheduler"

_LONGEST = 1000  # characters that a reader looks at
_LONGEST_KEY = 80
_MOST_HINTS = 100
_MOST_ALIKE = 100
_MOST_EFFECTS = 200
_OTHERS = "of many kinds: look at these lines"
_HARMLESS = frozenset({"", "(null)", "none", "no", "off", "n/a", "false"})


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a file or a record.

    Parameters
    ----------
    names : mapping of str to str
        As Slurm writes them, by lower case.
    modelled, silent : frozenset of str
        In lower case.
    effects : mapping of str to str
        By lower case, what a setting that matters would change.
    harmless : mapping of str to frozenset of str
        Values of these that change nothing.
    """

    names: Mapping[str, str]
    modelled: frozenset[str]
    silent: frozenset[str]
    effects: Mapping[str, str]
    harmless: Mapping[str, frozenset[str]]

    def judge(self, key: str, value: str, place: str, prefix: str = "") -> NotModelled | None:
        """Return what to say of a setting: nothing if it is modelled or changes nothing.

        Parameters
        ----------
        key, value, place : str
            As they stand there.
        prefix : str
            What the setting belongs to, for its name: ``PartitionName=gpu``.
        """
        lower = key.lower()
        if lower in self.modelled or lower in self.silent:
            return None
        name = f"{prefix} {self.names.get(lower, key)}".strip()[:_LONGEST]
        value = value[:_LONGEST]
        effect = self.effects.get(lower)
        if effect is None:
            return NotModelled(name, value, place, UNKNOWN)
        short = value.strip().lower()
        if short in _HARMLESS or short.endswith("/none") or short in self.harmless[lower]:
            return None
        return NotModelled(name, value, place, effect)


def with_hints(missing: Iterable[NotModelled]) -> tuple[NotModelled, ...]:
    """Return what is not modelled with the nearest name beside an unknown one; of one effect the first hundred.

    A name is compared with all that Slurm has: of a million that nobody knows this took more than five minutes.
    """
    alike: Counter[str] = Counter()
    first_left: dict[str, NotModelled] = {}
    names = functools.reduce(operator.or_, (dict(known_settings(kind).names) for kind in _kinds()))
    hints: dict[str, str] = {}
    found = []
    for one in missing:
        effect = one.effect if one.effect in alike or len(alike) < _MOST_EFFECTS else _OTHERS
        alike[effect] += 1
        if alike[effect] > _MOST_ALIKE:
            first_left.setdefault(effect, one)
            continue
        key = one.name.rpartition(" ")[2].lower()
        if one.effect == UNKNOWN and key not in names and (key in hints or len(hints) < _MOST_HINTS):
            if key not in hints:
                near = difflib.get_close_matches(key[:_LONGEST_KEY], names, n=1, cutoff=0.8)
                hints[key] = f" (did you mean {names[near[0]]}?)" if near else ""
            one = dataclasses.replace(one, effect=f"{UNKNOWN}{hints[key]}")  # noqa: PLW2901 (the same with its hint)
        found.append(one)
    for effect, one in first_left.items():
        more = f"and {alike[effect] - _MOST_ALIKE:,} more, from {one.name} on"
        found.append(NotModelled(more[:_LONGEST], "", one.place, effect))
    return tuple(found)


@functools.cache
def _table() -> Mapping[str, Any]:
    place = importlib.resources.files(f"{__package__}.slurm").joinpath("keys.toml")
    return tomllib.loads(place.read_text(encoding="utf-8"))


def _kinds() -> Iterable[str]:
    return [kind for kind, table in _table().items() if "modelled" in table]


@functools.cache
def known_settings(kind: str) -> Settings:
    """Return the settings of a kind, a table of ``keys.toml``."""
    table = _table()[kind]
    modelled, silent, matters = table["modelled"].split(), table["silent"].split(), table.get("matters", {})
    return Settings(
        {name.lower(): name for name in (*modelled, *silent, *matters)},
        frozenset(name.lower() for name in modelled),
        frozenset(name.lower() for name in silent),
        {name.lower(): entry["effect"] for name, entry in matters.items()},
        {name.lower(): frozenset(entry.get("harmless", ())) for name, entry in matters.items()},
    )
