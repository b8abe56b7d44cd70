"""The text of an accounting log: a file, packed or not, or stdin; read once, a block at a time."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from policyfactory.core.errors import InputError, TraceFormatError
from policyfactory.core.inputs import note_input, open_input
from policyfactory.workload.accounting.detect import HEAD
from policyfactory.workload.swf.files import OTHER_PACKINGS
from policyfactory.workload.swf.packed import GZIP, PART, unpacked

__all__ = ["Source"]

# A line of an accounting log has some hundreds of characters; one with a submit line in it some thousands.
_LONGEST_LINE = 1 << 20
# Characters of a block, at least, but for the last.
_BLOCK = 1 << 20
# 16 GiB of text are more than 50 million lines; what unpacks to more is no log, or an attack.
_LARGEST_TEXT = 16 << 30
_OTHER_FORMS = OTHER_PACKINGS | {b"\xff\xfe": "as UTF-16 text", b"\xfe\xff": "as UTF-16 text"}


class Source:
    """One input: its beginning can be looked at, then its text is read once.

    Bytes that are no UTF-8 become the replacement character. The digest is that of the file as it lies on the disk;
    it is known once the text has been read.

    Parameters
    ----------
    path : Path or str
        The file; ``-`` is stdin.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read, is damaged, cut off or packed in another way.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = None if str(path) == "-" else Path(path)
        self.name = "stdin" if self._path is None else str(path)
        self._digest = hashlib.sha256()
        self._text = codecs.iterdecode(self._unpacked(), "utf-8", "replace")
        first = ""
        while len(first) < HEAD and (chunk := next(self._text, "")):
            first += chunk
        self._first = first.removeprefix("\ufeff")

    @property
    def sha256(self) -> str:
        """Digest of what has been read, in hexadecimal."""
        return self._digest.hexdigest()

    @property
    def head(self) -> str:
        """The first 64 KiB of text."""
        return self._first[:HEAD]

    def chunks(self) -> Iterator[str]:
        """Give the text in parts of any length, line ends kept; can be asked for once."""
        yield self._first
        yield from self._text

    def blocks(self) -> Iterator[list[str]]:
        """Give the lines without their ends (LF, CR LF), some thousand at a time; can be asked for once.

        Raises
        ------
        TraceFormatError
            If a line has more than 2**20 characters.
        """
        count, size = 0, 0
        waiting: list[str] = []
        for chunk in self.chunks():
            waiting.append(chunk)
            size += len(chunk)
            if size < _BLOCK:
                continue
            lines = self._split("".join(waiting), count)
            waiting, size = [lines.pop()], 0
            count += len(lines)
            yield lines
        *lines, last = self._split("".join(waiting), count)
        yield [*lines, last.removesuffix("\r")] if last else lines

    def lines(self) -> Iterator[str]:
        """Give the lines one by one; otherwise as `blocks`."""
        return itertools.chain.from_iterable(self.blocks())

    def _split(self, text: str, before: int) -> list[str]:
        """Return the lines of a text; the last is what stands behind the last line end."""
        lines = text.split("\n")
        if max(map(len, lines)) > _LONGEST_LINE:
            number = before + 1 + next(place for place, line in enumerate(lines) if len(line) > _LONGEST_LINE)
            raise TraceFormatError(
                f"{self.name}:{number}: a line of more than {_LONGEST_LINE:,} characters; is this an accounting log?"
            )
        if "\r" in text:
            *lines, last = lines
            return [*(line.removesuffix("\r") for line in lines), last]
        return lines

    def _blocks(self) -> Iterator[bytes]:
        try:
            if self._path is not None:
                note_input(self._path)
            with contextlib.nullcontext(sys.stdin.buffer) if self._path is None else open_input(self._path) as file:
                while block := file.read(PART):
                    self._digest.update(block)
                    yield block
        except FileNotFoundError:
            raise InputError(f"{self.name}: no such file; check the name and the current folder {Path.cwd()}") from None
        except IsADirectoryError:
            raise InputError(f"{self.name}: is a directory; name a file in it") from None
        except OSError as error:
            raise InputError(
                f"{self.name}: cannot be read: {error.strerror}; check its permissions and the disk"
            ) from None

    def _unpacked(self) -> Iterator[bytes]:
        blocks = self._blocks()
        first = next(blocks, b"")
        for magic, packing in _OTHER_FORMS.items():
            if first.startswith(magic):
                raise InputError(f"{self.name}: is packed or written {packing}, only plain text and gzip are read")
        blocks = itertools.chain([first], blocks)
        room = _LARGEST_TEXT
        for part in unpacked(blocks, self.name) if first.startswith(GZIP) else blocks:
            room -= len(part)
            if room < 0:
                raise InputError(f"{self.name}: has more than {_LARGEST_TEXT:,} bytes of text; split the log")
            yield part
