"""What exports are made of in other languages: files of this folder, whole or in named parts."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_PLACE = re.compile(r"@([A-Z_]+)@")
_PART = re.compile(r"^(?:#|--|//)=== (\w+)\n", re.MULTILINE)


@functools.cache
def whole(name: str) -> str:
    """Return the text of a file."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def parts(name: str) -> Mapping[str, str]:
    """Return the parts of a file by name, in its order; each begins behind a comment ``=== NAME``."""
    _, *named = _PART.split(whole(name))
    return MappingProxyType(dict(zip(named[::2], named[1::2], strict=True)))


def filled(name: str, values: Mapping[str, object]) -> str:
    """Return the text of a file with the values; see `fill`."""
    return fill(whole(name), values)


def sentences(name: str, *sections: str, **values: object) -> tuple[str, ...]:
    """Return the paragraphs of some parts of a file, each as one line.

    Parameters
    ----------
    name : str
        Of the file. Blank lines separate its paragraphs.
    *sections : str
        Names of its parts.
    **values : object
        What stands for ``@NAME@``; the name of a part stands for that part.
    """
    return tuple(fill(text, values) for section in sections for text in _paragraphs(name, section))


@functools.cache
def _paragraphs(name: str, section: str) -> tuple[str, ...]:
    known = {part.upper(): text.strip("\n") for part, text in parts(name).items()}
    text = known[section.upper()]
    while not known.keys().isdisjoint(_PLACE.findall(text)):
        text = _PLACE.sub(lambda match: known.get(match[1], match[0]), text)
    return tuple(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))


def fill(text: str, values: Mapping[str, object]) -> str:
    """Return ``text`` with the values of ``@NAME@``; in what is put in nothing is replaced."""
    return _PLACE.sub(lambda match: str(values[match[1]]), text)
