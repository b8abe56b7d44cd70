"""Downloading a file that can be interrupted: what has come is kept, and the next call asks for the rest.

The part lies beside the target as ``NAME.partial``. ``NAME.partial.json`` says which address sent it and what
identifies the version there (strong ETag or date). The rest is only asked for at that address, and only of that version
(If-Range); in every other case the file is sent from its beginning. The target appears only when it is whole and has
the expected digest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http
import json
import os
import re
import time
import urllib.error
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path

from policyfactory.core.artefact import dump_json
from policyfactory.core.errors import InputError, OutputError, PolicyfactoryError, UsageError
from policyfactory.core.files import atomic_write, sync_folder
from policyfactory.core.inputs import read_bytes, sha256_file
from policyfactory.core.journal import partial_path
from policyfactory.core.outputs import exclusive
from policyfactory.core.version import __version__
from policyfactory.workload.header import printable
from policyfactory.workload.swf.web import Limits, OutOfTimeError, PassingFaultError, check_address, open_address

__all__ = ["Download", "Patience", "download"]

_BLOCK = 1 << 16
_MOST = {True: 100, False: 1_000_000}  # tries; seconds, bytes a second
_LARGEST = 1 << 30  # bytes; what is read of a log
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_LENGTH = re.compile(r"\d{1,18}")
_STRONG_TAG = re.compile(r'"[!#-~]{1,200}"')
_DATE = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT")
# The server or the way to it had a bad moment: worth another try.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

Progress = Callable[[int, int | None], None]
Check = Callable[[Path], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Patience:
    """When a download is given up.

    Parameters
    ----------
    tries : int
        Attempts after which a failing connection is given up.
    timeout : float
        Seconds without a byte after which an attempt fails.
    pause : float
        Seconds before the second attempt; doubled each time.
    max_time : float
        Seconds after which the download is given up, all attempts together.
    speed_limit, speed_time : float
        An attempt fails that brings fewer than so many bytes a second over so many seconds.
    largest : int, optional
        Bytes of the file at most (default: what is read of a log).
    """

    tries: int = 4
    timeout: float = 30.0
    pause: float = 1.0
    max_time: float = 3600.0
    speed_limit: float = 1000.0
    speed_time: float = 30.0
    largest: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        UsageError
            If one cannot be waited for.
        """
        for name, least in (("tries", 1), ("timeout", 0.1), ("max_time", 0.1), ("speed_limit", 0), ("speed_time", 0.1)):
            value = getattr(self, name)
            if not least <= value <= _MOST[name == "tries"]:
                raise UsageError(
                    f"{name.replace('_', '-')} {value!r}: expected a number from {least} to {_MOST[name == 'tries']:,}"
                )


@dataclasses.dataclass(frozen=True, slots=True)
class Download:
    """What a download came to.

    Parameters
    ----------
    path : Path
        The file.
    url : str
        Where it came from.
    size : int
        Bytes of the file.
    resumed_from : int
        Bytes that an earlier call had left.
    sha256 : str
        Digest of the file.
    pinned : bool
        Whether that is the digest that was expected (False: none was).
    present : bool
        Whether the file was there already, so that nothing was sent.
    """

    path: Path
    url: str
    size: int
    resumed_from: int
    sha256: str
    pinned: bool
    present: bool = False


def _validator_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial.json")


def download(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    check: Check | None = None,
    progress: Progress | None = None,
    patience: Patience | None = None,
) -> Download:
    """Download ``url`` to ``path``, going on where an earlier call was interrupted.

    Parameters
    ----------
    url : str
        An http or https address.
    path : Path
        The file to write.
    sha256 : str, optional
        Its expected digest.
    check : callable, optional
        Called with the whole file before it gets its name; a file that it raises an error for is thrown away.
    progress : callable, optional
        Called with the bytes there are and the bytes there will be (None if the server does not say).
    patience : Patience, optional
        When to give up.

    Raises
    ------
    UsageError
        If the address is none of http or https, has a name or password in it, or is malformed.
    InputError
        If the server has no such file or cannot be reached, it took too long, or the file is not the expected one.
    OutputError
        If the file cannot be written, or another run is writing it.
    """
    check_address(url)
    with exclusive(path):
        if path.exists():
            return _already_there(url, path, sha256)
        resumed_from = 0 if _known_part(path) is None else _size(path)
        _fetch_patiently(url, path, patience or Patience(), progress)
        return _finish(url, path, sha256, check, resumed_from)


def _fetch_patiently(url: str, path: Path, patience: Patience, progress: Progress | None) -> None:
    until = time.monotonic() + patience.max_time
    limits = Limits(patience.timeout, until, patience.speed_limit, patience.speed_time, patience.largest or _LARGEST)
    for attempt in range(1, patience.tries + 1):
        try:
            _fetch(url, path, limits, progress)
        except OutOfTimeError:
            raise InputError(_given_up(url, path, f"took longer than {patience.max_time:g} s (--max-time)")) from None
        except PassingFaultError as fault:
            if attempt == patience.tries:
                raise InputError(_given_up(url, path, f"{fault} ({patience.tries} tries)")) from None
            time.sleep(min(patience.pause * 2 ** (attempt - 1), max(until - time.monotonic(), 0)))
        else:
            return


def _given_up(url: str, path: Path, why: str) -> str:
    kept = 0 if _known_part(path) is None else _size(path)
    rest = f"{kept:,} bytes are kept, the same command goes on from there" if kept else "try again later"
    return f"{url}: {why}; {rest}, or use a mirror (--base-url)"


def _size(path: Path) -> int:
    return partial_path(path).lstat().st_size


def _already_there(url: str, path: Path, sha256: str | None) -> Download:
    digest = sha256_file(path)
    if sha256 is not None and digest != sha256:
        raise InputError(
            f"{path}: is there already with SHA-256 {digest}, expected is {sha256}: it is damaged, filtered or another "
            "version; move it away and try again"
        )
    return Download(path, url, path.stat().st_size, 0, digest, sha256 is not None, present=True)


def _throw_away(path: Path) -> None:
    partial_path(path).unlink(missing_ok=True)
    _validator_path(path).unlink(missing_ok=True)


def _finish(url: str, path: Path, sha256: str | None, check: Check | None, resumed_from: int) -> Download:
    """Check the whole part and give it its name."""
    part = partial_path(path)
    digest = sha256_file(part)
    if sha256 is not None and digest != sha256:
        _throw_away(path)
        raise InputError(
            f"{url}: SHA-256 is {digest}, expected {sha256}: the transfer was damaged, or the server has another "
            "version than this project was tested with; what came was removed, try again or use a mirror (--base-url)"
        )
    if check is not None:
        try:
            check(part)
        except PolicyfactoryError as error:
            _throw_away(path)
            raise InputError(f"{url}: what the server sent is not what it should be: {error}; it was removed") from None
    size = part.stat().st_size
    try:
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise OutputError(_unwritable(path, error)) from None
    _validator_path(path).unlink(missing_ok=True)
    return Download(path, url, size, resumed_from, digest, sha256 is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """Of what ``NAME.partial`` is the beginning: the address that sent it, its version there, its whole size."""

    address: str
    validator: str
    total: int | None


def _known_part(path: Path) -> _Part | None:
    """Return what the part is, or None if there is none that can be gone on with."""
    part = partial_path(path)
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError, PolicyfactoryError):
        known = _Part(**json.loads(read_bytes(_validator_path(path), limit=1 << 14, own=True)))
        check_address(known.address)
        identified = _STRONG_TAG.fullmatch(known.validator) or _DATE.fullmatch(known.validator)
        whole = known.total is None or (type(known.total) is int and 0 < _size(path) <= known.total)
        if identified and whole and part.is_file() and not part.is_symlink() and _size(path) > 0:
            return known
    return None


def _fetch(url: str, path: Path, limits: Limits, progress: Progress | None) -> None:
    """Bring the part up to the whole file, in one request.

    Raises
    ------
    PassingFaultError
        If it may work the next time.
    OutOfTimeError
        If there is no time left.
    InputError
        If it will not work.
    """
    known = _known_part(path)
    have = 0 if known is None else _size(path)
    if known is not None and have == known.total:
        return

    def headers(address: str) -> dict[str, str]:
        common = {"User-Agent": f"policyfactory/{__version__}", "Accept-Encoding": "identity"}
        if known is None or address != known.address:
            return common
        return common | {"Range": f"bytes={have}-", "If-Range": known.validator}

    try:
        with open_address(url, limits, limits.largest, headers) as (address, answer):
            asked = known if known is not None and address == known.address else None
            _receive(answer, path, (address, limits.largest), have, asked, progress)
    except urllib.error.HTTPError as error:
        _refused(error, url, path)


def _refused(error: urllib.error.HTTPError, url: str, path: Path) -> None:
    """Turn the server's answer into what to do."""
    reason = f"{error.code} {printable(str(error.reason))}"
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        _throw_away(path)
        raise PassingFaultError("the server's file is not longer than what was here")
    if error.code in _PASSING:
        raise PassingFaultError(f"the server answered {reason}")
    if error.code == http.HTTPStatus.NOT_FOUND:
        raise InputError(
            f"{url}: the server has no such file (404); it may have moved: see its pages, or use --base-url"
        )
    raise InputError(f"{url}: the server answered {reason}; try a mirror with --base-url")


def _receive(
    answer: HTTPResponse, path: Path, sent: tuple[str, int], have: int, known: _Part | None, progress: Progress | None
) -> None:
    """Write what an address sends, at most so many bytes, behind the part, or in its place if it is the beginning."""
    (address, largest), length = sent, _length(answer, sent[0])
    if answer.status == http.HTTPStatus.PARTIAL_CONTENT:
        start, total = have, _rest(answer, path, have, known)
    elif answer.status == http.HTTPStatus.OK:
        start, total = 0, length
    else:
        raise InputError(f"{address}: the server answered {answer.status}, which is no file; try a mirror (--base-url)")
    _check_size(total or 0, largest, path)
    if start == 0:
        # The part goes before the record of the next one is there: they could not be told apart after a kill.
        _throw_away(path)
        atomic_write(_validator_path(path), dump_json(dataclasses.asdict(_Part(address, _validator(answer), total))))
    try:
        part = os.open(partial_path(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise OutputError(_unwritable(path, error)) from None
    try:
        while block := answer.read1(_BLOCK):
            start += len(block)
            _check_size(start, largest, path)
            _append(part, block, path)
            if progress is not None:
                progress(start, total)
        with contextlib.suppress(OSError):  # a disk that cannot be waited for
            os.fsync(part)
    finally:
        os.close(part)
    if start == 0 or (total is not None and start > total):
        # A server that breaks off in the headers seems to have an empty file.
        _throw_away(path)
        raise PassingFaultError(f"the server sent {start:,} bytes, expected {'some' if total is None else total}")
    if total is not None and start < total:
        raise PassingFaultError(f"the connection ended after {start:,} of {total:,} bytes")


def _length(answer: HTTPResponse, address: str) -> int | None:
    """Return how many bytes the answer has, None if it does not say."""
    coding = answer.headers.get("Transfer-Encoding")
    said = answer.headers.get_all("Content-Length") or []
    if coding is None and not said:
        return None
    if coding is None and len(set(said)) == 1 and _LENGTH.fullmatch(said[0]):
        return int(said[0])
    if coding is not None and coding.lower() == "chunked":
        return None
    name, value = ("Content-Length", ", ".join(said)) if coding is None else ("Transfer-Encoding", coding)
    raise InputError(f"{address}: the answer is malformed: {name} is {printable(ascii(value), 60)}; try a mirror")


def _rest(answer: HTTPResponse, path: Path, have: int, known: _Part | None) -> int | None:
    """Return how large the whole is whose rest the server sends.

    Raises
    ------
    PassingFaultError
        If it is not the rest that was asked for; the part is removed then.
    """
    sent = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if sent is not None and known is not None:
        first, last = int(sent[1]), int(sent[2])
        total = known.total if sent[3] == "*" else int(sent[3])
        version = answer.headers.get("ETag" if known.validator.startswith('"') else "Last-Modified")
        same = version in {None, known.validator} and known.total in {None, total}
        if same and first == have <= last and answer.length in {None, last - first + 1}:
            return total
    _throw_away(path)
    raise PassingFaultError("the server sent another part than was asked for")


def _validator(answer: HTTPResponse) -> str:
    """Return what identifies the server's version of the file. A weak ETag does not promise equal bytes."""
    tag, date = answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", "")
    return tag if _STRONG_TAG.fullmatch(tag) else date if _DATE.fullmatch(date) else ""


def _append(part: int, block: bytes, path: Path) -> None:
    try:
        while block:
            block = block[os.write(part, block) :]
    except OSError as error:
        raise OutputError(_unwritable(path, error)) from None


def _unwritable(path: Path, error: OSError) -> str:
    return f"{partial_path(path)}: cannot be written: {error.strerror}; free some space or choose another folder"


def _check_size(size: int, largest: int, path: Path) -> None:
    if size > largest:
        raise InputError(f"{path}: more than {largest:,} bytes are sent; no log is that large")
