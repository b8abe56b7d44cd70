"""A policy as a Python module without dependencies."""

from __future__ import annotations

import math

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.export.scripts import parts
from policyfactory.export.targets import Export, Site, Target, header, single_file
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make", "render"]

_LANGUAGE = Language("_", parts("helpers.python"), divides=False)


def render(model: Model, site: Site) -> str:
    """Return the source of a module with the function ``score(p, q, r, w, m)``."""
    policy = model.policy
    counts = "r" in policy.variables
    threshold = "math.inf" if math.isinf(policy.threshold) else repr(policy.threshold)
    parts = [
        *(f"# {line}".rstrip() for line in header(model, site, "python")),
        "",
        "import math",
        "",
        # The !a leaves nothing in a text that could end it.
        f"NAME = {policy.name!a}",
        f"FORMULA = {policy.formula!a}",
        *([f"EPOCH_RULE = {policy.epoch.rule!a}", f"EPOCH_UNIX = {policy.epoch.unix_time!r}"] if counts else []),
        f"THRESHOLD_S = {threshold}",
        "",
        *helpers_of(policy.expression, _LANGUAGE),
        "",
        "def score(p, q, r=0.0, w=0.0, m=1.0):",
        '    """Return the score of a job; the job with the lowest runs first."""',
        "    p, q, r, w, m = float(p), float(q), float(r), float(w), float(m)",
        f"    value = {write_expression(policy.expression, _LANGUAGE)}",
        "    return math.inf if value != value else value",
    ]
    return "\n".join(parts) + "\n"


def make(model: Model, site: Site) -> Export:
    """Return the file."""
    return single_file(model, ".py", render(model, site))


TARGET = Target("python", "Python module with the function score(p, q, r, w, m); needs nothing else", make)
