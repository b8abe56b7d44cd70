"""The scanner of logs, told line by line with the standard library: the twin of policyfactory.workload.swf.scan."""

from __future__ import annotations

import re

FIELDS = 18
WIDEST = 64
WHOLE = re.compile(rb"[+-]?\d+")
DECIMAL = re.compile(rb"[+-]?(\d+\.\d*|\.\d+)")


def scan_number(token: bytes) -> tuple[str, float]:
    """Return what kind of number a token is, and its value."""
    if WHOLE.fullmatch(token):
        digits = len(token.lstrip(b"+-"))
        return ("ok", int(token)) if digits <= 18 else ("too large", 0)
    if DECIMAL.fullmatch(token):
        return "decimal", float(token)
    mantissa = re.split(rb"[eE]", token, maxsplit=1)[0]
    if mantissa != token and (WHOLE.fullmatch(mantissa) or DECIMAL.fullmatch(mantissa)):
        try:
            return "irregular", float(token.decode("ascii")) if b"_" not in token else float("nan")
        except ValueError:
            return "irregular", float("nan")
    return "bad number", 0


def scan_jobs(text: bytes) -> tuple[list[list[float]], tuple[str, int, int] | None, int, int]:
    """Return the jobs, the first fault (what, line from 1, field from 1 or number of fields), comments and blanks.

    The first line says how many fields there are; those behind the 18th may hold anything.
    """
    width = 0
    jobs: list[list[float]] = []
    comments = blanks = 0
    for number, line in enumerate(text.split(b"\n")[:-1], start=1):
        tokens = re.findall(rb"[^ \t\r]+", line)
        if not tokens:
            blanks += 1
            continue
        if tokens[0].startswith(b";"):
            comments += 1
            continue
        width = width or (len(tokens) if FIELDS < len(tokens) <= WIDEST else FIELDS)
        row: list[float] = []
        for place, token in enumerate(tokens, start=1):
            if FIELDS < place <= width:
                continue
            kind, value = scan_number(token)
            if kind in {"bad number", "too large"}:
                return jobs, (kind, number, place), comments, blanks
            row.append(value)
        if len(tokens) != width:
            return jobs, ("bad width", number, len(tokens)), comments, blanks
        jobs.append(row)
    return jobs, None, comments, blanks
