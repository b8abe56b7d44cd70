"""A policy as a program (Python without dependencies, C99, Lua 5.1 to 5.4), as LaTeX, and as a model file.

What the site fixes of the policy (epoch, threshold) is a constant of the program; its only function gives the score.
Texts of strangers are escaped as each language asks for it, so that nothing in them can end them.
"""

from __future__ import annotations

import math

from policyfactory.core.artefact import dump_json
from policyfactory.core.text import latex_text
from policyfactory.export.content import Export, File, Site, comment, header, identifier
from policyfactory.export.expressible import open_epoch
from policyfactory.export.languages import code
from policyfactory.export.languages.code import Language, helpers_of, write_expression
from policyfactory.export.scripts import filled
from policyfactory.policy.latex import to_latex
from policyfactory.policy.nodes import ASKED, PREDICTIONS, VARIABLES, Variable
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, model_to_json

__all__ = ["c", "json", "latex", "lua", "python"]


def python(model: Model, site: Site) -> Export:
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
        **_score(policy, code.PYTHON),
    )


def c(model: Model, site: Site) -> Export:
    """Return a source file with ``double policyfactory_NAME_score(double p, q, r, w, m)``; other names are static.

    The predictions, n, mem and g that the formula reads are more arguments, in the order of `PREDICTIONS` and `ASKED`.
    """
    policy = model.policy
    name = f"{code.C.prefix}{identifier(policy.name)}"
    instant = policy.epoch.unix_time
    words = "not fixed: see above" if instant is None else "seconds since 1970"
    epoch = f"const long long {name}_epoch_unix = {instant or 0}LL; /* {words} */\n"
    score = _score(policy, code.C)
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


def lua(model: Model, site: Site) -> Export:
    """Return a module table with ``score(p, q, r, w, m)``, then the predictions, n, mem and g that it reads."""
    policy = model.policy
    read = _more(policy)
    instant = "nil" if policy.epoch.unix_time is None else str(policy.epoch.unix_time)
    epoch = f"M.epoch_rule = {_lua_text(policy.epoch.rule)}\nM.epoch_unix = {instant}\n"
    return _file(
        model,
        ".lua",
        "program.lua",
        HEAD=_head(model, site, "lua", "--"),
        NAME=_lua_text(policy.name),
        FORMULA=_lua_text(policy.formula),
        EPOCH=epoch if "r" in policy.variables else "",
        THRESHOLD=_threshold(policy, "math.huge"),
        MORE="".join(f", {name}" for name in read),
        DOUBLES="".join(f"  {name} = {name} + 0.0\n" for name in read),
        **_score(policy, code.LUA),
    )


def latex(model: Model, site: Site) -> Export:
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


def json(model: Model, _site: Site) -> Export:
    """Return the model file, as `policyfactory.policy.store.save_model` writes it: the same at every site."""
    return Export((File(f"{identifier(model.policy.name)}.json", dump_json(model_to_json(model))),))


def _file(model: Model, suffix: str, template: str, **values: str) -> Export:
    """Return an export of one file that a program reads; what r counts from is left to that program."""
    file = File(f"{identifier(model.policy.name)}{suffix}", filled(template, values))
    return Export((file,), limits=open_epoch(model.policy))


def _head(model: Model, site: Site, target: str, mark: str) -> str:
    return "\n".join(comment(header(model, site, target), mark))


def _more(policy: Policy) -> list[str]:
    """Return the predictions, and then the requests, that a policy reads, in their order."""
    return [name for name in (*PREDICTIONS, *ASKED) if name in policy.variables]


def _threshold(policy: Policy, never: str) -> str:
    return never if math.isinf(policy.threshold) else repr(policy.threshold)


def _score(policy: Policy, language: Language) -> dict[str, str]:
    helpers = "".join(f"{source}\n" for source in helpers_of(policy.expression, language))
    return {"HELPERS": helpers, "SCORE": write_expression(policy.expression, language)}


def _lua_text(text: str) -> str:
    """Return a Lua string of the UTF-8 bytes of ``text``; every byte that is no plain ASCII is written as a number."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03d}" for b in text.encode("utf-8", "replace")) + '"'
