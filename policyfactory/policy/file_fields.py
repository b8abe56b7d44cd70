"""What all files of policies are read with: JSON within bounds, every field checked before it is used."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from policyfactory.core.errors import ModelFileError
from policyfactory.core.version import __version__

__all__ = ["Check", "Schema", "decode", "finite", "is_number", "is_text", "is_whole", "kind_word", "plain", "shown"]

# What a field has to be: a check, and its words.
Check = tuple[Callable[[Any], bool], str]


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a kind of file.

    Parameters
    ----------
    what : str
        The file in words: ``model``.
    version : int
        The newest that is read.
    fields : mapping of str to check
        ``kind`` and ``schema_version`` first.
    required : tuple of str
        Fields that every file has.
    ignored : frozenset of str
        Fields for readers of the file only.
    """

    what: str
    version: int
    fields: Mapping[str, Check]
    required: tuple[str, ...]
    ignored: frozenset[str]

    def check(self, value: Mapping[str, Any], place: str) -> None:
        """Refuse a newer schema, and a field that is missing, unknown, or not what it should be.

        Raises
        ------
        ModelFileError
            Naming ``place`` and the field.
        """
        self._check_field(value, "kind", place)
        self._check_field(value, "schema_version", place)
        if value["schema_version"] > self.version:
            written = value.get("written_by")
            by = f", written by {written}," if isinstance(written, str) and written.isprintable() else ""
            raise ModelFileError(
                f"{place}: has {self.what} schema {value['schema_version']}{by[:80]} but policyfactory {__version__} "
                f"reads schemas up to {self.version}; install a newer policyfactory, or write the file again with this "
                "one"
            )
        for field in self.required:
            if field not in value:
                raise ModelFileError(f"{place}: field {field} is missing; a {self.what} has {', '.join(self.required)}")
        allowed = {*self.fields, *self.ignored}
        unknown = sorted(set(value) - allowed)
        if unknown:
            raise ModelFileError(
                f"{place}: unknown field {shown(unknown[0])}; schema {self.version} has {', '.join(sorted(allowed))}"
            )
        for field in self.fields:
            if field in value:
                self._check_field(value, field, place)

    def _check_field(self, value: Mapping[str, Any], field: str, place: str) -> None:
        is_right, expected = self.fields[field]
        if not is_right(value.get(field)):
            raise ModelFileError(f"{place}: field {field}: expected {expected}, got {shown(value.get(field))}")


def decode(data: bytes, place: str) -> Any:
    """Return the JSON value of a file.

    Raises
    ------
    ModelFileError
        If it is no JSON, ends in the middle, gives a field twice or is nested too deeply.
    """

    def refuse(token: str) -> NoReturn:
        raise ModelFileError(f"{place}: {token} is not JSON; write null where a number is unknown")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ModelFileError(f"{place}: a field is given twice; keep one of them")
        return fields

    text = ""
    try:
        text = data.decode("utf-8")
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{place}: is not UTF-8 text (byte {error.start + 1}); is it a model file?") from None
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
            raise ModelFileError(
                f"{place}:{error.lineno}: is not JSON: it ends in the middle ({len(data):,} bytes); copy the whole "
                "file, or make it again"
            ) from None
        raise ModelFileError(f"{place}:{error.lineno}: is not JSON: {error.msg}; is it a model file?") from None
    except (RecursionError, ValueError):
        raise ModelFileError(f"{place}: is nested too deeply or holds a number too long; is it a model file?") from None


def finite(value: float) -> float | None:
    """Return the number, or None for one that JSON has no word for."""
    return float(value) if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Return numpy scalars and arrays as JSON values, and what is not finite as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return finite(value) if isinstance(value, float) else value


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a number of usual size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def is_whole(value: Any) -> bool:
    """Tell whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: Any, longest: int) -> bool:
    """Tell whether a JSON value is a text of at most ``longest`` characters."""
    return isinstance(value, str) and len(value) <= longest


def kind_word(value: Any) -> str:
    """Return what a JSON value is, in words."""
    names = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def shown(value: Any) -> str:
    """Return a value as it stands in messages."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:60] + "..."
