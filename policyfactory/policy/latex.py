"""A formula as LaTeX mathematics, in the order in which it is written."""

from __future__ import annotations

from policyfactory.policy.nodes import Binary, Call, Coefficient, Expression, Negative, Number, Variable, format_number

__all__ = ["to_latex"]

_FUNCTIONS = {"log10": r"\log_{10}", "log2": r"\log_{2}", "ln": r"\ln", "min": r"\min", "max": r"\max"}
_VARIABLES = {"e90": "e_{90}", "user_waiting": r"\mathrm{user\_waiting}", "user_running": r"\mathrm{user\_running}",
              "mem": r"\mathrm{mem}"}  # fmt: skip


def to_latex(expression: Expression) -> str:
    r"""Return LaTeX for mathematics mode, without delimiters: ``\sqrt{p} \, q``."""
    match expression:
        case Number(value):
            return _number(value)
        case Variable(name):
            return _VARIABLES.get(name, name)
        case Coefficient(name):
            return r"\mathrm{" + name.replace("_", r"\_") + "}"
        case Negative(part):
            return "-" + (_wrapped(part) if isinstance(part, Negative) else _inside(part, 2))
        case Binary("/", left, right):
            return rf"\frac{{{to_latex(left)}}}{{{to_latex(right)}}}"
        case Binary("**", base, exponent):
            # A fraction, a function or a number with exponent needs the parentheses that the text does not.
            plain = isinstance(base, Variable) or (isinstance(base, Number) and "e" not in format_number(base.value))
            shown = to_latex(base) if plain else _wrapped(base)
            return f"{shown}^{{{to_latex(exponent)}}}"
        case Binary(operator, left, right):
            level = expression.level
            after = _inside(right, level + 1)
            if isinstance(right, Negative):
                after = _wrapped(right)
            return f"{_inside(left, level)} {_sign(operator, right)} {after}"
        case Call(function, arguments):
            return _call(function, arguments)
    raise TypeError(f"{type(expression).__name__} is no part of a formula")


def _sign(operator: str, right: Expression) -> str:
    if operator != "*":
        return operator
    # Digits side by side would read as one number.
    first = right
    while isinstance(first, Binary):
        first = first.left
    return r"\cdot" if isinstance(first, Number) else r"\,"


def _call(function: str, arguments: tuple[Expression, ...]) -> str:
    inside = ", ".join(to_latex(part) for part in arguments)
    if function == "sqrt":
        return rf"\sqrt{{{inside}}}"
    if function == "exp":
        # Not e to the power: e is the predicted run time.
        return rf"\exp\left({inside}\right)"
    if function == "abs":
        return rf"\left|{inside}\right|"
    return rf"{_FUNCTIONS[function]}\left({inside}\right)"


def _inside(part: Expression, least: int) -> str:
    return to_latex(part) if part.level >= least or _is_fraction(part) else _wrapped(part)


def _is_fraction(part: Expression) -> bool:
    return isinstance(part, Binary) and part.operator == "/"


def _wrapped(part: Expression) -> str:
    return rf"\left({to_latex(part)}\right)"


def _number(value: float) -> str:
    mantissa, _, exponent = format_number(value).partition("e")
    if not exponent:
        return mantissa
    return rf"10^{{{exponent}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{exponent}}}"
