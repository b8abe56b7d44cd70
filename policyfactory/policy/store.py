"""Model files: a policy with its coefficients, diagnostics and origin as JSON.

A model file may come from a stranger: every field is checked before use, sizes are bounded, and the formula goes
through the parser of the grammar.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import AfterValidator, BaseModel, Field

from policyfactory.core.errors import FormulaError, ModelFileError, UsageError
from policyfactory.core.files import atomic_write, dump_json
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.text import did_you_mean, finite, plain
from policyfactory.core.version import __version__
from policyfactory.policy.expression import VARIABLES, format_number, to_latex
from policyfactory.policy.network import NETWORK_KIND, NamedFile, Network, decode, network_from_json, network_to_json
from policyfactory.policy.policy import EPOCH_RULES, Epoch, EpochRule, Policy

MODEL_SCHEMA = 1
_KIND = "policyfactory-model"
LARGEST_FILE = 8 << 20  # bytes
_MOST_COEFFICIENTS = 1000
_MOST_WARNINGS, _LONGEST_WARNING = 10, 300


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
        texts = [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
        return tuple(text[:_LONGEST_WARNING] for text in texts[:_MOST_WARNINGS])

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
        **({"backfill_formula": policy.backfill_formula} if policy.backfill_formula else {}),
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


def model_from_json(value: Any, source: str) -> Model:
    """Return the model of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    if isinstance(value, dict) and value.get("kind") == NETWORK_KIND:
        network = network_from_json(value, source)
        return Model(Policy.from_network(network), (), network.diagnostics, network.provenance)
    content = _ModelFile.read(value, source)
    try:
        policy = Policy(
            name=content.name,
            formula=content.formula,
            description=content.description,
            source=content.source,
            epoch=Epoch(**dict(content.epoch or {})),
            threshold=math.inf if content.threshold_s is None else content.threshold_s,
            backfill_formula=content.backfill_formula,
        )
    except FormulaError as error:
        field = "backfill_formula" if error.text == content.backfill_formula else "formula"
        raise ModelFileError(f"{source}: {field}: {error}") from None
    except UsageError as error:
        raise ModelFileError(f"{source}: {error}") from None
    coefficients = tuple(
        FittedNumber(number.name, number.term, _known(number.value), _known(number.stderr), number.unit)
        for number in content.coefficients
    )
    return Model(policy, coefficients, content.diagnostics, content.provenance)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a text that can be printed in one line is expected")
    return text


_Formula = Annotated[str, Field(max_length=4000)]
_Text = Annotated[str, Field(max_length=200), AfterValidator(_printable)]
_Number = Annotated[float, Field(ge=-1e300, le=1e300)]


class _EpochRecord(BaseModel, strict=True, extra="forbid"):
    rule: EpochRule = "window-start"
    unix_time: Annotated[int, Field(ge=-(1 << 40), le=1 << 40)] | None = None


class _CoefficientRecord(BaseModel, strict=True, extra="forbid"):
    name: _Text
    term: _Text
    value: _Number | None
    stderr: _Number | None
    unit: _Text


class _ModelFile(NamedFile):
    what = "model"
    made_by = "fit or export --to json"
    newest = MODEL_SCHEMA

    kind: Literal["policyfactory-model"]
    formula: _Formula
    backfill_formula: _Formula = ""
    epoch: _EpochRecord | None = Field(
        None, description=f"rule ({', '.join(EPOCH_RULES)}) and unix_time (whole seconds or null)"
    )
    threshold_s: Annotated[float, Field(ge=0, le=1e300)] | None = Field(
        None, description="seconds >= 0, or null for none"
    )
    coefficients: list[_CoefficientRecord] = Field(
        [],
        max_length=_MOST_COEFFICIENTS,
        description=f"a list of at most {_MOST_COEFFICIENTS} objects of name, term, unit (texts), value and stderr "
        "(finite numbers or null)",
    )
    # For readers of the file only.
    latex: Any = None
    order: Any = None
    units: Any = None
    static: Any = None


# The known policies, by name; ``catalogue.toml`` has them -------------------------------------------------------------

# A formula is written so that LOWER runs first: "largest first" has a minus sign. At the edges the formulas do what
# the programs of their papers do: log10(0) is minus infinity, so a job submitted at the epoch itself (r = 0) goes
# first under F1 to F4; log2(1) is 0, so a job of one processor goes first under UNICEF.
#
# Sources
# -------
# TPDS'18: Gaussier, Lelong, Reis, Trystram, "Online tuning of EASY-backfilling using queue reordering policies",
# IEEE TPDS 29 (2018), section 4.1. SC'17: Carastan-Santos, de Camargo, "Obtaining dynamic scheduling policies with
# simulation and machine learning", SC 2017, tables 2 and 3. Regression: Rosa, Carastan-Santos, Goldman, "An
# experimental
# analysis of regression-obtained HPC scheduling heuristics", 2023, tables 1, 3, 4, 5. WFP3 and UNICEF: Tang, Lan,
# Desai,
# Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", CLUSTER 2009.


_REGRESSION = "Rosa, Carastan-Santos and Goldman, 2023, table {table}"
_KNOWN = tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
_DEGREES: dict[str, str] = _KNOWN["polynomials"]["degrees"]


def _polynomial(coefficients: list[float]) -> str:
    constant, *rest = coefficients
    terms = [format_number(constant)]
    for value, monomial in zip(rest, _KNOWN["polynomials"]["monomials"], strict=False):
        terms.append(f"{'-' if value < 0 else '+'} {format_number(abs(value))}*{monomial}")
    return " ".join(terms)


def _build() -> dict[str, Policy]:
    policies = [
        Policy(name, formula, words, group["source"])
        for group in _KNOWN["group"]
        for name, (formula, words) in group["policies"].items()
    ]
    for workload, known in _KNOWN["polynomials"]["workloads"].items():
        source = _REGRESSION.format(table=known["table"])
        for kind, coefficients in known["fits"].items():
            description = f"{_DEGREES[kind]} polynomial of p, q, r fitted to scores of {known['words']}"
            policies.append(Policy(f"{kind}-{workload}", _polynomial(coefficients), description, source))
    return {policy.name: policy for policy in policies}


CATALOGUE: dict[str, Policy] = _build()

ALIASES: dict[str, str] = {
    "SPT": "SPF",
    "SJF": "SPF",
    "WFP": "WFP3",
    "UNI": "UNICEF",
    **{kind: f"{kind}-SYNTHETIC" for kind in _DEGREES},
}


class _HasPolicy(Protocol):
    """A model, or a fit: what a policy was made from."""

    @property
    def policy(self) -> Policy: ...


PolicyLike: TypeAlias = str | Path | Policy | Network | _HasPolicy


def resolve(spec: PolicyLike) -> Policy:
    """Return the policy that ``spec`` is or means: a catalogue name (any case), a file, a network, a model, a fit.

    Raises
    ------
    UsageError
        If there is no such policy; near matches are named.
    ModelFileError, InputError
        If the model file cannot be used.

    Examples
    --------
    >>> import policyfactory as pf
    >>> pf.resolve("sjf")
    <Policy SPF: p>
    """
    if isinstance(spec, Policy):
        return spec
    if isinstance(spec, Network):
        return Policy.from_network(spec)
    if isinstance(spec, str | Path):
        return resolve_model(str(spec)).policy
    policy = getattr(spec, "policy", None)
    if isinstance(policy, Policy):
        return policy
    if callable(spec) or hasattr(spec, "predict"):
        raise UsageError("a function is no policy yet; make one of it: Policy.from_function(function, 'NAME')")
    raise UsageError(
        f"{ascii(spec)[:60]} is no policy; give a name, a model file, a Policy, a network, a model or a fit"
    )


def resolve_model(spec: str) -> Model:
    """Return the model of a catalogue name or alias (any case), or of a model file; errors as for `resolve`."""
    name = _catalogue_name(spec)
    if name in CATALOGUE:
        return published_model(CATALOGUE[name])
    is_formula = any(mark in spec for mark in "=*+(") and not spec.lower().endswith(".json")
    is_path = len(spec) <= 1000 and "\0" not in spec and (spec.lower().endswith(".json") or "/" in spec)
    if is_path and not (is_formula and not os.path.exists(spec)):  # noqa: PTH110
        return load_model(Path(spec))
    hint = did_you_mean(name, [*CATALOGUE, *ALIASES], 3, cutoff=0.5)
    if not hint and is_formula:
        hint = "a formula is given a name, --formula 'NAME=FORMULA', or in Python is Policy('NAME', 'FORMULA'); "
    shown = ascii(spec if len(spec) <= 60 else spec[:60] + "...")
    raise UsageError(
        f"unknown policy {shown}; {hint}`policyfactory policy list` shows all, and a model file is named by its path "
        "(models/NAME.json)"
    )


def is_catalogued(spec: str) -> bool:
    """Tell whether a text is a name or alias of the catalogue, and not a file."""
    return _catalogue_name(spec) in CATALOGUE


def _catalogue_name(spec: str) -> str:
    name = spec.strip().upper()
    return ALIASES.get(name, name)


def published_model(policy: Policy) -> Model:
    """Return a catalogue policy as a model; it was not fitted here, so it has no errors or diagnostics."""
    return Model(policy, provenance={"origin": "published", "citation": policy.source})
