"""Writing TOML: what `tomllib` reads, as text again. Comments and layout of the file it came from are not kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["dump_toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = 100  # a list that is longer gets a line an entry
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dump_toml(content: Mapping[str, Any]) -> str:
    """Return ``content`` as TOML; reading it gives equal content.

    Parameters
    ----------
    content : mapping
        Strings, integers, floats, booleans, lists and mappings of these; None leaves an entry out.

    Raises
    ------
    TypeError
        If a value is of another type.
    """
    return "\n".join(_table(content, ())).strip("\n") + "\n"


def _table(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    later: list[tuple[str, Any]] = []
    for key, value in content.items():
        if value is None:
            continue
        if _is_table(value) or _is_tables(value):
            later.append((key, value))
        else:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in later:
        inner = (*path, key)
        name = ".".join(map(_key, inner))
        for table in [value] if _is_table(value) else value:
            yield ""
            yield f"[{name}]" if _is_table(value) else f"[[{name}]]"
            yield from _table(table, inner)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _line_of(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        entries = (f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None)
        return f"{{ {', '.join(entries)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        entries_ = [_value(one) for one in value]
        line = f"[{', '.join(entries_)}]"
        return line if len(line) <= _LINE else "[\n" + "".join(f"  {entry},\n" for entry in entries_) + "]"
    raise TypeError(f"{type(value).__name__} is no type of TOML")


def _number(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    text = repr(value)
    return text if "." in text or "e" in text else f"{text}.0"


def _text(text: str) -> str:
    if "\n" not in text or not all(c.isprintable() or c == "\n" for c in text):
        return _line_of(text)
    # On lines of its own; a run of quotation marks must not end it.
    inner = text.replace("\\", "\\\\").replace('"""', '""\\"')
    if inner.endswith('"'):
        inner = inner[:-1] + '\\"'
    return f'"""\n{inner}"""'


def _line_of(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escaped(c)) for c in text) + '"'


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
