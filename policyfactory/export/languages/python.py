"""A policy as a Python module without dependencies."""

from __future__ import annotations

import math

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.export.targets import Export, Site, Target, header, single_file
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make", "render"]

# Python raises where C returns infinity or NaN; these return what C does.
_HELPERS = {
    "div": '''
def _div(a, b):
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)
''',
    "log10": '''
def _log10(x):
    return math.log10(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
''',
    "log2": '''
def _log2(x):
    return math.log2(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
''',
    "ln": '''
def _ln(x):
    return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
''',
    "sqrt": '''
def _sqrt(x):
    return math.sqrt(x) if x >= 0.0 else math.nan
''',
    "exp": '''
def _exp(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
''',
    "abs": '''
def _abs(x):
    return abs(x)
''',
    "min": '''
def _min(a, b):
    return a if a <= b or a != a else b
''',
    "max": '''
def _max(a, b):
    return a if a >= b or a != a else b
''',
    "pow": '''
def _pow(x, y):
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and y % 2.0 == 1.0 else math.inf
    except ValueError:
        if x != 0.0:
            return math.nan
        return -math.inf if math.copysign(1.0, x) < 0.0 and y % 2.0 == 1.0 else math.inf
''',
    "powi": '''
def _powi(x, times):
    value = 1.0
    for _ in range(times):
        value *= x
    return value
''',
}  # fmt: skip

_LANGUAGE = Language("_", _HELPERS, divides=False)


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
