"""The targets by name."""

from __future__ import annotations

import dataclasses
import importlib
import tomllib
from collections.abc import Callable
from importlib.resources import files

from policyfactory.exports.content import Export, ExportSite
from policyfactory.exports.expressible import check_known, prepare
from policyfactory.policy.store import Model

# They write the formula down and compute nothing.
_TEXTS = frozenset({"json", "latex"})


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A language or scheduler that a policy can be handed to.

    Parameters
    ----------
    name : str
        As in ``--to NAME``.
    description : str
        In words.
    entry_point : str
        Module of this package, and in it the function of Model and Site that gives the files and what must be known
        about them: ``oar:make``. It raises ExportError where the target cannot express the policy at all.
        ``site.sample`` costs time: only functions that need jobs ask for it.
    predictions : bool
        Whether it can be given a formula that reads predictions: as arguments of a function, or made by itself.
    asked : bool
        Whether it can be given a formula that reads n, mem or g: as arguments, or from what a job asks for.
    """

    name: str
    description: str
    entry_point: str
    predictions: bool = False
    asked: bool = False

    def make(self, model: Model, site: ExportSite) -> Export:
        """Return the export of a policy, its m a number where the size of the site is known.

        Raises
        ------
        ExportError
            If the target cannot express the policy.
        """
        able = {
            kind: [name for name, target in TARGETS.items() if getattr(target, kind) and name not in _TEXTS]
            for kind in ("predictions", "asked")
        }
        knows = [kind for kind in able if getattr(self, kind)] + ["free"] * (self.name in _TEXTS)
        check_known(model.policy, self.name, knows, able)
        # Imported here: one target does not wait for the libraries of another.
        module, _, function = self.entry_point.partition(":")
        write: Callable[[Model, ExportSite], Export] = getattr(
            importlib.import_module(f"policyfactory.exports.{module}"), function
        )
        return write(prepare(model, processors=site.processors), site)


TARGETS = {
    name: Target(name, **known)
    for name, known in tomllib.loads(files(__package__).joinpath("targets.toml").read_text(encoding="utf-8")).items()
}
