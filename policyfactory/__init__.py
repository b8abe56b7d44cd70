"""Learn the sort keys of HPC batch schedulers, test them on real logs and hand them over.

The package follows one line of data flow, a folder a stage::

    workload -> trials -> fit -> policy -> evaluate -> export

The names below are the public interface. They are loaded on first use, so that importing the package (and
``policyfactory --version``) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it
_PUBLIC: dict[str, str] = {
    "PolicyfactoryError": "policyfactory.core.errors",
    "Workload": "policyfactory.workload.jobs",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
