"""Text: strangers' names written so that they are never taken for markup or code, and numbers written in one way."""

from __future__ import annotations

import difflib
import html
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from policyfactory.core.errors import UsageError

# Escaping. -----------------------------------------------------------------------------------------------------------

# Controls (but newline and tab), what turns the direction of the text around or takes no room, lone surrogates, what is
# for private use, and code points that are no characters (the last two of each plane among them).
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\uf8ff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U0010ffff"
    f"{''.join(chr(plane << 16 | last) for plane in range(1, 14) for last in (0xFFFE, 0xFFFF))}]"
)
# What a spreadsheet computes, but for a number or a dash that means none.
_COMPUTED = re.compile(r"(?![+-]?[\d.,]*(e[+-]?\d+)? ?%?\Z)[=+\-@\t\r]", re.IGNORECASE)
_MARKDOWN = re.compile(r"[\\`*_|<>\[\]#]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    # Quotes and angle brackets are ligatures or other characters in some fonts.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
}


def visible(text: str) -> str:
    r"""Return ``text`` with characters that hide or reorder text written as ``\u202e``.

    Parameters
    ----------
    text : str
        Anything; newlines and tabs stay.
    """
    return _DECEIVING.sub(lambda match: _escape(ord(match.group())), text)


def _escape(code: int) -> str:
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def json_text(text: str) -> str:
    r"""Return JSON with characters that hide or reorder text written as ``\u202e``; who parses it reads the same."""
    return _DECEIVING.sub(lambda match: json.dumps(match.group())[1:-1], text)


def csv_text(text: str) -> str:
    """Return a text for a cell of a CSV file, which a spreadsheet does not compute: ``'=1+1`` instead of ``=1+1``.

    Of all our CSV files this is the one rule: a text (never a number) that begins with ``=``, ``+``, ``-``, ``@`` or a
    tab gets an apostrophe before it, which spreadsheets take for the mark of a text.
    """
    text = visible(text)
    return f"'{text}" if _COMPUTED.match(text) else text


def shown(value: Any) -> Any:
    """Return a value of the template as it is shown: plain text made visible, markup of our own untouched."""
    return visible(value) if type(value) is str else value


def html_text(text: str) -> str:
    """Return ``text`` for an element or an attribute of HTML or SVG."""
    return html.escape(visible(text))


def markdown_text(text: str) -> str:
    """Return ``text`` with what Markdown would take as its own, and what hides, made plain."""
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def latex_text(text: str) -> str:
    """Return ``text`` for running text of LaTeX; what is not printable becomes a question mark."""
    return "".join(_LATEX.get(c, c if c.isprintable() else "?") for c in text)


def anchors(names: Iterable[str]) -> list[str]:
    """Return an anchor for each name, made of its letters and digits, all distinct; also good as a file's stem.

    Parameters
    ----------
    names : iterable of str
        Headings; any text.
    """
    stems = (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "part" for name in names)
    return distinct(stems)


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names; one that occurs again, in whatever case, gets a number: ``SAF``, ``saf-2``.

    Parameters
    ----------
    names : iterable of str
        Any.
    """
    taken: set[str] = set()
    numbered = []
    for name in names:
        candidate, count = name, 1
        while candidate.casefold() in taken:
            count += 1
            candidate = f"{name}-{count}"
        taken.add(candidate.casefold())
        numbered.append(candidate)
    return numbered


# Words. --------------------------------------------------------------------------------------------------------------


def shortened(name: str, length: int = 30) -> str:
    """Return a name on one line; of a long one its beginning and its end, which tell models apart."""
    name = " ".join(visible(name).split())
    end = length // 3
    return name if len(name) <= length else f"{name[: length - end - 1]}…{name[-end:]}"


def cut(text: str, length: int) -> str:
    """Return the beginning of a text that is too long."""
    return text if len(text) <= length else text[: length - 3] + "..."


def did_you_mean(name: str, known: Collection[str], most: int = 1, cutoff: float = 0.6) -> str:
    """Return ``did you mean A or B? `` with those of the known names that are near; nothing if none is."""
    near = difflib.get_close_matches(name[:60], known, n=most, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}? " if near else ""


def unknown_key(key: str, known: Collection[str]) -> str:
    """Return what is wrong with a key that its table does not have; to be read behind the key."""
    return f"is no key of this table; {did_you_mean(key, known)}it has {', '.join(known)}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural where there are several or none: ``1 case``, ``2 cases``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def enumerated(names: Iterable[str]) -> str:
    """Return names as ``A, B and C``; there is at least one."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


# Numbers. ------------------------------------------------------------------------------------------------------------

_DIGITS = 3  # significant ones: what a reader compares
_MOST_DECIMALS = 6  # of these; more where more digits are asked for


def number_text(
    value: float,
    *,
    signed: bool = False,
    decimals: int | None = None,
    least: int = 0,
    digits: int = _DIGITS,
    most: int | None = None,
) -> str:
    """Return a number as the tables and sentences of all reports show it: three significant digits, commas.

    Parameters
    ----------
    value : float
        Any; what is not zero is not shown as zero, NaN is a dash.
    signed : bool
        Whether a positive number carries a plus.
    decimals : int, optional
        Digits after the point, where they are given.
    least : int
        At least so many digits after the point, where they are not.
    digits : int
        Significant digits; of more than three a number that begins far behind the point is written as a power of ten.
    most : int, optional
        At most so many digits after the point, behind which nothing is meant: what is zero by them is shown as zero.
    """
    if not math.isfinite(value):
        sign = "+" if signed and value > 0 else "-" if value < 0 else ""
        return "-" if math.isnan(value) else f"{sign}infinite"
    if value == 0:
        return "0"
    if decimals is None:
        wanted = digits - 1 - math.floor(math.log10(abs(value)))
        if digits > _DIGITS and wanted > digits + _DIGITS:
            return power_of_ten(value, digits - 1)
        decimals = min(max(wanted, least, 0), _MOST_DECIMALS + digits - _DIGITS if most is None else most)
    sign = "+" if signed else ""
    text = f"{value:{sign},.{decimals}f}"
    if text.strip("+-0."):
        return text
    return f"{value:{sign}.0e}" if most is None else "0"


def percent_change(share: float) -> str:
    """Return a relative change as text, for example ``+32 %``, ``-0.3 %``, ``0 %``."""
    value = 100 * share
    text = f"{value:+,.0f}" if abs(value) >= 10 else f"{value:+.1f}"
    return f"{text} %" if float(text.replace(",", "")) else "0 %"


def power_of_ten(value: float, digits: int = 2) -> str:
    """Return a number as ``1.23e-7``: for coefficients, whose sizes have nothing to do with each other."""
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


# Results in a terminal and in a notebook. -----------------------------------------------------------------------------


def facts_text(title: str, facts: Mapping[str, str]) -> str:
    """Return the title and one line for each fact, the values one below the other."""
    width = max(map(len, facts), default=0)
    return "\n".join([title, *(f"  {name:{width}}  {value}" for name, value in facts.items())])


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Return the same as an HTML table."""
    rows = "".join(
        f"<tr><th align='left'>{html.escape(name)}</th><td align='left'>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


# Durations and quantities as people write them ------------------------------------------------------------------------

# Durations and quantities as people write them: ``15d``, ``20h``, ``2h30m``, ``90``; and back.


MINUTE = 60
HOUR = 3600
DAY = 86400
WEEK = 604800

_UNITS = {"w": WEEK, "d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)([wdhms])")
_LONGEST = 10**15


def parse_duration(text: str, *, unit: bool = False) -> int | float:
    """Return the seconds of ``text``; ``inf`` (also ``none``) is ``math.inf``.

    Parameters
    ----------
    text : str
        A number of seconds, or numbers with units.
    unit : bool
        Refuse a number without a unit: where nobody means seconds, it is a slip.

    Raises
    ------
    UsageError
        If the text is no duration, or is not a whole number of seconds.
    """
    clean = text.strip().lower()
    shown = repr(text if len(text) <= 60 else text[:60] + "...")
    if clean in {"inf", "none"}:
        return math.inf
    if clean.isascii() and clean.isdigit() and len(clean) <= 15:
        if unit and int(clean):
            raise UsageError(
                f"{shown} has no unit; write {clean}m for minutes, {clean}h for hours, {clean}d for days, "
                f"{clean}w for weeks, {clean}s for seconds"
            )
        return int(clean)
    parts = _PART.findall(clean) if len(clean) <= 60 else []
    if not parts or "".join(number + unit for number, unit in parts) != clean:
        raise UsageError(f"{shown} is not a duration; write seconds or for example 15d, 20h, 2h30m, 1w, inf")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds != int(seconds):
        raise UsageError(f"duration {shown} is {seconds} s; give a whole number of seconds")
    return int(seconds)


def duration_text(name: str, seconds: float) -> str:
    """Return a number of seconds as `parse_duration` reads it: ``7200s``, ``inf``.

    Parameters
    ----------
    name : str
        What the time is, for messages.
    seconds : float
        A whole number from 0 to below 1e15, or inf.

    Raises
    ------
    UsageError
        If it is anything else.
    """
    if seconds == math.inf:
        return "inf"
    if not 0 <= seconds < _LONGEST or seconds != int(seconds):
        shown = "of hundreds of digits" if isinstance(seconds, int) and abs(seconds) > 10**300 else repr(seconds)
        raise UsageError(
            f"{name} {shown}: expected whole seconds, from 0 to below 1e15; write for example 7200 or '2h'"
        )
    return f"{int(seconds)}s"


def format_duration(seconds: float) -> str:
    """Return ``seconds`` with its two largest units, for example ``9d 14h``, ``3m 20s``, ``0s``."""
    if math.isinf(seconds):
        return "no limit"
    rest = round(abs(seconds))
    words = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{unit}")
    text = " ".join(words[:2]) or "0s"
    return f"-{text}" if seconds < 0 else text


def finite(value: float) -> float | None:
    """Return the number, or None for one that JSON has no word for."""
    return float(value) if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Return numpy scalars and arrays as JSON values, and what is not finite as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return finite(value) if isinstance(value, float) else value
