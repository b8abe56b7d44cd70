"""Put a mutant into this process: in place of a module's file, or of the code of a function that everybody holds."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from mutation.operators import Mutant, mutated

__all__ = ["InMemory", "Target", "change_in_place"]


@dataclass(frozen=True)
class Target:
    """A module, and the tests that are to notice its mutants.

    ``root`` is where pytest runs; ``left_out`` names functions that do not run there, with the reason. A module without
    ``kernels`` calls those of others as they are, compiled before.
    """

    root: Path
    module: str
    tests: tuple[str, ...]
    compiled: bool = False
    kernels: bool = True
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the module is imported as."""
        return self.module.removesuffix(".py").replace("/", ".")


class InMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module from code that no file holds."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path = name, path
        self.code = compile(tree, str(path), "exec", dont_inherit=True)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def _plain_functions(result: object) -> list[FunctionType]:
    """Return the functions that a name of a module, or of a class, stands for."""
    if isinstance(result, property):
        return [part for part in (result.fget, result.fset) if isinstance(part, FunctionType)]
    if isinstance(result, staticmethod | classmethod):
        result = result.__func__
    if hasattr(result, "py_func"):
        # Compiled: its code cannot be exchanged.
        return []
    result = inspect.unwrap(result) if callable(result) else result
    return [result] if isinstance(result, FunctionType) else []


def _function(names: dict[str, Any], path: str) -> list[FunctionType]:
    first, _, rest = path.partition(".")
    result = names.get(first)
    if inspect.isclass(result):
        return _plain_functions(vars(result).get(rest.split(".")[0]))
    return _plain_functions(result)


def change_in_place(target: Target, mutant: Mutant, tree: ast.Module) -> bool:
    """Give the functions that are there the code of the mutant; say whether that was possible."""
    module = sys.modules.get(target.name)
    if module is None or not mutant.function:
        return False
    sound = _function(vars(module), mutant.function)
    names: dict[str, Any] = {"__name__": target.name, "__file__": str(target.root / target.module)}
    with mutated(mutant):
        exec(compile(tree, names["__file__"], "exec", dont_inherit=True), names)
    changed = _function(names, mutant.function)
    if not sound or len(sound) != len(changed):
        return False
    for old, new in zip(sound, changed, strict=True):
        if old.__code__.co_freevars or new.__code__.co_freevars:
            return False
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    return True
