"""The families of formulas that `train` searches: shapes that are known to order queues well, with free coefficients.

The formulas that `learn` compares are in `policyfactory.learning.choice`. All are written in logarithms, so that a
coefficient is an exponent: ``log10(p) + a*log10(q)`` orders as p*q**a. In the words of these formulas, x is log10(p),
y log10(q), v log10(w + 10) - 1 (0 for a job that has just come, 1 after 90 s, 3 after 2.8 h), c is 1 for a job that
fits now and 0 for any other. The coefficient of x is 1: a factor changes no order. Families that read what is
predicted of a job are an index of its length, ln(e) and ln(s), in place of x.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.policy.form import Form
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE

_X, _Y, _V, _C = "log10(max(p, 1))", "log10(q)", "(log10(w + 10) - 1)", "min(1, max(0, f - q + 1))"

# Published orders that are hard to beat, beside which every learned one is judged.
REFERENCES: dict[str, Policy] = {
    "SAF": CATALOGUE["SAF"],
    "P*SQRT(Q)": Policy("P*SQRT(Q)", "p*sqrt(q)", "short jobs first, processors by their square root"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """A form, and from where its coefficients are searched.

    Parameters
    ----------
    form : Form
        The formula.
    start : tuple of float
        First values of the coefficients: a published policy, or one that is near.
    scale : tuple of float
        What a step of each is measured in.
    words : str
        What it is.
    """

    form: Form
    start: tuple[float, ...]
    scale: tuple[float, ...]
    words: str

    @property
    def name(self) -> str:
        """The name of the form."""
        return self.form.name


@dataclasses.dataclass(frozen=True, slots=True)
class _Stock:
    text: str
    start: Mapping[str, float]
    words: str
    threshold: str = ""


def _products() -> _Stock:
    """Return x and twelve terms: y, v, c, the squares of x, y, v (c is its own), and the six products of two."""
    parts = {"x": _X, "y": _Y, "v": _V, "c": _C}
    terms = {name: parts[name] for name in "yvc"}
    terms |= {f"{name}{name}": f"{parts[name]}**2" for name in "xyv"}
    terms |= {a + b: f"{parts[a]}*{parts[b]}" for a, b in itertools.combinations("xyvc", 2)}
    text = " + ".join([_X, *(f"k_{name}*{term}" for name, term in terms.items())])
    return _Stock(text, {"k_y": 0.5}, "x, y, v, c, their squares and all products of two of them: 12 coefficients")


_STOCK: dict[str, _Stock] = {
    "power": _Stock(f"{_X} + a*{_Y}", {"a": 0.5}, "p*q**a: nothing but a sort key, which every scheduler takes"),
    "curved": _Stock(
        f"{_X} + a*{_Y} + b*{_X}*{_Y} + c*{_X}**2 + d*{_Y}**2",
        {"a": 0.5},
        "a sort key with x, y, their squares and their product",
    ),
    "linear": _Stock(
        f"{_X} + a*{_Y} - b*{_V}", {"a": 0.5, "b": 0.1}, "p*q**a, and who has waited longer goes ahead (b > 0)"
    ),
    "stretch": _Stock(
        f"{_X} + a*{_Y} - b*log10(1 + w/max(p, 1))",
        {"a": 0.5, "b": 0.1},
        "p*q**a, and who has waited longer in terms of its own length goes ahead (b > 0)",
    ),
    "ageing": _Stock(
        f"{_X} + a*{_Y} - b*log10(1 + w/10**t)",
        {"a": 0.5, "b": 0.1, "t": 4.0},
        "p*q**a, and a wait counts from about 10**t s on",
    ),
    "fits": _Stock(
        f"{_X} + a*{_Y} - b*{_V} + k*{_C}",
        {"a": 0.5, "b": 0.1},
        "linear, and jobs that fit now go ahead of the others (k < 0) or behind them (k > 0)",
    ),
    "products": _products(),
}

# From what worked on four logs (docs/train.md); a, b as there.
_INDEX, _FIRST = "a*ln(s) + ln(e) + b*ln(q)", {"a": -0.5, "b": 0.3}
_FORESEEN: dict[str, _Stock] = {
    "predicted": _Stock(_INDEX, _FIRST, "an index of the predicted length, and processors: a sort key"),
    "predicted-ageing": _Stock(
        f"{_INDEX} - c*w/3600", {**_FIRST, "c": 0.02}, "predicted, and each hour of waiting counts alike"
    ),
    "predicted-capped": _Stock(
        f"{_INDEX} - c*min(w, 10**t)/10**t",
        {**_FIRST, "c": 0.5, "t": 5.0},
        "predicted, and a wait counts up to 10**t s, as under Slurm's PriorityMaxAge",
    ),
    "predicted-log": _Stock(
        f"{_INDEX} - c*ln(1 + w/10**t)",
        {**_FIRST, "c": 0.2, "t": 4.0},
        "predicted, and a wait counts from about 10**t s on, ever less",
    ),
    "predicted-users": _Stock(
        f"{_INDEX} + c*ln(1 + user_waiting) + d*ln(1 + user_running)",
        _FIRST,
        "predicted, and the jobs that the user has waiting and running",
    ),
    "predicted-threshold": _Stock(
        _INDEX, {**_FIRST, "t": 5.5}, "predicted, and who has waited longer than 10**t s goes first", threshold="t"
    ),
}
FAMILIES: dict[str, str] = {name: stock.words for name, stock in _STOCK.items()}
PREDICTED: dict[str, str] = {name: stock.words for name, stock in _FORESEEN.items()}


def family_of(text: str, start: Mapping[str, float] | None = None) -> Family:
    """Return the stock family of a name, or that of a formula with named coefficients (``NAME=FORMULA`` names it).

    Parameters
    ----------
    text : str
        For example ``linear``, or ``log10(p) + a*log10(q)``.
    start : mapping of str to float, optional
        First values of coefficients, in place of the family's own; 0 of a user's formula.

    Raises
    ------
    UsageError
        If there is no such family, the formula has no coefficient, or ``start`` names one that it has not.
    FormulaError
        If the formula cannot be read.
    """
    stock = {**_STOCK, **_FORESEEN}.get(text.strip().lower())
    if stock is not None:
        name, formula, values, words = text.strip().lower(), stock.text, dict(stock.start), stock.words
    else:
        name, sign, formula = text.partition("=")
        name, formula = (name.strip(), formula.strip()) if sign else ("form", text.strip())
        values, words = {}, "a formula of the user's"
        if not (0 < len(name) <= 40 and name.isidentifier()):
            raise UsageError(f"the name {name[:40]!a} of a family cannot be used; write NAME=FORMULA, the name a word")
        if formula.isidentifier():
            raise UsageError(
                f"there is no family {formula[:40]!a}; there are {', '.join([*_STOCK, *_FORESEEN])}, or write a "
                "formula with named coefficients: log10(p) + a*log10(q)"
            )
    try:
        form = Form.of(name, formula, threshold="" if stock is None else stock.threshold)
    except FormulaError as error:
        raise type(error)(f"family {name}: {error}") from None
    unknown = sorted(set(start or {}) - set(form.names))
    if unknown and stock is None:
        raise UsageError(f"--start names {unknown[0]}; the coefficients of {name} are {', '.join(form.names)}")
    values |= {name: value for name, value in (start or {}).items() if name in form.names}
    first = tuple(float(values.get(name, 0.0)) for name in form.names)
    # The stock ones are exponents: steps are measured in 1. A user's may have any size.
    scale = tuple(1.0 if stock is not None or value == 0 else abs(value) for value in first)
    return Family(form, first, scale, words)


# What anybody could run without learning anything ---------------------------------------------------------------------


# Of the catalogue all that run small or early jobs first.
_POLYNOMIALS, _TRACES = ("LIN", "QDR", "CUB", "QUA"), ("SYNTHETIC", "CTC-SP2", "SDSC-BLUE")
NAMES = (
    *("FCFS", "SPF", "SQF", "SAF", "SRF", "WFP3", "UNICEF", "F1", "F2", "F3", "F4"),
    *(f"{polynomial}-{trace}" for trace in _TRACES for polynomial in _POLYNOMIALS),
)
PUBLISHED: tuple[Policy, ...] = (*(CATALOGUE[name] for name in NAMES), REFERENCES["P*SQRT(Q)"])
