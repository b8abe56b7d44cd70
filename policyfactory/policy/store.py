"""Model files: a policy with its coefficients, diagnostics and origin as JSON.

A model file may come from a stranger: every field is checked before use, sizes are bounded, and the formula goes
through the parser of the grammar.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from policyfactory.core.artefact import atomic_write, dump_json, read_bytes
from policyfactory.core.errors import FormulaError, ModelFileError, UsageError
from policyfactory.core.version import __version__
from policyfactory.policy.latex import to_latex
from policyfactory.policy.nodes import VARIABLES
from policyfactory.policy.policy import EPOCH_RULES, Epoch, Policy

__all__ = [
    "LARGEST_FILE",
    "MODEL_SCHEMA",
    "FittedNumber",
    "Model",
    "load_model",
    "model_from_json",
    "model_to_json",
    "save_model",
]

MODEL_SCHEMA = 1
_KIND = "policyfactory-model"
LARGEST_FILE = 8 << 20  # bytes
_MOST_COEFFICIENTS = 1000
_MOST_WARNINGS, _LONGEST_WARNING = 10, 300
_REQUIRED = ("kind", "schema_version", "name", "formula")
_KNOWN = frozenset(
    {
        *_REQUIRED,
        *("latex", "order", "units", "static", "description", "source", "epoch", "threshold_s"),
        *("coefficients", "diagnostics", "provenance", "written_by"),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class FittedNumber:
    """A number of a fitted formula.

    Parameters
    ----------
    name : str
        For example ``c1``.
    term : str
        What it multiplies, for example ``log10(r)``.
    value, stderr : float
        Estimate and standard error, in ``unit``; the error is NaN where unknown.
    unit : str
        For example ``1/s``.
    """

    name: str
    term: str
    value: float
    stderr: float = math.nan
    unit: str = "1"


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A policy and what is known about how it was found.

    Parameters
    ----------
    policy : Policy
        The formula in use.
    coefficients : tuple of FittedNumber
        The fitted numbers; empty for a formula that was not fitted here.
    diagnostics : dict
        JSON values: errors of the fit, variance inflation factors, warnings.
    provenance : dict
        JSON values: command, seed, input hashes, versions.
    """

    policy: Policy
    coefficients: tuple[FittedNumber, ...] = ()
    diagnostics: dict[str, Any] = dataclasses.field(default_factory=dict)
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the fit found that speaks against the formula, in words; at most ten sentences."""
        warnings = self.diagnostics.get("warnings")
        said = [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
        return tuple(text[:_LONGEST_WARNING] for text in said[:_MOST_WARNINGS])


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the model as plain JSON values."""
    policy = model.policy
    return {
        "kind": _KIND,
        "schema_version": MODEL_SCHEMA,
        "written_by": f"policyfactory {__version__}",
        "name": policy.name,
        "formula": policy.formula,
        "latex": to_latex(policy.expression),
        "order": "lower runs first",
        "units": {name: VARIABLES[name] for name in sorted(policy.variables)},
        "static": policy.is_static,
        "description": policy.description,
        "source": policy.source,
        "epoch": {"rule": policy.epoch.rule, "unix_time": policy.epoch.unix_time},
        "threshold_s": _finite(policy.threshold),
        "coefficients": [
            {"name": c.name, "term": c.term, "value": _finite(c.value), "stderr": _finite(c.stderr), "unit": c.unit}
            for c in model.coefficients
        ],
        "diagnostics": _plain(model.diagnostics),
        "provenance": _plain(model.provenance),
    }


def save_model(model: Model, path: Path) -> None:
    """Write the model as JSON, whole or not at all.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    atomic_write(Path(path), dump_json(model_to_json(model)))


def load_model(path: Path) -> Model:
    """Read a model file.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no model, or one of a newer schema.
    """
    data = read_bytes(Path(path), limit=LARGEST_FILE)
    return model_from_json(_decode(data, str(path)), str(path))


def model_from_json(value: Any, place: str) -> Model:
    """Return the model of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    fields = _Fields(value, place)
    fields.check_schema()
    try:
        policy = Policy(
            name=fields.text("name", 100),
            formula=fields.text("formula", 4000),
            description=fields.text("description", 2000, ""),
            source=fields.text("source", 2000, ""),
            epoch=_epoch(fields),
            threshold=_threshold(fields),
        )
    except FormulaError as error:
        raise ModelFileError(f"{place}: formula: {error}") from None
    except UsageError as error:
        raise ModelFileError(f"{place}: {error}") from None
    return Model(policy, _coefficients(fields), fields.mapping("diagnostics"), fields.mapping("provenance"))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Return numpy scalars and arrays as JSON values, and what is not finite as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return _finite(value) if isinstance(value, float) else value


def _decode(data: bytes, place: str) -> Any:
    def refuse(token: str) -> NoReturn:
        raise ModelFileError(f"{place}: {token} is not JSON; write null where a number is unknown")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ModelFileError(f"{place}: a field is given twice; keep one of them")
        return fields

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{place}: is not UTF-8 text (byte {error.start + 1}); is it a model file?") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{place}:{error.lineno}: is not JSON: {error.msg}; is it a model file?") from None
    except (RecursionError, ValueError):
        raise ModelFileError(f"{place}: is nested too deeply or holds a number too long; is it a model file?") from None


class _Fields:
    """The top level of a model file; every access checks the type."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise ModelFileError(f"{place}: a model file is a JSON object, this one is a {_kind(value)}")
        self._value = value
        self._place = place

    def fail(self, field: str, expected: str) -> NoReturn:
        raise ModelFileError(f"{self._place}: field {field}: expected {expected}, got {_shown(self.get(field))}")

    def get(self, field: str) -> Any:
        return self._value.get(field)

    def check_schema(self) -> None:
        if self.get("kind") != _KIND:
            self.fail("kind", f"{_KIND!r} (is it a file of policyfactory fit or export --to json?)")
        version = self.get("schema_version")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            self.fail("schema_version", "a whole number from 1")
        if version > MODEL_SCHEMA:
            written = self.get("written_by")
            by = f", written by {written}," if isinstance(written, str) and written.isprintable() else ""
            raise ModelFileError(
                f"{self._place}: has model schema {version}{by[:80]} but policyfactory {__version__} reads schemas "
                f"up to {MODEL_SCHEMA}; install a newer policyfactory, or write the file again with this one"
            )
        for field in _REQUIRED:
            if field not in self._value:
                raise ModelFileError(f"{self._place}: field {field} is missing; a model has {', '.join(_REQUIRED)}")
        unknown = sorted(set(self._value) - _KNOWN)
        if unknown:
            raise ModelFileError(
                f"{self._place}: unknown field {_shown(unknown[0])}; "
                f"schema {MODEL_SCHEMA} has {', '.join(sorted(_KNOWN))}"
            )

    def text(self, field: str, longest: int, default: str | None = None) -> str:
        value = self._value.get(field, default)
        if not isinstance(value, str) or len(value) > longest:
            self.fail(field, f"a text of at most {longest} characters")
        return value

    def mapping(self, field: str) -> dict[str, Any]:
        value = self._value.get(field, {})
        if not isinstance(value, dict):
            self.fail(field, "an object")
        return value

    def items(self, field: str, most: int) -> list[Any]:
        value = self._value.get(field, [])
        if not isinstance(value, list) or len(value) > most:
            self.fail(field, f"a list of at most {most}")
        return value


def _epoch(fields: _Fields) -> Epoch:
    value = fields.mapping("epoch") if fields.get("epoch") is not None else {}
    rule, unix_time = value.get("rule", "window-start"), value.get("unix_time")
    whole = unix_time is None or (isinstance(unix_time, int) and not isinstance(unix_time, bool))
    if rule not in EPOCH_RULES or not whole or abs(unix_time or 0) > 1 << 40 or set(value) - {"rule", "unix_time"}:
        fields.fail("epoch", f"rule ({', '.join(EPOCH_RULES)}) and unix_time (whole seconds or null)")
    return Epoch(rule, unix_time)


def _threshold(fields: _Fields) -> float:
    value = fields.get("threshold_s")
    if value is None:
        return math.inf
    if not _is_number(value) or value < 0:
        fields.fail("threshold_s", "seconds >= 0, or null for none")
    return float(value)


def _coefficients(fields: _Fields) -> tuple[FittedNumber, ...]:
    coefficients = []
    for item in fields.items("coefficients", _MOST_COEFFICIENTS):
        texts = isinstance(item, dict) and all(_is_short(item.get(key)) for key in ("name", "term", "unit"))
        if not texts or set(item) != {"name", "term", "value", "stderr", "unit"}:
            fields.fail("coefficients", "objects of name, term, unit (texts), value and stderr (number or null)")
        if not all(item[key] is None or _is_number(item[key]) for key in ("value", "stderr")):
            fields.fail("coefficients", "value and stderr to be finite numbers or null")
        value, stderr = (math.nan if item[key] is None else float(item[key]) for key in ("value", "stderr"))
        coefficients.append(FittedNumber(item["name"], item["term"], value, stderr, item["unit"]))
    return tuple(coefficients)


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 200 and value.isprintable()


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 1e300


def _kind(value: Any) -> str:
    names = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _shown(value: Any) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:60] + "..."
