"""A formula as an expression of a programming language, with the arithmetic of the array machine.

The same operations in the same order on the same doubles: whole powers are repeated multiplication, minimum and
maximum keep NaN, logarithms have their limits at 0. So the scores are equal to the last bit wherever the language
calls the same C library.
"""

from __future__ import annotations

import dataclasses

from policyfactory.export.scripts import parts
from policyfactory.policy.nodes import (
    VARIABLES,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    replace_variables,
    whole_exponent,
)

__all__ = [
    "AWK",
    "LUA",
    "PERL",
    "PYTHON",
    "C",
    "Language",
    "awk_functions",
    "helpers_of",
    "perl_function",
    "write_expression",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Language:
    """How a language says what its operators do not.

    Parameters
    ----------
    name : str
        Of the language; the file ``helpers.NAME`` defines log10, pow, powi, min, ..., div.
    prefix : str
        Of the names of helper functions, for example ``policyfactory_``.
    divides : bool
        Whether its ``/`` is that of IEEE doubles; else ``div`` is called.
    """

    name: str
    prefix: str
    divides: bool


PYTHON = Language("python", "_", divides=False)
C = Language("c", "policyfactory_", divides=True)
LUA = Language("lua", "pf_", divides=True)
PERL = Language("perl", "pf_", divides=False)
AWK = Language("awk", "pf_", divides=False)


def helpers_of(expression: Expression, language: Language) -> list[str]:
    """Return the definitions that the expression needs, in the order of their file."""
    needed = {name for node in expression.walk() if (name := _helper(node, language)) is not None}
    return [source for name, source in parts(f"helpers.{language.name}").items() if name in needed]


def _helper(node: Expression, language: Language) -> str | None:
    match node:
        case Call(function, _):
            return function
        case Binary("/") if not language.divides:
            return "div"
        case Binary("**", _, exponent):
            return "pow" if whole_exponent(exponent) is None else "powi"
        case _:
            return None


def write_expression(node: Expression, language: Language) -> str:
    """Return the source text of ``node``."""

    def inside(part: Expression, least: int) -> str:
        text = write_expression(part, language)
        called = isinstance(part, Binary) and _helper(part, language) is not None
        return text if called or part.level >= least else f"({text})"

    def call(name: str, *arguments: str) -> str:
        return f"{language.prefix}{name}({', '.join(arguments)})"

    match node:
        case Number(value):
            return repr(value)
        case Variable(name):
            return name
        case Negative(part):
            # Two signs in a row are a comment in Lua and a decrement in C.
            text = inside(part, node.level)
            return f"-({text})" if text.startswith("-") else f"-{text}"
        case Binary("**", base, exponent):
            times = whole_exponent(exponent)
            if times is not None:
                return call("powi", write_expression(base, language), str(times))
            return call("pow", write_expression(base, language), write_expression(exponent, language))
        case Binary("/", left, right) if not language.divides:
            return call("div", write_expression(left, language), write_expression(right, language))
        case Binary(operator, left, right):
            after = inside(right, node.level + 1)
            if after.startswith("-"):
                after = f"({after})"
            return f"{inside(left, node.level)} {operator} {after}"
        case Call(function, (first, *rest)):
            text = write_expression(first, language)
            if not rest:
                return call(function, text)
            for part in rest:
                text = call(function, text, write_expression(part, language))
            return text
        case Coefficient(name):
            raise ValueError(f"the coefficient {name} has no value")
    raise TypeError(f"{type(node).__name__} is no part of a formula")


# For scripts of schedulers: a function alone. ------------------------------------------------------------------------


def perl_function(expression: Expression) -> list[str]:
    """Return the lines of ``sub pf_score($p, $q, $r, $w)`` and of what it calls; the file needs ``use POSIX ();``.

    What has no value is plus infinity. Perl multiplies whole numbers exactly where a double would round, so the last
    digit of a score may differ from other targets'.
    """
    inside = replace_variables(expression, {name: Variable(f"${name}") for name in VARIABLES})
    return [
        "my $INFINITY = 9**9**9;",
        "my $NAN = $INFINITY - $INFINITY;",
        "",
        *helpers_of(inside, PERL),
        "# The score of a job; the job with the lowest runs first.",
        "sub pf_score {",
        "    my ($p, $q, $r, $w) = @_;",
        f"    my $value = {write_expression(inside, PERL)};",
        "    return $value != $value ? $INFINITY : $value;",
        "}",
    ]


def awk_functions(expression: Expression) -> str:
    """Return awk source of ``score()``, a function of the global p, q, r, w and m.

    Any awk of POSIX runs it (mawk, gawk and the original awk are tested). awk ends the program at a division by zero,
    has no base-10 logarithm, and its implementations disagree about comparisons with NaN; so the helpers keep to
    numbers, and what has no value is found by its printed form. Scores are those of Python to the last digits, which
    logarithms may change.

    It needs the global INF and NAN, which awk cannot write as constants: ``INF = 1e300 * 1e300; NAN = INF - INF``.
    What has no value is INF and runs last. The text has no quote and no backslash, so it may stand between the single
    quotes of a shell.
    """
    score = f"""function score(  value) {{
  value = {write_expression(expression, AWK)}
  return no_value(value) ? INF : value
}}
"""
    return "\n".join([parts("helpers.awk")["no_value"], *helpers_of(expression, AWK), score])
