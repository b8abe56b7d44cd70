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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


# What a field has to be: a check, and its words.
Check = tuple[Callable[[Any], bool], str]


@dataclasses.dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a kind of file.

    Parameters
    ----------
    what : str
        The file in words: ``model``.
    kind : str
        What its field ``kind`` has.
    made_by : str
        The commands that write it.
    version : int
        The newest ``schema_version`` that is read.
    fields : mapping of str to check
        Its other fields that are read.
    required : tuple of str
        Those of them that every file has.
    ignored : frozenset of str
        Fields for readers of the file only.
    """

    what: str
    kind: str
    made_by: str
    version: int
    fields: Mapping[str, Check]
    required: tuple[str, ...]
    ignored: frozenset[str]

    def check(self, value: Mapping[str, Any], source: str) -> None:
        """Refuse a newer schema, and a field that is missing, unknown, or not what it should be.

        Raises
        ------
        ModelFileError
            Naming ``place`` and the field.
        """
        is_kind = (lambda kind: kind == self.kind), f"{self.kind!r} (is it a file of policyfactory {self.made_by}?)"
        _check_field(value, "kind", is_kind, source)
        _check_field(value, "schema_version", POSITIVE, source)
        if value["schema_version"] > self.version:
            written = value.get("written_by")
            by = f", written by {written}," if isinstance(written, str) and written.isprintable() else ""
            raise ModelFileError(
                f"{source}: has {self.what} schema {value['schema_version']}{by[:80]} but policyfactory {__version__} "
                f"reads schemas up to {self.version}; install a newer policyfactory, or write the file again with this "
                "one"
            )
        required = ("kind", "schema_version", *self.required)
        for field in required:
            if field not in value:
                raise ModelFileError(f"{source}: field {field} is missing; a {self.what} has {', '.join(required)}")
        allowed = {*required, *self.fields, *self.ignored}
        unknown = sorted(set(value) - allowed)
        if unknown:
            raise ModelFileError(
                f"{source}: unknown field {shown(unknown[0])}; schema {self.version} has {', '.join(sorted(allowed))}"
            )
        for field, check in self.fields.items():
            if field in value:
                _check_field(value, field, check, source)


def _check_field(value: Mapping[str, Any], field: str, check: Check, source: str) -> None:
    is_right, expected = check
    if not is_right(value.get(field)):
        raise ModelFileError(f"{source}: field {field}: expected {expected}, got {shown(value.get(field))}")


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


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a number of usual size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def is_whole(value: Any) -> bool:
    """Tell whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: Any, longest: int) -> bool:
    """Tell whether a JSON value is a text of at most ``longest`` characters."""
    return isinstance(value, str) and len(value) <= longest


POSITIVE: Check = (lambda value: is_whole(value) and value >= 1, "a whole number from 1")
OBJECT: Check = (lambda value: isinstance(value, dict), "an object")


def text_of(longest: int) -> Check:
    """Return the check of a text of at most ``longest`` characters."""
    return (lambda value: is_text(value, longest)), f"a text of at most {longest} characters"


# The fields that models and networks have alike.
POLICY_FIELDS: dict[str, Check] = {
    "name": text_of(100),
    "description": text_of(2000),
    "source": text_of(2000),
    "diagnostics": OBJECT,
    "provenance": OBJECT,
}


def kind_word(value: Any) -> str:
    """Return what a JSON value is, in words."""
    names = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


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
    if not isinstance(value, dict):
        raise ModelFileError(f"{source}: a network file is a JSON object, this one is a {kind_word(value)}; is it one?")
    _SCHEMA.check(value, source)
    layers = [_layer(item) for item in value["layers"]]
    if None in layers:
        raise ModelFileError(
            f"{source}: field layers: the rows of weights of layer {layers.index(None) + 1} must have one length"
        )
    known = {key: value[key] for key in ("description", "source", "mode", "diagnostics", "provenance") if key in value}
    try:
        return Network.of(value["name"], value["inputs"], [layer for layer in layers if layer is not None], **known)
    except UsageError as error:
        raise ModelFileError(f"{source}: {error}") from None


def _layer(item: dict[str, Any]) -> tuple[FloatArray32, FloatArray32] | None:
    rows = item["weights"]
    if len({len(row) for row in rows}) != 1:
        return None
    return np.array(rows, dtype=np.float32), np.array(item["biases"], dtype=np.float32)


def _are_numbers(value: Any) -> bool:
    small = isinstance(value, list) and 1 <= len(value) <= WIDEST
    return small and all(is_number(part) and abs(part) <= _LARGEST for part in value)


def _is_layer(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"weights", "biases"} or not _are_numbers(value["biases"]):
        return False
    rows = value["weights"]
    return isinstance(rows, list) and 1 <= len(rows) <= WIDEST and all(map(_are_numbers, rows))


_SCHEMA = Schema(
    what="network",
    kind=NETWORK_KIND,
    made_by="train",
    version=NETWORK_SCHEMA,
    fields={
        **POLICY_FIELDS,
        "inputs": (
            lambda value: (
                isinstance(value, list)
                and 1 <= len(value) <= MOST_INPUTS
                and all(is_text(part, _FORMULA_LENGTH) for part in value)
            ),
            f"a list of 1 to {MOST_INPUTS} formulas in p, q, w, m, f",
        ),
        "layers": (
            lambda value: isinstance(value, list) and 1 <= len(value) <= MOST_LAYERS and all(map(_is_layer, value)),
            (
                f"a list of 1 to {MOST_LAYERS} objects of weights (a list of numbers for each input) and biases, at "
                f"most {WIDEST:,} wide, numbers up to {_LARGEST:g}"
            ),
        ),
        "mode": (lambda value: value in MODES, f"one of {', '.join(MODES)}"),
    },
    required=("name", "inputs", "layers"),
    ignored=frozenset({"order", "parameters", "written_by"}),
)
