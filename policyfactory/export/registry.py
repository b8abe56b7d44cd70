"""The targets by name; the module of a target is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from policyfactory.export.targets import Target

__all__ = ["TARGETS", "Registry"]

_MODULES = {
    "slurm-site-factor-lua": "slurm.site_factor_lua",
    "slurm-priority-lua": "slurm.priority_lua",
    "slurm-nice": "slurm.nice",
    "slurm-weights": "slurm.weights",
    "slurm-site-factor-c": "slurm.site_factor_c",
    "gridengine": "gridengine.files",
    "oar": "oar",
    "pbs": "pbs.script",
    "python": "languages.python",
    "c": "languages.c",
    "lua": "languages.lua",
    "latex": "languages.latex",
    "json": "languages.model_json",
}


class Registry(Mapping[str, Target]):
    """Name -> target, in the order of the documentation.

    Parameters
    ----------
    modules : mapping of str to str
        Name of each target and of the module of this package that defines it as ``TARGET``.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = dict(modules)

    def __getitem__(self, name: str) -> Target:
        module = importlib.import_module(f"policyfactory.export.{self._modules[name]}")
        target: Target = module.TARGET
        return target

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


TARGETS = Registry(_MODULES)
