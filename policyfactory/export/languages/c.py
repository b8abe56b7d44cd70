"""A policy as a C99 source file: one function and its constants, all other names static."""

from __future__ import annotations

import math

from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.export.scripts import parts
from policyfactory.export.targets import Export, Site, Target, header, identifier, single_file
from policyfactory.policy.nodes import VARIABLES
from policyfactory.policy.store import Model

__all__ = ["LANGUAGE", "TARGET", "make", "render"]

_PREFIX = "policyfactory_"


LANGUAGE = Language(_PREFIX, parts("helpers.c"), divides=True)


def render(model: Model, site: Site) -> str:
    """Return C99 source with ``double policyfactory_NAME_score(double p, q, r, w, m)``."""
    policy = model.policy
    name = f"{_PREFIX}{identifier(policy.name)}"
    threshold = "INFINITY" if math.isinf(policy.threshold) else repr(policy.threshold)
    unused = "".join(f"    (void)({variable});\n" for variable in VARIABLES if variable not in policy.variables)
    comment = "\n".join(f" * {line}".rstrip() for line in header(model, site, "c"))
    epoch = ""
    if "r" in policy.variables:
        instant = policy.epoch.unix_time
        words = "not fixed: see above" if instant is None else "seconds since 1970"
        epoch = f"const long long {name}_epoch_unix = {instant or 0}LL; /* {words} */\n"
    return f"""/*
{comment}
 *
 * Compile with: cc -std=c99 -c THIS.c; link with -lm. Not with -ffast-math: it drops the rules for infinity and NaN.
 */

#include <math.h>

const double {name}_threshold_s = {threshold};
{epoch}
{chr(10).join(helpers_of(policy.expression, LANGUAGE))}
double {name}_score(double p, double q, double r, double w, double m);

/* The score of a job; the job with the lowest runs first. */
double {name}_score(double p, double q, double r, double w, double m)
{{
    const double value =
        {write_expression(policy.expression, LANGUAGE)};
{unused}    return value != value ? INFINITY : value;
}}
"""


def make(model: Model, site: Site) -> Export:
    """Return the file."""
    return single_file(model, ".c", render(model, site))


TARGET = Target("c", "C99 source with the function policyfactory_NAME_score(p, q, r, w, m)", make)
