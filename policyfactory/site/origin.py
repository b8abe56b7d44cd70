"""Where the entries of an imported site stand in the scheduler's own files, and what was corrected there.

A contradiction in an import is told with its line in the file that has to be changed, and a cure for that file.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Literal

from policyfactory.core.text import shortened

__all__ = ["Contradiction", "Origin", "Setting"]

_LONGEST_LINE = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """A key as it is written, its value, and the file and line where it stands."""

    key: str
    value: str
    place: str


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be true of a site.

    Parameters
    ----------
    kind : str
        By which a scheduler's file has its own cure.
    entry : str
        What of the site, ``partition batch``; empty: the site itself.
    text : str
        What is wrong, with ``{entry}`` and the names of ``values`` in braces.
    cure : str
        What to do in a site file.
    values : mapping of str to str
        What stands for the names: of fields as a site file writes them, and other words.
    """

    kind: str
    entry: str
    text: str
    cure: str
    values: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def said(self) -> str:
        """Return it in the words of a site file."""
        return _joined(self, self.cure)


@dataclasses.dataclass(slots=True)
class Origin:
    """Places and settings of the entries of a site.

    Parameters
    ----------
    cures : mapping of str to str
        By kind of contradiction.
    entries : dict of str to tuple of str and mapping of str to Setting
        By entry, as a `Contradiction` has it, the line where it begins and its settings; of two of a name the last.
    """

    cures: Mapping[str, str]
    entries: dict[str, tuple[str, Mapping[str, Setting]]] = dataclasses.field(default_factory=dict)
    _first: dict[str, str] = dataclasses.field(default_factory=dict, init=False)
    _times: Counter[str] = dataclasses.field(default_factory=Counter, init=False)

    def note(self, entry: str, place: str, settings: Mapping[str, Setting]) -> None:
        """Keep where an entry stands."""
        self.entries[entry] = (place, settings)

    def remark(self, kind: Literal["assumed", "corrected"], what: str, how: str) -> None:
        """Keep what was assumed, or what the scheduler corrects and goes on; so do we.

        Parameters
        ----------
        kind : {"assumed", "corrected"}
            Which of the two.
        what : str
            The setting or entry as it stands there, with its place.
        how : str
            What is taken in its place, in a sentence; of those with the same one the first is told, and the number.
        """
        self._first.setdefault(how, f"{kind}: {what}")
        self._times[how] += 1

    def correct(self, setting: Setting, of: str, how: str) -> None:
        """Keep that the scheduler corrects a setting of an entry: `remark` with its value and place."""
        what = f"{of} {setting.key}={shortened(setting.value, 60)}".strip()
        self.remark("corrected", f"{shortened(what, 160)} ({setting.place})", how)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed and corrected, each kind in a sentence."""
        return tuple(
            f"{first}: {how}" + (f"; so too {self._times[how] - 1:,} more" if self._times[how] > 1 else "")
            for how, first in self._first.items()
        )

    def said(self, one: Contradiction, where: str) -> str:
        """Return a contradiction with its line and the cure of the file; ``where`` stands for an unknown line."""
        place, _ = self.entries.get(one.entry, ("", {}))
        return f"{place or where}: {_joined(one, self.cures.get(one.kind, one.cure))}"


def _joined(one: Contradiction, cure: str) -> str:
    words = {"entry": one.entry, **one.values}
    return shortened(f"{one.text.format(**words)}; {cure.format(**words)}", _LONGEST_LINE)
