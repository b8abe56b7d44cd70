"""Model files: a policy with its coefficients, diagnostics and origin as JSON.

A model file may come from a stranger: every field is checked before use, sizes are bounded, and the formula goes
through the parser of the grammar.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import dump_json
from policyfactory.core.errors import FormulaError, ModelFileError, UsageError
from policyfactory.core.files import atomic_write
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.version import __version__
from policyfactory.policy.file_fields import (
    Check,
    Schema,
    decode,
    finite,
    is_number,
    is_text,
    is_whole,
    kind_word,
    plain,
)
from policyfactory.policy.latex import to_latex
from policyfactory.policy.network import NETWORK_KIND, network_from_json, network_to_json
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
    sha256 : str
        Of the bytes it was read from; empty if it was read from no file.
    """

    policy: Policy
    coefficients: tuple[FittedNumber, ...] = ()
    diagnostics: dict[str, Any] = dataclasses.field(default_factory=dict)
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    sha256: str = dataclasses.field(default="", compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the fit found that speaks against the formula, in words; at most ten sentences."""
        warnings = self.diagnostics.get("warnings")
        said = [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
        return tuple(text[:_LONGEST_WARNING] for text in said[:_MOST_WARNINGS])

    @property
    def verdict(self) -> str:
        """What `policyfactory.learn` said of it on jobs without part in the choice; empty if nobody judged it."""
        verdict = self.diagnostics.get("verdict")
        return verdict[:_LONGEST_WARNING] if isinstance(verdict, str) else ""


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the model as plain JSON values; that of a network as `policyfactory.policy.network` writes it."""
    policy = model.policy
    if policy.network is not None:
        return network_to_json(policy.network)
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
        "threshold_s": finite(policy.threshold),
        "coefficients": [
            {"name": c.name, "term": c.term, "value": finite(c.value), "stderr": finite(c.stderr), "unit": c.unit}
            for c in model.coefficients
        ],
        "diagnostics": plain(model.diagnostics),
        "provenance": plain(model.provenance),
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
    """Read a model file, of a formula or of a network.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no model, or one of a newer schema.
    """
    data = read_bytes(Path(path), limit=LARGEST_FILE)
    return dataclasses.replace(model_from_json(decode(data, str(path)), str(path)), sha256=sha256_bytes(data))


def model_from_json(value: Any, place: str) -> Model:
    """Return the model of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    if not isinstance(value, dict):
        raise ModelFileError(f"{place}: a model file is a JSON object, this one is a {kind_word(value)}")
    if value.get("kind") == NETWORK_KIND:
        network = network_from_json(value, place)
        return Model(Policy.from_network(network), (), network.diagnostics, network.provenance)
    _SCHEMA.check(value, place)
    threshold = value.get("threshold_s")
    try:
        policy = Policy(
            name=value["name"],
            formula=value["formula"],
            description=value.get("description", ""),
            source=value.get("source", ""),
            epoch=Epoch(**(value.get("epoch") or {})),
            threshold=math.inf if threshold is None else float(threshold),
        )
    except FormulaError as error:
        raise ModelFileError(f"{place}: formula: {error}") from None
    except UsageError as error:
        raise ModelFileError(f"{place}: {error}") from None
    coefficients = tuple(
        FittedNumber(item["name"], item["term"], _known(item["value"]), _known(item["stderr"]), item["unit"])
        for item in value.get("coefficients", [])
    )
    return Model(policy, coefficients, value.get("diagnostics", {}), value.get("provenance", {}))


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _is_epoch(value: Any) -> bool:
    if value is None or not isinstance(value, dict):
        return value is None
    rule, unix_time = value.get("rule", "window-start"), value.get("unix_time")
    whole = unix_time is None or (is_whole(unix_time) and abs(unix_time) <= 1 << 40)
    return rule in EPOCH_RULES and whole and not set(value) - {"rule", "unix_time"}


def _is_coefficient(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"name", "term", "unit", "value", "stderr"}:
        return False
    texts = all(is_text(value[key], 200) and value[key].isprintable() for key in ("name", "term", "unit"))
    return texts and all(value[key] is None or is_number(value[key]) for key in ("value", "stderr"))


def _are_coefficients(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_COEFFICIENTS and all(map(_is_coefficient, value))


# Field -> what it has to be: a check, and its words. What is not here is for readers of the file only.
_FIELDS: dict[str, Check] = {
    "kind": (lambda value: value == _KIND, f"{_KIND!r} (is it a file of policyfactory fit or export --to json?)"),
    "schema_version": (lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "name": (lambda value: is_text(value, 100), "a text of at most 100 characters"),
    "formula": (lambda value: is_text(value, 4000), "a text of at most 4000 characters"),
    "description": (lambda value: is_text(value, 2000), "a text of at most 2000 characters"),
    "source": (lambda value: is_text(value, 2000), "a text of at most 2000 characters"),
    "epoch": (_is_epoch, f"rule ({', '.join(EPOCH_RULES)}) and unix_time (whole seconds or null)"),
    "threshold_s": (
        lambda value: value is None or (is_number(value) and value >= 0),
        "seconds >= 0, or null for none",
    ),
    "coefficients": (
        _are_coefficients,
        (
            f"a list of at most {_MOST_COEFFICIENTS} objects of name, term, unit (texts), value and stderr (finite "
            "numbers or null)"
        ),
    ),
    "diagnostics": (lambda value: isinstance(value, dict), "an object"),
    "provenance": (lambda value: isinstance(value, dict), "an object"),
}
_SCHEMA = Schema(
    "model", MODEL_SCHEMA, _FIELDS, _REQUIRED, frozenset({"latex", "order", "units", "static", "written_by"})
)
