"""Writing TOML: what `tomllib` reads, as text again. Comments and layout of the file it came from are not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["dump_toml"]


def dump_toml(content: Mapping[str, Any]) -> str:
    """Return ``content`` as TOML; reading it gives equal content, and nothing in it is hidden from the eye.

    Parameters
    ----------
    content : mapping
        Strings, integers, floats, booleans, lists and mappings of these; None leaves an entry out.

    Raises
    ------
    TypeError
        If a value is of another type.
    """
    import tomli_w

    # On lines of their own, texts would lose the carriage returns at their lines' ends.
    text = tomli_w.dumps(_without_none(content), multiline_strings="\\r" not in repr(content), indent=2)
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_without_none(entry) for entry in value]
    return value


def _escaped(character: str) -> str:
    if 0xD800 <= ord(character) < 0xE000:
        # A byte of a file's name that is no UTF-8: TOML has no way to write it, so its number stands in the text.
        return f"\\\\u{ord(character):04x}"
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
