"""Files that say how they were made."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.core import inputs
from policyfactory.core.files import atomic_write
from policyfactory.core.text import json_text
from policyfactory.core.version import __version__

__all__ = [
    "Manifest",
    "command_line",
    "dump_json",
    "package_versions",
]

MANIFEST_SCHEMA = 1
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "statsmodels", "scikit-learn", "joblib", "sympy", "matplotlib")


def command_line() -> str:
    """Return the command that is running, as it could be typed again."""
    import shlex

    program = Path(sys.argv[0]).name if sys.argv else "python"
    if program == "__main__.py":
        program = "policyfactory"
    return shlex.join([program, *sys.argv[1:]])


def package_versions() -> dict[str, str]:
    """Return the versions of policyfactory, Python and the libraries that can change a number."""
    versions = {"policyfactory": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def dump_json(value: Any) -> str:
    r"""Return ``value`` as JSON text: sorted keys, indented, one newline at the end, NaN refused.

    What would hide or reorder text is written as ``\u202e``; so are, of a file's name that is no UTF-8, the bytes that
    are none (``\udcff``). Both are read so again.
    """
    return json_text(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """How an artefact was made.

    Parameters
    ----------
    kind : str
        What the artefact is, for example ``"score-table"``.
    command : str
        The command that made it.
    seed : int or None
        The seed of its random numbers.
    inputs : mapping of str to str
        Name of each input and its SHA-256.
    parameters : mapping
        The settings that determine the content.
    measured : mapping
        What was measured while it was made (speed, seconds); differs from run to run.
    """

    kind: str
    command: str
    seed: int | None
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measured: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the manifest as plain JSON values, with schema version and package versions."""
        return {"schema_version": MANIFEST_SCHEMA, **dataclasses.asdict(self), "versions": package_versions()}

    def write(self, path: Path) -> None:
        """Write the manifest as JSON."""
        atomic_write(path, dump_json(self.as_dict()))

    @staticmethod
    def path_for(artefact: Path) -> Path:
        """Return where the manifest of ``artefact`` lies: ``NAME.csv`` has ``NAME.manifest.json``."""
        return inputs.manifest_path(artefact)
