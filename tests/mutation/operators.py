"""The mutants of a module: what is changed, and what is not.

Changed, each alone:

- arithmetic: ``+`` and ``-``, ``*`` and ``/`` change places, ``//`` becomes ``/``, ``%`` becomes ``/``, ``**`` becomes
  ``*``, ``<<`` and ``>>``, ``&`` and ``|`` change places, ``^`` becomes ``&``; the same in ``+=`` and its like;
- comparison: the boundary (``<`` and ``<=``, ``>`` and ``>=``) and the negation (``<`` becomes ``>=``, ``==`` becomes
  ``!=``, ``in`` becomes ``not in``, ``is`` becomes ``is not``);
- boolean: ``and`` and ``or`` change places, ``not`` is dropped, a condition without an operator is negated;
- constant: a number plus 1 and minus 1, True and False change places;
- unary: the sign or ``~`` is dropped;
- loop: ``for`` and ``while`` are not entered, ``break`` and ``continue`` change places;
- function: ``min`` and ``max``, ``any`` and ``all`` change places, as names and as attributes (``np.minimum`` too);
- statement: a call for its effect, ``raise``, an assignment to an element or attribute, and ``+=`` are dropped.

Not changed, because it is not run or only read by people: texts (docstrings, f-strings with what is inside, the
arguments of ``raise``), annotations and type aliases (a CamelCase name at the top of a module), decorators, imports,
``__all__``, and what is under ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

__all__ = ["Mutant", "mutants", "mutated"]

_SWAPS: dict[type[ast.AST], tuple[str, tuple[type[ast.AST], ...]]] = {
    ast.Add: ("arithmetic", (ast.Sub,)),
    ast.Sub: ("arithmetic", (ast.Add,)),
    ast.Mult: ("arithmetic", (ast.Div,)),
    ast.Div: ("arithmetic", (ast.Mult,)),
    ast.FloorDiv: ("arithmetic", (ast.Div,)),
    ast.Mod: ("arithmetic", (ast.Div,)),
    ast.Pow: ("arithmetic", (ast.Mult,)),
    ast.MatMult: ("arithmetic", (ast.Mult,)),
    ast.LShift: ("arithmetic", (ast.RShift,)),
    ast.RShift: ("arithmetic", (ast.LShift,)),
    ast.BitAnd: ("arithmetic", (ast.BitOr,)),
    ast.BitOr: ("arithmetic", (ast.BitAnd,)),
    ast.BitXor: ("arithmetic", (ast.BitAnd,)),
    ast.Lt: ("comparison", (ast.LtE, ast.GtE)),
    ast.LtE: ("comparison", (ast.Lt, ast.Gt)),
    ast.Gt: ("comparison", (ast.GtE, ast.LtE)),
    ast.GtE: ("comparison", (ast.Gt, ast.Lt)),
    ast.Eq: ("comparison", (ast.NotEq,)),
    ast.NotEq: ("comparison", (ast.Eq,)),
    ast.Is: ("comparison", (ast.IsNot,)),
    ast.IsNot: ("comparison", (ast.Is,)),
    ast.In: ("comparison", (ast.NotIn,)),
    ast.NotIn: ("comparison", (ast.In,)),
    ast.And: ("boolean", (ast.Or,)),
    ast.Or: ("boolean", (ast.And,)),
    ast.Break: ("loop", (ast.Continue,)),
    ast.Continue: ("loop", (ast.Break,)),
}
_PAIRS = (("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"), ("nanmin", "nanmax"))
_FUNCTIONS = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_HEADS = (ast.If, ast.While, ast.For, ast.With, ast.FunctionDef, ast.ClassDef, ast.Try)


@dataclass(frozen=True)
class Mutant:
    """One change: in ``parent``, the field (and element) that gets ``new`` instead."""

    module: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    parent: ast.AST
    field: str
    at: int | None
    new: ast.AST
    nth: int = 0

    @property
    def identity(self) -> tuple[str, str, str, str, int]:
        """The key, and the how manieth it is: the same statement can be there twice in a function."""
        return *self.key, self.nth

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a survivor is known by, wherever in the file it stands."""
        return self.module, self.function, self.before, self.after


def mutants(module: str, source: str) -> tuple[ast.Module, list[Mutant]]:
    """Return the tree of a module and the mutants of it, in the order of the source."""
    tree = ast.parse(source)
    result = [
        _described(module, function, statement, parent, field, at, operator, new)
        for parent, field, at, old, statement, function in _sites(tree, tree, "")
        for operator, new in _replacements(parent, field, old)
    ]
    seen: Counter[tuple[str, str, str, str]] = Counter()
    numbered = []
    for mutant in sorted(result, key=lambda mutant: mutant.line):
        numbered.append(replace(mutant, nth=seen[mutant.key]))
        seen[mutant.key] += 1
    return tree, numbered


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Put the change into the tree and take it out again."""
    old = _get(mutant.parent, mutant.field, mutant.at)
    _set(mutant.parent, mutant.field, mutant.at, ast.fix_missing_locations(ast.copy_location(mutant.new, old)))
    try:
        yield
    finally:
        _set(mutant.parent, mutant.field, mutant.at, old)


def _get(parent: ast.AST, field: str, at: int | None) -> ast.AST:
    value = getattr(parent, field)
    return value if at is None else value[at]


def _set(parent: ast.AST, field: str, at: int | None, value: ast.AST) -> None:
    if at is None:
        setattr(parent, field, value)
    else:
        getattr(parent, field)[at] = value


def _described(
    module: str,
    function: str,
    statement: ast.AST,
    parent: ast.AST,
    field: str,
    at: int | None,
    operator: str,
    new: ast.AST,
) -> Mutant:
    line = getattr(_get(parent, field, at), "lineno", getattr(parent, "lineno", getattr(statement, "lineno", 1)))
    draft = Mutant(module, function, line, operator, _head(statement), "", parent, field, at, new)
    # The statement itself may be what is exchanged: then its place holds the new one.
    gone = _get(parent, field, at) is statement and isinstance(new, ast.stmt)
    with mutated(draft):
        after = _head(new if gone else statement)
    return Mutant(module, function, line, operator, draft.before, after, parent, field, at, new)


def _head(statement: ast.AST) -> str:
    """Return a statement on one line, of a compound one the first line."""
    text = ast.unparse(statement)
    lines = [line for line in text.splitlines() if not line.startswith("@")]
    return lines[0] if isinstance(statement, _HEADS) else text


def _sites(
    node: ast.AST, statement: ast.AST, function: str
) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, ast.AST, str]]:
    """Go through what is run: parent, field, element, child, the statement it is in, the function."""
    for field, value in ast.iter_fields(node):
        if _is_left_out(node, field):
            continue
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_not_run(child, node):
                continue
            inside = child if isinstance(child, ast.stmt) else statement
            yield node, field, at, child, inside, function
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            yield from _sites(child, inside, f"{function}.{child.name}".strip(".") if named else function)


def _is_left_out(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Raise):
        return True
    return field in {"annotation", "returns", "decorator_list", "ctx", "type_params"}


def _is_not_run(child: ast.AST, parent: ast.AST) -> bool:
    if isinstance(child, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
        return True
    if isinstance(child, ast.Assign) and isinstance(parent, ast.Module):
        name = ast.unparse(child.targets[0])
        return name == "__all__" or re.fullmatch(r"_?[A-Z][a-z0-9]\w*", name) is not None
    return False


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if type(node) in _SWAPS:
        operator, others = _SWAPS[type(node)]
        for other in others:
            yield operator, other()
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.UnaryOp):
        yield ("boolean" if isinstance(node.op, ast.Not) else "unary"), node.operand
    elif isinstance(node, ast.For):
        # The sites of its parts are the same objects, so that the loop can be exchanged whole.
        yield "loop", ast.For(node.target, ast.Tuple([], ast.Load()), node.body, node.orelse)
    elif isinstance(node, ast.Name) and node.id in _FUNCTIONS:
        yield "function", ast.Name(_FUNCTIONS[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        yield "function", ast.Attribute(node.value, _FUNCTIONS[node.attr], ast.Load())
    elif _has_effect(node):
        yield "statement", ast.Pass()
    if isinstance(node, ast.While):
        yield "loop", ast.While(ast.Constant(value=False), node.body, node.orelse)
    if _is_condition(parent, field) and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        yield "boolean", ast.UnaryOp(ast.Not(), node)


def _constants(value: object) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(value, bool):
        yield "constant", ast.Constant(value=not value)
    elif isinstance(value, int | float) and value + 1 != value:
        yield "constant", ast.Constant(value=value + 1)
        # A negative literal is written with a sign.
        below = value - 1
        yield "constant", ast.Constant(value=below) if below >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-below))


def _has_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.Raise | ast.AugAssign)


def _is_condition(parent: ast.AST, field: str) -> bool:
    if isinstance(parent, ast.If | ast.While | ast.IfExp):
        return field == "test"
    return (isinstance(parent, ast.BoolOp) and field == "values") or (
        isinstance(parent, ast.comprehension) and field == "ifs"
    )
