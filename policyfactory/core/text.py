"""Strings from strangers: shown as what they are, and never as something else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["anchors", "shown", "visible"]

# Controls (but newline and tab), what turns the direction of the text around or takes no room, lone surrogates and
# code points that are no characters.
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Return ``text`` with characters that hide or reorder text written as ``\u202e``.

    Parameters
    ----------
    text : str
        Anything; newlines and tabs stay.
    """
    return _DECEIVING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shown(value: Any) -> Any:
    """Return a value of the template as it is shown: plain text made visible, markup of our own untouched."""
    return visible(value) if type(value) is str else value


def anchors(names: Iterable[str]) -> list[str]:
    """Return an anchor for each name, made of its letters and digits, all distinct.

    Parameters
    ----------
    names : iterable of str
        Headings; any text.
    """
    found: dict[str, None] = {}
    for name in names:
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "part"
        anchor, number = stem, 1
        while anchor in found:
            number += 1
            anchor = f"{stem}-{number}"
        found[anchor] = None
    return list(found)
