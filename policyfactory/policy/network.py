"""A network that scores each job by itself: formulas in p, q, w, m, f, then dense layers.

What comes out is a preference, the highest first, so the score of its policy is minus it. A network file may come
from a stranger: it is JSON, its sizes are bounded, and every field is checked before it is used.

The kernel network of Zhang, Dai, He, Bao and Xie, "RLScheduler: an automated HPC batch job scheduler using
reinforcement learning", SC 2020, is one: 8 inputs, hidden layers of 32, 16 and 8, 961 numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field, ValidationError, model_validator

from policyfactory.core.errors import FormulaError, ModelFileError, UsageError
from policyfactory.core.files import atomic_write, dump_json
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.text import plain
from policyfactory.core.version import __version__
from policyfactory.policy.expression import check_texts, parse

if TYPE_CHECKING:
    from policyfactory.policy.compile import Program

FloatArray32: TypeAlias = NDArray[np.float32]
WIDEST = 1024  # inputs or outputs


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A dense layer.

    Parameters
    ----------
    weights : float32 array (inputs, outputs)
        By what each input is multiplied for each output. (The weight of a linear layer of torch is its transpose.)
    biases : float32 array (outputs,)
        What is added.
    """

    weights: FloatArray32
    biases: FloatArray32

    def __post_init__(self) -> None:
        """Keep copies that cannot be written.

        Raises
        ------
        UsageError
            If shapes do not fit each other, a layer is wider than 1024, or a number is not finite.
        """
        for name in ("weights", "biases"):
            # What is too large for a float32 becomes infinite and is refused.
            with np.errstate(over="ignore"):
                column = np.array(getattr(self, name), dtype=np.float32, order="C")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        shape = self.weights.shape
        if len(shape) != 2 or min(shape) == 0 or self.biases.shape != shape[1:]:
            raise UsageError(
                f"has weights of shape {shape} and biases of shape {self.biases.shape}; give weights (inputs, outputs) "
                "and one bias for each output"
            )
        if max(shape) > WIDEST:
            raise UsageError(f"is {shape[0]:,} x {shape[1]:,}; at most {WIDEST:,} inputs and outputs are taken")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.biases).all()):
            raise UsageError("has a number that is not finite (a training that diverged?); use an earlier checkpoint")


# What all files of policies are read with -----------------------------------------------------------------------------

# JSON within bounds, every field checked before it is used.


# What pydantic says of JSON, in our words.
_WORDS = {
    ": Field required": " is missing",
    ": Extra inputs are not permitted": " is unknown",
    "Value error, ": "",
    "Input should be ": "expected ",
    "String should": "a text should",
    "List should": "it should",
    " after validation": "",
    "a valid string": "a text",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid list": "a list",
    "a valid dictionary": "an object",
}


class PolicyFile(BaseModel, strict=True, extra="forbid"):
    """What the files of models, networks and predictors have alike, and how they are read.

    A class of its own says in ``what`` and ``made_by`` what it is and which commands write it, and in ``newest`` which
    schema it is of. The description of a field stands in messages about it.
    """

    what: ClassVar[str]
    made_by: ClassVar[str]
    newest: ClassVar[int]

    kind: str
    schema_version: Annotated[int, Field(ge=1, description="a whole number from 1")]
    diagnostics: dict[str, Any] = {}
    provenance: dict[str, Any] = {}
    written_by: Any = None  # for readers of the file only

    @classmethod
    def read(cls, value: Any, source: str) -> Self:
        """Return the content of JSON values; ``source`` names the file in messages.

        Raises
        ------
        ModelFileError
            If it is of a newer schema, or a field is missing, unknown, or not what it should be.
        """
        if not isinstance(value, dict):
            found = {list: "list", str: "text", bool: "truth value", type(None): "null"}.get(type(value), "number")
            raise ModelFileError(f"{source}: a {cls.what} file is a JSON object, this is a {found}; is it one?")
        version = value.get("schema_version")
        if isinstance(version, int) and version > cls.newest:
            written = value.get("written_by")
            by = f", written by {written}," if isinstance(written, str) and written.isprintable() else ""
            raise ModelFileError(
                f"{source}: has {cls.what} schema {version}{by[:80]} but policyfactory {__version__} reads schemas up "
                f"to {cls.newest}; install a newer policyfactory, or make the file again with this one"
            )
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise ModelFileError(f"{source}: {cls._told(error)}") from None

    @classmethod
    def _told(cls, error: ValidationError) -> str:
        """Return what is wrong with the first field that is."""
        first = error.errors(include_url=False)[0]
        if not first["loc"]:
            key = shown(first["input"])
            return f"a key is no text that can be read: {key}; is it a file of policyfactory {cls.made_by}?"
        top, *inner = first["loc"]
        field = ascii("".join(f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in first["loc"]))[2:-1]
        is_here = bool(inner) or first["type"] not in {"missing", "extra_forbidden"}
        about = cls.model_fields[str(top)].description if is_here else f"a {cls.what} has {', '.join(cls.model_fields)}"
        words = f": {first['msg']}".partition(" or instance of")[0]
        for known, ours in _WORDS.items():
            words = words.replace(known, ours)
        given = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
        told = f"field {field}{words}{given}{f' ({about})' if about else ''}"
        return f"{told}; is it a file of policyfactory {cls.made_by}, and whole?"


class NamedFile(PolicyFile):
    """The fields that models and networks have alike."""

    name: Annotated[str, Field(max_length=100)]
    description: Annotated[str, Field(max_length=2000)] = ""
    source: Annotated[str, Field(max_length=2000)] = ""


def decode(data: bytes, source: str) -> Any:
    """Return the JSON value of a file.

    Raises
    ------
    ModelFileError
        If it is no JSON, ends in the middle, gives a field twice or is nested too deeply.
    """

    def refuse(token: str) -> NoReturn:
        raise ModelFileError(f"{source}: {token} is not JSON; write null where a number is unknown")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ModelFileError(f"{source}: a field is given twice; keep one of them")
        return fields

    text = ""
    try:
        text = data.decode("utf-8")
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{source}: is not UTF-8 text (byte {error.start + 1}); is it a model file?") from None
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
            raise ModelFileError(
                f"{source}:{error.lineno}: is not JSON: it ends in the middle ({len(data):,} bytes); copy the whole "
                "file, or make it again"
            ) from None
        raise ModelFileError(f"{source}:{error.lineno}: is not JSON: {error.msg}; is it a model file?") from None
    except (RecursionError, ValueError):
        raise ModelFileError(
            f"{source}: is nested too deeply or holds a number too long; is it a model file?"
        ) from None


def shown(value: Any) -> str:
    """Return a value as it stands in messages."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:60] + "..."


# A network that scores each job by itself: formulas in p, q, w, m, f, then dense layers -------------------------------


Mode = Literal["standard", "paper"]
MODES: tuple[Mode, ...] = get_args(Mode)

NETWORK_KIND = "policyfactory-network"
NETWORK_SCHEMA = 1
LARGEST_FILE = 8 << 20  # bytes
MOST_INPUTS, MOST_LAYERS = 64, 16
_LARGEST = 1e30  # of a weight
_SEEN = frozenset("pqwmf")
_FORMULA_LENGTH = 1000

# What a network of mode standard sees of a job, unless it is told otherwise.
STANDARD_INPUTS = (
    "log10(w + 10) - 1",
    "log10(max(p, 1))",
    "log10(q)",
    "log10(q/m)",
    "min(1, max(0, f - q + 1))",
    "f/m",
)


def paper_inputs(longest: float, constants: Sequence[float] = (1.0, 1.0, 1.0, 1.0)) -> tuple[str, ...]:
    """Return the eight inputs of the SC'20 paper's program as formulas.

    Parameters
    ----------
    longest : float
        The longest run time of the log, s, by which requests are divided.
    constants : sequence of 4 floats
        Memory, user, group and executable, for a log in which they are the same for all jobs: 1 where the log has none.
    """
    fixed = tuple(f"{float(value):.12g}" for value in constants)
    return (
        "min(w/43200, 0.99999)",
        f"min(p/{float(longest):.12g}, 0.99999)",
        "min(q/m, 0.99999)",
        *fixed,
        "0.00001 + 0.99998*min(1, max(0, f - q + 1))",
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Formulas and layers. Negative outputs of all layers but the last become 0 (ReLU); the last has one output.

    Two networks are equal if they have the same name and give the same numbers for all jobs (`digest`).

    Parameters
    ----------
    name : str
        As of a `policyfactory.policy.policy.Policy`.
    inputs : tuple of str
        Formulas in p, q, w, m, f; what the first layer takes.
    layers : tuple of Layer
        From the inputs to the one output.
    description, source : str
        What it does; where it is from.
    mode : {"standard", "paper"}
        Whose decisions it was trained on: those of `policyfactory.simulate`, or of the SC'20 paper's program.
    diagnostics, provenance : dict
        JSON values: what is known of its training; command, seed, digests of inputs, versions.
    """

    name: str
    inputs: tuple[str, ...]
    layers: tuple[Layer, ...]
    description: str = ""
    source: str = ""
    mode: Mode = "standard"
    diagnostics: dict[str, Any] = dataclasses.field(default_factory=dict)
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    digest: str = dataclasses.field(init=False, default="")

    @classmethod
    def of(
        cls, name: str, inputs: Sequence[str], layers: Sequence[tuple[ArrayLike, ArrayLike]], **fields: Any
    ) -> Network:
        """Return a network of weights (inputs, outputs) and biases, layer by layer; ``fields``: the others."""
        read = []
        for index, (weights, biases) in enumerate(layers):
            try:
                read.append(Layer(np.asarray(weights), np.asarray(biases)))
            except UsageError as error:
                raise UsageError(f"network {name}: layer {index + 1} {error}") from None
        return cls(name, tuple(inputs), tuple(read), **fields)

    def __post_init__(self) -> None:
        """Refuse what could not be evaluated.

        Raises
        ------
        UsageError
            If a text cannot be printed, an input is no formula in p, q, w, m, f, there are too many of anything, or
            layers do not fit.
        """
        check_texts(self.name, self.description, self.source)
        if not 1 <= len(self.inputs) <= MOST_INPUTS:
            raise UsageError(f"network {self.name}: has {len(self.inputs)} inputs; give 1 to {MOST_INPUTS} formulas")
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            raise UsageError(f"network {self.name}: has {len(self.layers)} layers; give 1 to {MOST_LAYERS}")
        if self.mode not in MODES:
            raise UsageError(f"network {self.name}: unknown mode {self.mode!r}; choose one of {', '.join(MODES)}")
        self._check_inputs()
        self._check_widths()
        numbers = b"".join(layer.weights.tobytes() + layer.biases.tobytes() for layer in self.layers)
        content = "\n".join((*self.inputs, str(self.widths))).encode() + numbers
        object.__setattr__(self, "digest", sha256_bytes(content))

    def _check_inputs(self) -> None:
        seen: set[str] = set()
        for index, formula in enumerate(self.inputs):
            try:
                variables = parse(formula).variables
            except FormulaError as error:
                raise UsageError(f"network {self.name}: input {index + 1}: {error}") from None
            if len(formula) > _FORMULA_LENGTH:
                raise UsageError(
                    f"network {self.name}: input {index + 1} has {len(formula):,} characters; at most "
                    f"{_FORMULA_LENGTH:,} are taken"
                )
            if variables - _SEEN:
                raise UsageError(
                    f"network {self.name}: input {index + 1}, {formula[:60]}, has {min(variables - _SEEN)}; inputs are "
                    "formulas in p, q, w, m and f"
                )
            seen |= variables
        if not seen - {"m", "f"}:
            raise UsageError(f"network {self.name}: its inputs are the same for all jobs; use p, q or w in them")

    def _check_widths(self) -> None:
        taken = self.layers[0].weights.shape[0]
        if taken != len(self.inputs):
            raise UsageError(
                f"network {self.name}: has {len(self.inputs)} inputs, but its first layer takes {taken}; was it "
                "trained on another observation?"
            )
        for index, (layer, following) in enumerate(itertools.pairwise(self.layers)):
            given, taken = layer.weights.shape[1], following.weights.shape[0]
            if given != taken:
                raise UsageError(
                    f"network {self.name}: layer {index + 1} gives {given} outputs, but layer {index + 2} takes {taken}"
                )
        last = self.layers[-1].weights.shape[1]
        if last != 1:
            raise UsageError(
                f"network {self.name}: its last layer gives {last} outputs; a policy's network has one, the preference "
                "for the job"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return (self.name, self.mode, self.digest) == (other.name, other.mode, other.digest)

    def __hash__(self) -> int:
        return hash((self.name, self.mode, self.digest))

    def __repr__(self) -> str:
        return f"<Network {self.name}: {self.describe()}>"

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of inputs, and of outputs of each layer: 8, 32, 16, 8, 1."""
        return (self.layers[0].weights.shape[0], *(layer.weights.shape[1] for layer in self.layers))

    @property
    def parameters(self) -> int:
        """How many weights and biases it has."""
        return sum(layer.weights.size + layer.biases.size for layer in self.layers)

    @property
    def variables(self) -> frozenset[str]:
        """The names among p, q, w, m, f that its inputs have."""
        return frozenset().union(*(parse(formula).variables for formula in self.inputs))

    @property
    def program(self) -> Program:
        """What the array machine runs: inputs, layers, and a minus sign (the highest output first)."""
        return _compiled(self)

    def describe(self) -> str:
        """Return its shape and some letters of its digest, in the place of a formula."""
        return f"network {'-'.join(map(str, self.widths))}, digest {self.digest[:12]}"


@functools.lru_cache(maxsize=64)
def _compiled(network: Network) -> Program:
    # Imported here: reading and printing networks must not wait for the compiler.
    from policyfactory.policy.compile import compile_network

    layers = [(layer.weights, layer.biases) for layer in network.layers]
    return compile_network([parse(formula) for formula in network.inputs], layers)


# Files ---------------------------------------------------------------------------------------------------------------


def network_to_json(network: Network) -> dict[str, Any]:
    """Return the network as plain JSON values; numbers are the shortest that are read as the same float32."""
    return {
        "kind": NETWORK_KIND,
        "schema_version": NETWORK_SCHEMA,
        "written_by": f"policyfactory {__version__}",
        "name": network.name,
        "order": "the highest output runs first",
        "mode": network.mode,
        "inputs": list(network.inputs),
        "layers": [{"weights": _numbers(layer.weights), "biases": _numbers(layer.biases)} for layer in network.layers],
        "parameters": network.parameters,
        "description": network.description,
        "source": network.source,
        "diagnostics": plain(network.diagnostics),
        "provenance": plain(network.provenance),
    }


def _numbers(values: FloatArray32) -> Any:
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [float(str(value)) for value in values]


def save_network(network: Network, path: Path | str) -> None:
    """Write the network as JSON, whole or not at all.

    Raises
    ------
    OutputError
        If the file cannot be written.
    UsageError
        If it would be larger than what is read (8 MiB).
    """
    text = dump_json(network_to_json(network))
    if len(text.encode()) > LARGEST_FILE:
        raise UsageError(
            f"network {network.name}: its file would have {len(text):,} bytes, more than the {LARGEST_FILE:,} that are "
            "read; use narrower layers"
        )
    atomic_write(Path(path), text)


def load_network(path: Path | str) -> Network:
    """Read a network file.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no network, or one of a newer schema.
    """
    return network_from_json(decode(read_bytes(Path(path), limit=LARGEST_FILE), str(path)), str(path))


def network_from_json(value: Any, source: str) -> Network:
    """Return the network of plain JSON values; ``place`` names the file in messages.

    Raises
    ------
    ModelFileError
        If a field is missing, unknown, or not what it should be.
    """
    content = _NetworkFile.read(value, source)
    try:
        return Network.of(
            content.name,
            content.inputs,
            [(layer.weights, layer.biases) for layer in content.layers],
            **content.model_dump(include={"description", "source", "mode", "diagnostics", "provenance"}),
        )
    except UsageError as error:
        raise ModelFileError(f"{source}: {error}") from None


_Row = Annotated[list[Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]], Field(min_length=1, max_length=WIDEST)]


class _LayerRecord(BaseModel, strict=True, extra="forbid"):
    weights: list[_Row] = Field(min_length=1, max_length=WIDEST)
    biases: _Row

    @model_validator(mode="after")
    def _is_table(self) -> Self:
        if len({len(row) for row in self.weights}) > 1:
            raise ValueError("the rows of weights of a layer must have one length")
        return self


class _NetworkFile(NamedFile):
    what = "network"
    made_by = "train"
    newest = NETWORK_SCHEMA

    kind: Literal["policyfactory-network"]
    inputs: list[Annotated[str, Field(max_length=_FORMULA_LENGTH)]] = Field(
        min_length=1, max_length=MOST_INPUTS, description=f"a list of 1 to {MOST_INPUTS} formulas in p, q, w, m, f"
    )
    layers: list[_LayerRecord] = Field(
        min_length=1,
        max_length=MOST_LAYERS,
        description=f"a list of 1 to {MOST_LAYERS} objects of weights (a list of numbers for each input) and biases, "
        f"at most {WIDEST:,} wide, numbers up to {_LARGEST:g}",
    )
    mode: Mode = "standard"
    # For readers of the file only.
    order: Any = None
    parameters: Any = None
