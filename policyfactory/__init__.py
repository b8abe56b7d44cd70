"""Learn the sort keys of HPC batch schedulers, test them on real logs and hand them over.

The package follows one line of data flow, a folder a stage, and has a verb for each step::

    log = pf.read("LOG.swf.gz")              schedule = pf.simulate(log, "SAF", threshold="20h")
    scores = pf.generate(log, tuples=200)    fits = pf.fit(scores)
    learned = pf.learn(log)

The names below are the public interface. They are loaded on first use, so that importing the package (and
``policyfactory --version``) costs nothing.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from policyfactory.core.version import __version__ as __version__

# name -> module that defines it; declared once, in the stub beside this file
_PUBLIC: dict[str, str] = {
    name: module
    for module, name in re.findall(
        r"^from (\S+) import (\w+) as", Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"), re.MULTILINE
    )
}

__all__ = [*sorted(_PUBLIC)]  # noqa: PLE0604 (the names are those of the stub)


class _Package(ModuleType):
    """``policyfactory.simulate`` is the verb, also after the subpackage of that name was imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        # An import binds a submodule to its parent; a verb of the same name goes first.
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
