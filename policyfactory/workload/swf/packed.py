"""Text that is packed with gzip, a part at a time, so that a file cannot unpack into more memory than there is."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from policyfactory.core.errors import InputError

__all__ = ["GZIP", "PART", "unpacked"]

GZIP = b"\x1f\x8b"
PART = 1 << 20  # bytes
# The logs of the archive pack to a fifth or an eighth of their size, the most alike lines of sacct to a fortieth; gzip
# can reach a thousandth.
_LARGEST_RATIO, _FROM = 50, 8 << 20


def unpacked(blocks: Iterable[bytes], place: str) -> Iterator[bytes]:
    """Give what gzip members hold, in parts of at most `PART` bytes; zero bytes behind the last one are padding.

    Parameters
    ----------
    blocks : iterable of bytes
        The packed file in blocks.
    place : str
        Its name, for messages.

    Raises
    ------
    InputError
        If it is damaged, cut off, or unpacks to more than 50 times its size (from 8 MiB on).
    """
    rest = iter(blocks)
    data = next(rest, b"")
    taken, given = len(data), 0
    member = zlib.decompressobj(wbits=31)
    while True:
        try:
            part = member.decompress(data, PART)
        except zlib.error as error:
            raise InputError(
                f"{place}: is damaged and cannot be unpacked ({error}); download or copy it again"
            ) from None
        given += len(part)
        data = member.unconsumed_tail
        if given > _FROM and given > _LARGEST_RATIO * (taken - len(data)):
            raise InputError(
                f"{place}: unpacks to more than {_LARGEST_RATIO} times its size, which no log does; if it is one, "
                "unpack it first (gunzip)"
            )
        yield part
        if member.eof:
            data = member.unused_data.lstrip(b"\0")
            while not data and (block := next(rest, b"")):
                taken += len(block)
                data = block.lstrip(b"\0")
            if not data:
                return
            member = zlib.decompressobj(wbits=31)
        elif not data and len(part) < PART:
            data = next(rest, b"")
            taken += len(data)
            if not data:
                raise InputError(
                    f"{place}: ends in the middle of its packed data, after {given:,} bytes of text: it was cut off; "
                    "download or copy it again (gzip -t says whether it is whole)"
                )
