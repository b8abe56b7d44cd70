"""What is done to a genuine input: bits, bytes, lines, fields, numbers, characters and nesting."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

__all__ = ["changed"]

LARGEST = 1 << 14  # bytes of an input, now and then more

NUMBERS = [
    "-" + "9" * 5000,
    *("0", "-1", "-0", "1", "9", "10", "0.5", "-0.0", "1e9", "1000000000", "-1000000000", "2147483647", "2147483648"),
    *("4294967295", "4294967296", "9007199254740993", "999999999999999999", "1000000000000000000"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "1e18", "-1e18", "1e19", "1e308", "-1e308", "1e309", "1e-308", "1e-400", "1e999999999"),
    *(
        "-1e999999999",
        "nan",
        "NaN",
        "-nan",
        "inf",
        "Infinity",
        "-inf",
        "-Infinity",
        "0x10",
        "1_000",
        "1,000",
        " 7",
        "+7",
    ),
    *("07", "7.", ".7", "..", "1e", "1e+", "e1", "true", "null", "None", "1" + "0" * 400, "9" * 5000),
    *("0." + "0" * 400 + "1", "１２３", "٣٤", "²", "৪", "१e१", "1\u00a02", "1/2", "1;2", "1k", "2K", "9999999999K"),
]
WORDS = [
    *("\x00", "\x1b[2J", "\x1b]0;x\x07", "\r", "\n", "\r\n", "\x0b"),
    *("\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\x7f"),
    *("\u2028", "\u2029", "\u202e", "\u2066", "\ufeff", "\u200b", "e\u0301", "\u0301" * 50, "Ａ", "İ", "ß", "ﬀ", "𝟙"),
    *("\U0010ffff", "\ud800", "\\ud800", "\\u0000", "\\udc00\\ud800", "'", '"', '"""', "\\", "`", "$(x)", "%s", "%n"),
    *("{}", "[bold]", "[/]", "<b>", "&amp;", "../../x", "/dev/zero", "-"),
    *("--", "=", ";", "|", ",", ":", "\t", " ", "#"),
    *("(", ")", "[", "]", "{", "}", "**", "*", "/", "+", "min(", "sqrt(", "log10(", "exp(", "p", "q**p", "**100"),
    *("Unknown", "UNLIMITED", "9999-12-31T23:59:60", "0001-01-01T00:00:00", "2026-03-29T02:30:00", "99/99/9999"),
    *("1-1-1", "[1-1000000000]", "[0-999999999:1]", "0*1000000000", "cpu=1E", "cpu=1000000000000P", "infinite"),
]  # fmt: skip
NESTS = ["[", "(", "{", '{"a":', "[[", "-", "+", "--", "sqrt(", "a.", '["x"', "p**", "2**", "abs(", "a = [", "(-"]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_FIELD = re.compile(rb"[^\s|,;=\x1f\"()\[\]{}:]+")


def _word(random: Random) -> bytes:
    return random.choice(random.choice([NUMBERS, WORDS])).encode("utf-8", "surrogatepass")


def _span(random: Random, data: bytes, longest: int = 64) -> tuple[int, int]:
    at = random.randrange(len(data) + 1)
    return at, min(len(data), at + random.randint(1, random.choice([4, longest])))


def _flip(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _byte(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + random.randbytes(1) + data[at + 1 :]


def _insert(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + _word(random) * random.choice([1, 1, 1, 2, 300]) + data[at:]


def _delete(random: Random, data: bytes, other: bytes) -> bytes:
    begin, end = _span(random, data)
    return data[:begin] + data[end:]


def _double(random: Random, data: bytes, other: bytes) -> bytes:
    begin, end = _span(random, data)
    return data[:end] + data[begin:end] * random.choice([1, 2, 100]) + data[end:]


def _splice(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def _cut(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _lines(random: Random, data: bytes, other: bytes) -> bytes:
    """Repeat, remove, exchange or take over a whole line."""
    lines = data.split(b"\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            lines[to:to] = [lines[at]] * random.choice([1, 2, 50])
        case 1:
            del lines[at]
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case _:
            lines.insert(at, random.choice(other.split(b"\n")))
    return b"\n".join(lines)


def _replaced(pattern: re.Pattern[bytes], words: list[str]) -> Callable[[Random, bytes, bytes], bytes]:
    def replace(random: Random, data: bytes, other: bytes) -> bytes:
        result = list(pattern.finditer(data))
        if not result:
            return _insert(random, data, other)
        one = random.choice(result)
        if random.randrange(4):
            word = random.choice(words).encode("utf-8", "surrogatepass")
        else:
            word = random.choice(result).group()
        return data[: one.start()] + word + data[one.end() :]

    return replace


def _nest(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(NESTS).encode() * random.choice([3, 30, 45, 200, 3000]) + data[at:]


_CHANGES: list[Callable[[Random, bytes, bytes], bytes]] = [
    _flip, _byte, _insert, _insert, _delete, _double, _splice, _cut, _lines, _lines,
    *[_replaced(_NUMBER, NUMBERS)] * 4, *[_replaced(_FIELD, NUMBERS + WORDS)] * 3, _nest,
]  # fmt: skip


def changed(random: Random, data: bytes, other: bytes) -> bytes:
    """Return ``data`` after some changes; ``other`` is another input, of which parts may come in."""
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        data = random.choice(_CHANGES)(random, data or b"0", other)
    return data if random.randrange(100) == 0 else data[:LARGEST]
