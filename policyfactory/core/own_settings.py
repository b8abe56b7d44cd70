"""The current folder may be a stranger's (an archive that was unpacked): nothing in it sets how a command works.

Python that is started with ``-m`` or ``-c`` imports from it first. When they are imported, numba reads
``.numba_config.yaml``, which says whose machine code it runs, and matplotlib ``matplotlibrc``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

__all__ = ["SAFE_PATH", "environment", "ignore_folder"]

# For a Python that we start.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}

# Module -> what it reads.
_FILES = {"matplotlib": "matplotlibrc", "numba.core.config": ".numba_config.yaml"}


def ignore_folder() -> None:
    """Import numba and matplotlib from now on without files of the current folder, and matplotlib without any settings.

    For processes of our own. In a user's session his matplotlib is as he set it, and pictures are drawn with the
    settings of `policyfactory.core.picture` in any case.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _FILES else None
        if spec is not None and spec.loader is not None and spec.origin is not None:
            execute = functools.partial(_execute, spec.loader.exec_module, Path(spec.origin))
            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


def _execute(execute: Callable[[ModuleType], None], origin: Path, module: ModuleType) -> None:
    """Execute a module to which the file in the current folder does not exist."""
    exists, file = os.path.exists, _FILES[module.__name__]
    defaults = {"MATPLOTLIBRC": str(origin.parent / "mpl-data" / "matplotlibrc"), "MPLBACKEND": "agg"}
    with environment(defaults if module.__name__ == "matplotlib" else {}):
        # Its directory cannot be changed instead: other threads open files.
        os.path.exists = lambda path: path != file and exists(path)
        try:
            execute(module)
        finally:
            os.path.exists = exists


_CHANGING = threading.RLock()


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have these values in the environment, also of the processes that are started inside."""
    with _CHANGING:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
