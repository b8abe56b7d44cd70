"""Which settings of a scheduler are modelled, which change nobody's start, and what the others would change."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.resources
import tomllib
from collections.abc import Mapping

from policyfactory.site.model import NotModelled

__all__ = ["UNKNOWN", "Settings", "known_settings"]

UNKNOWN = "unknown to policyfactory: check its spelling, or what it does in your version of the scheduler"

_LONGEST = 1000  # characters that a reader looks at
_HARMLESS = frozenset({"", "(null)", "none", "no", "off", "n/a", "false"})


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a file or a record.

    Parameters
    ----------
    names : mapping of str to str
        As the scheduler writes them, by lower case.
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
            near = difflib.get_close_matches(lower, self.names, n=1, cutoff=0.8)
            hint = f" (did you mean {self.names[near[0]]}?)" if near else ""
            return NotModelled(name, value, place, f"{UNKNOWN}{hint}")
        short = value.strip().lower()
        if short in _HARMLESS or short.endswith("/none") or short in self.harmless[lower]:
            return None
        return NotModelled(name, value, place, effect)


@functools.cache
def known_settings(scheduler: str, kind: str) -> Settings:
    """Return the settings of a kind, a table of the ``keys.toml`` of a scheduler: ``slurm`` or ``pbs``."""
    place = importlib.resources.files(f"{__package__}.{scheduler}").joinpath("keys.toml")
    table = tomllib.loads(place.read_text(encoding="utf-8"))[kind]
    modelled, silent, matters = table["modelled"].split(), table["silent"].split(), table.get("matters", {})
    return Settings(
        {name.lower(): name for name in (*modelled, *silent, *matters)},
        frozenset(name.lower() for name in modelled),
        frozenset(name.lower() for name in silent),
        {name.lower(): entry["effect"] for name, entry in matters.items()},
        {name.lower(): frozenset(entry.get("harmless", ())) for name, entry in matters.items()},
    )
