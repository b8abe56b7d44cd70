"""Downloading a file that can be interrupted: what has come is kept, and the next call asks for the rest.

The part lies beside the target as ``NAME.partial``, with what identifies the server's version of the file (ETag or
date) in ``NAME.partial.json``; if the server has another version by now, or cannot send a part, the file is
sent from its beginning. The target appears only when it is whole and has the expected digest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import dump_json, sha256_file
from policyfactory.core.errors import InputError, OutputError, PolicyfactoryError, UsageError
from policyfactory.core.locks import exclusive
from policyfactory.core.together import atomic_write
from policyfactory.core.version import __version__

__all__ = ["Download", "Patience", "download", "partial_path"]

_BLOCK = 1 << 16
_LARGEST = 4 << 30
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
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
    """

    tries: int = 4
    timeout: float = 30.0
    pause: float = 1.0


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


def partial_path(path: Path) -> Path:
    """Return where the part of ``path`` lies while it is downloaded."""
    return path.with_name(f"{path.name}.partial")


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
        If the address is none of http or https.
    InputError
        If the server has no such file or cannot be reached, or the file is not the expected one.
    OutputError
        If the file cannot be written, or another run is writing it.
    """
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise UsageError(f"{url}: only http and https addresses are downloaded from; give another --base-url")
    with exclusive(path):
        if path.exists():
            return _already_there(url, path, sha256)
        resumed_from = partial_path(path).stat().st_size if partial_path(path).exists() else 0
        _fetch_patiently(url, path, patience or Patience(), progress)
        return _finish(url, path, sha256, check, resumed_from)


def _fetch_patiently(url: str, path: Path, patience: Patience, progress: Progress | None) -> None:
    for attempt in range(1, patience.tries + 1):
        try:
            _fetch(url, path, patience.timeout, progress)
        except _PassingFaultError as fault:
            if attempt == patience.tries:
                raise InputError(_given_up(url, path, fault, patience.tries)) from None
            time.sleep(patience.pause * 2 ** (attempt - 1))
        else:
            return


class _PassingFaultError(Exception):
    """The connection failed in a way that may be over the next time."""


def _given_up(url: str, path: Path, fault: Exception, tries: int) -> str:
    kept = partial_path(path).stat().st_size if partial_path(path).exists() else 0
    rest = f"{kept:,} bytes are kept, the same command goes on from there" if kept else "try again later"
    return f"{url}: {fault} ({tries} tries); {rest}, or use a mirror (--base-url)"


def _already_there(url: str, path: Path, sha256: str | None) -> Download:
    digest = sha256_file(path)
    if sha256 is not None and digest != sha256:
        raise InputError(
            f"{path}: is there already with SHA-256 {digest}, expected is {sha256}: it is damaged, filtered or another "
            "version; move it away and try again"
        )
    return Download(path, url, path.stat().st_size, 0, digest, sha256 is not None, present=True)


def _throw_away(path: Path) -> None:
    partial_path(path).unlink()
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
    part.replace(path)
    _validator_path(path).unlink(missing_ok=True)
    return Download(path, url, size, resumed_from, digest, sha256 is not None)


def _fetch(url: str, path: Path, timeout: float, progress: Progress | None) -> None:
    """Bring the part up to the whole file, in one request.

    Raises
    ------
    _PassingFaultError
        If it may work the next time.
    InputError
        If it will not.
    """
    part = partial_path(path)
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"policyfactory/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        validator = _known_validator(path, url)
        if validator:
            headers["If-Range"] = validator
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 (the scheme was checked)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310 (the scheme was checked)
            _receive(answer, path, url, have, progress)
    except urllib.error.HTTPError as error:
        error.close()
        _refused(error, url, path, have)
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise _PassingFaultError(f"the connection failed ({getattr(error, 'reason', None) or error})") from None


def _refused(error: urllib.error.HTTPError, url: str, path: Path, have: int) -> None:
    """Turn the server's answer into what to do."""
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        # The part is the whole file already, or longer than the server's: begin again.
        if error.headers.get("Content-Range") != f"bytes */{have}":
            partial_path(path).unlink()
            raise _PassingFaultError("the server's file is shorter than what is here")
        return
    if error.code in _PASSING:
        raise _PassingFaultError(f"the server answered {error.code} {error.reason}")
    if error.code == http.HTTPStatus.NOT_FOUND:
        raise InputError(
            f"{url}: the server has no such file (404); it may have moved: see its pages, or use --base-url"
        )
    raise InputError(f"{url}: the server answered {error.code} {error.reason}; try a mirror with --base-url")


def _known_validator(path: Path, url: str) -> str | None:
    """Return what identifies the version whose part is here."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        known = json.loads(_validator_path(path).read_text())
        value = known.get("validator")
        if known.get("url") == url and isinstance(value, str) and re.fullmatch(r"[ -~]{1,200}", value):
            return value
    return None


def _receive(answer: Any, path: Path, url: str, have: int, progress: Progress | None) -> None:
    """Write what the server sends behind the part, or over it if the server begins at the beginning."""
    if urllib.parse.urlsplit(answer.url).scheme not in {"http", "https"}:
        raise InputError(f"{url}: the server points to {answer.url}, which is neither http nor https")
    part = partial_path(path)
    start = _start_of(answer, have)
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length is not None and length.isdigit() else None
    _check_size(total or 0, path)
    # A weak ETag does not promise equal bytes.
    tag = answer.headers.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
    if start == 0:
        atomic_write(_validator_path(path), dump_json({"url": url, "validator": validator}))
    try:
        with part.open("ab" if start else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                start += len(block)
                _check_size(start, path)
                if progress is not None:
                    progress(start, total)
    except OSError as error:
        if isinstance(error, TimeoutError | ConnectionError):
            raise
        raise OutputError(
            f"{part}: cannot be written: {error.strerror}; free some space or choose another folder"
        ) from None
    if total is not None and start < total:
        raise _PassingFaultError(f"the connection ended after {start:,} of {total:,} bytes")


def _start_of(answer: Any, have: int) -> int:
    """Return at which byte the answer begins.

    Raises
    ------
    _PassingFaultError
        If it begins somewhere else than asked for.
    """
    if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    sent = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if not sent or int(sent.group(1)) != have:
        raise _PassingFaultError("the server sent another part than was asked for")
    return have


def _check_size(size: int, path: Path) -> None:
    if size > _LARGEST:
        raise InputError(f"{path}: more than {_LARGEST:,} bytes are sent; no log is that large")
