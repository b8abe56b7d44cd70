"""A policy as LaTeX: the equation and the meaning of its symbols."""

from __future__ import annotations

from policyfactory.core.text import latex_text
from policyfactory.export.targets import Export, Site, Target, header, single_file
from policyfactory.policy.latex import to_latex
from policyfactory.policy.nodes import VARIABLES
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make", "render"]


def render(model: Model, site: Site) -> str:
    """Return a paragraph with one equation, to be put into a document; it needs no package."""
    policy = model.policy
    names = [name for name in VARIABLES if name in policy.variables]
    symbols = "; ".join(f"${name}$: {latex_text(VARIABLES[name])}" for name in names)
    lines = [
        *(f"% {line}".rstrip() for line in header(model, site, "latex")),
        f"Policy {latex_text(policy.name)} sorts the queue by",
        r"\begin{equation}",
        rf"  \mathrm{{score}}({', '.join(names)}) = {to_latex(policy.expression)},",
        r"\end{equation}",
        f"lower first, where {symbols}.",
    ]
    if "r" in policy.variables:
        lines.append(f"Here ${'r'}$ {latex_text(policy.epoch.describe().removeprefix('r '))}.")
    return "\n".join(lines) + "\n"


def make(model: Model, site: Site) -> Export:
    """Return the file."""
    return single_file(model, ".tex", render(model, site))


TARGET = Target("latex", "LaTeX paragraph with the equation and its symbols", make)
