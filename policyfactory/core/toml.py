"""TOML: files of strangers read within bounds, and what `tomllib` reads written as text again.

Comments and layout of the file that it came from are not kept.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.errors import InputError
from policyfactory.core.inputs import read_bytes
from policyfactory.core.text import shortened

_MOST_POINTS = 500  # of a line
_QUOTED = re.compile(rb'"[^"]*"')


def read_toml(path: Path, *, limit: int, page: str) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a TOML file, and what is in it.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        The most bytes that are read.
    page : str
        The page of the documentation that shows the layout, for messages.

    Raises
    ------
    InputError
        If it cannot be read, is larger than ``limit``, or is no TOML.
    """
    data = read_bytes(path, limit=limit)
    for number, line in enumerate(data.splitlines(), 1):
        # Names inside names: reading one takes the square of their number.
        if line.count(b".") > _MOST_POINTS and _QUOTED.sub(b"", line).count(b".") > _MOST_POINTS:
            raise InputError(f"{path}:{number}: has more than {_MOST_POINTS} points; break the line")
    try:
        return data, tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no TOML: {error}; {page} shows the layout") from None
    except ValueError as error:
        # What Python itself refuses: a date that is none, a number of thousands of digits.
        raise InputError(
            f"{path}: has a number or a date that cannot be read ({shortened(str(error), 60)}); {page} shows the layout"
        ) from None
    except RecursionError:
        raise InputError(f"{path}: lists or tables are nested too deeply; {page} shows the layout") from None


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
