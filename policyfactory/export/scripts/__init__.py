"""What exports are made of in other languages: files of this folder, whole or in named parts."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

__all__ = ["filled", "parts", "whole"]

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
    """Return the text of a file with the values of ``@NAME@``; in what is put in nothing is replaced."""
    return _PLACE.sub(lambda place: str(values[place[1]]), whole(name))
