"""A formula as an expression of a programming language, with the arithmetic of the array machine.

The same operations in the same order on the same doubles: whole powers are repeated multiplication, minimum and
maximum keep NaN, logarithms have their limits at 0. So the scores are equal to the last bit wherever the language
calls the same C library.
"""

from __future__ import annotations

import dataclasses
import math

from policyfactory.core.files import dump_json
from policyfactory.core.text import latex_text
from policyfactory.exports.content import Export, ExportSite, File, comment, header, identifier
from policyfactory.exports.expressible import open_epoch
from policyfactory.exports.scripts import filled, parts
from policyfactory.policy.expression import (
    ASKED,
    PREDICTIONS,
    VARIABLES,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    replace_variables,
    to_latex,
    whole_exponent,
)
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, model_to_json


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


# A policy as a program ------------------------------------------------------------------------------------------------

# A policy as a program (Python without dependencies, C99, Lua 5.1 to 5.4), as LaTeX, and as a model file.
#
# What the site fixes of the policy (epoch, threshold) is a constant of the program; its only function gives the score.
# Texts of strangers are escaped as each language asks for it, so that nothing in them can end them.


def python(model: Model, site: ExportSite) -> Export:
    """Return a module with the function ``score(p, q, r, w, m)``; predictions, n, mem and g are given by name."""
    policy = model.policy
    read = _more(policy)
    epoch = f"EPOCH_RULE = {policy.epoch.rule!a}\nEPOCH_UNIX = {policy.epoch.unix_time!r}\n"
    return _file(
        model,
        ".py",
        "program.python",
        HEAD=_head(model, site, "python", "#"),
        NAME=ascii(policy.name),
        FORMULA=ascii(policy.formula),
        EPOCH=epoch if "r" in policy.variables else "",
        THRESHOLD=_threshold(policy, "math.inf"),
        # Required, unlike r and w: nothing can stand for them.
        MORE="".join(f", {name}" for name in ("*", *read)) if read else "",
        DOUBLES="".join(f"    {name} = float({name})\n" for name in read),
        **_score(policy, PYTHON),
    )


def c(model: Model, site: ExportSite) -> Export:
    """Return a source file with ``double policyfactory_NAME_score(double p, q, r, w, m)``; other names are static.

    The predictions, n, mem and g that the formula reads are more arguments, in the order of `PREDICTIONS` and `ASKED`.
    """
    policy = model.policy
    name = f"{C.prefix}{identifier(policy.name)}"
    instant = policy.epoch.unix_time
    words = "not fixed: see above" if instant is None else "seconds since 1970"
    epoch = f"const long long {name}_epoch_unix = {instant or 0}LL; /* {words} */\n"
    score = _score(policy, C)
    return _file(
        model,
        ".c",
        "program.c",
        HEAD=_head(model, site, "c", " *"),
        NAME=name,
        EPOCH=epoch if "r" in policy.variables else "",
        THRESHOLD=_threshold(policy, "INFINITY"),
        MORE="".join(f", double {name}" for name in _more(policy)),
        UNUSED="".join(f"    (void)({name});\n" for name in "pqrwm" if name not in policy.variables),
        HELPERS=score["HELPERS"] or "\n",
        SCORE=score["SCORE"],
    )


def lua(model: Model, site: ExportSite) -> Export:
    """Return a module table with ``score(p, q, r, w, m)``, then the predictions, n, mem and g that it reads."""
    policy = model.policy
    read = _more(policy)
    instant = "nil" if policy.epoch.unix_time is None else str(policy.epoch.unix_time)
    epoch = f"M.epoch_rule = {lua_text(policy.epoch.rule)}\nM.epoch_unix = {instant}\n"
    return _file(
        model,
        ".lua",
        "program.lua",
        HEAD=_head(model, site, "lua", "--"),
        NAME=lua_text(policy.name, "replace"),
        FORMULA=lua_text(policy.formula, "replace"),
        EPOCH=epoch if "r" in policy.variables else "",
        THRESHOLD=_threshold(policy, "math.huge"),
        MORE="".join(f", {name}" for name in read),
        DOUBLES="".join(f"  {name} = {name} + 0.0\n" for name in read),
        **_score(policy, LUA),
    )


def latex(model: Model, site: ExportSite) -> Export:
    """Return a paragraph with one equation, to be put into a document; it needs no package."""
    policy = model.policy
    names = [name for name in VARIABLES if name in policy.variables]
    epoch = f"Here $r$ {latex_text(policy.epoch.describe().removeprefix('r '))}.\n"
    return _file(
        model,
        ".tex",
        "program.latex",
        HEAD=_head(model, site, "latex", "%"),
        NAME=latex_text(policy.name),
        ARGUMENTS=", ".join(to_latex(Variable(name)) for name in names),
        FORMULA=to_latex(policy.expression),
        SYMBOLS="; ".join(f"${to_latex(Variable(name))}$: {latex_text(VARIABLES[name])}" for name in names),
        EPOCH=epoch if "r" in policy.variables else "",
    )


def json(model: Model, _site: ExportSite) -> Export:
    """Return the model file, as `policyfactory.policy.store.save_model` writes it: the same at every site."""
    return Export((File(f"{identifier(model.policy.name)}.json", dump_json(model_to_json(model))),))


def _file(model: Model, suffix: str, template: str, **values: str) -> Export:
    """Return an export of one file that a program reads; what r counts from is left to that program."""
    file = File(f"{identifier(model.policy.name)}{suffix}", filled(template, values))
    return Export((file,), limits=open_epoch(model.policy))


def _head(model: Model, site: ExportSite, target: str, mark: str) -> str:
    return "\n".join(comment(header(model, site, target), mark))


def _more(policy: Policy) -> list[str]:
    """Return the predictions, and then the requests, that a policy reads, in their order."""
    return [name for name in (*PREDICTIONS, *ASKED) if name in policy.variables]


def _threshold(policy: Policy, never: str) -> str:
    return never if math.isinf(policy.threshold) else repr(policy.threshold)


def _score(policy: Policy, language: Language) -> dict[str, str]:
    helpers = "".join(f"{source}\n" for source in helpers_of(policy.expression, language))
    return {"HELPERS": helpers, "SCORE": write_expression(policy.expression, language)}


def lua_text(text: str, errors: str = "surrogateescape") -> str:
    """Return a Lua string of the UTF-8 bytes of ``text``; every byte that is no plain ASCII is written as a number."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03d}" for b in text.encode("utf-8", errors)) + '"'
