"""Downloading a file that can be interrupted: what has come is kept, and the next call asks for the rest.

The part lies beside the target as ``NAME.partial``. ``NAME.partial.json`` says which address sent it and what
identifies the version there (strong ETag or date). The rest is only asked for at that address, and only of that version
(If-Range); in every other case the file is sent from its beginning. The target appears only when it is whole and has
the expected digest.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import difflib
import http
import http.client
import io
import ipaddress
import json
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.client import HTTPResponse
from importlib.resources import files
from pathlib import Path
from typing import Any

from policyfactory.core.errors import InputError, OutputError, PolicyfactoryError, UsageError
from policyfactory.core.files import atomic_write, dump_json, exclusive, sync_folder
from policyfactory.core.inputs import read_bytes, sha256_file
from policyfactory.core.journal import partial_path
from policyfactory.core.version import __version__
from policyfactory.workload.header import printable

__all__ = [
    "ARCHIVE_URL",
    "KNOWN_LOGS",
    "Download",
    "DownloadLimits",
    "KnownLog",
    "OutOfTimeError",
    "PassingFaultError",
    "Patience",
    "check_address",
    "download",
    "find_log",
    "open_address",
]

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
    limits = DownloadLimits(
        patience.timeout, until, patience.speed_limit, patience.speed_time, patience.largest or _LARGEST
    )
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


def _fetch(url: str, path: Path, limits: DownloadLimits, progress: Progress | None) -> None:
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


# One request for a file by HTTP ---------------------------------------------------------------------------------------

# Which addresses and redirects are followed, and how long a server may take.
#
# The standard library's client reads what the server sends through `_Watched`, which ends a transfer that is too slow
# or takes too long wherever it is: within a header that never ends as well as in the file.


_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTIONS = 10
_MOST_BEFORE = 300_000  # bytes of status lines and headers
# Printable ASCII; a backslash is a slash for some programs and none for others.
_ADDRESS = re.compile(r"(?!.*\\)[!-~]{1,2000}")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*{_LABEL}\.?")

_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+\](?::\d*)?")


class PassingFaultError(Exception):
    """The connection failed in a way that may be over the next time."""


class OutOfTimeError(Exception):
    """All tries together took too long."""


@dataclasses.dataclass(slots=True)
class DownloadLimits:
    """How long a transfer may take, and how slow it may be.

    Parameters
    ----------
    silence : float
        Seconds without a byte after which a try fails.
    until : float
        When everything has to be done, on the clock of `time.monotonic`.
    speed, span : float
        A try fails that brings fewer than ``speed`` bytes a second over ``span`` seconds.
    largest : int
        Bytes that a file may have.
    """

    silence: float
    until: float
    speed: float
    span: float
    largest: int = 1 << 30
    _since: float = 0.0
    _bytes: int = 0
    _room: int = 0

    def begin(self, room: int) -> None:
        """Count anew; ``room`` bytes may come."""
        self._since, self._bytes, self._room = time.monotonic(), 0, room

    def wait(self) -> float:
        """Return how many seconds may pass until the next bytes.

        Raises
        ------
        OutOfTimeError
            If none.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise OutOfTimeError
        return min(self.silence, left)

    def received(self, size: int) -> None:
        """Count bytes.

        Raises
        ------
        PassingFaultError
            If they come too slowly.
        http.client.HTTPException
            If they are too many.
        """
        self._bytes += size
        self._room -= size
        if self._room < 0:
            raise http.client.HTTPException("more is sent than an answer can have")
        now = time.monotonic()
        if now - self._since >= self.span:
            if self._bytes < self.speed * (now - self._since):
                raise PassingFaultError(
                    f"fewer than {self.speed:,g} bytes a second came for {self.span:g} s (--speed-limit, --speed-time)"
                )
            self._since, self._bytes = now, 0


class _Watched(io.RawIOBase):
    """What comes from a socket, as long as the limits allow."""

    def __init__(self, sock: socket.socket, limits: DownloadLimits) -> None:
        self._sock, self._limits = sock, limits
        # Keeps the socket open after the connection lets go of it.
        self._raw: Any = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._limits.wait())
        try:
            size: int = self._raw.readinto(buffer)
        except TimeoutError:
            self._limits.wait()
            raise
        self._limits.received(size)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, limits: DownloadLimits, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Watched(sock, limits))


def _opener(limits: DownloadLimits) -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone, through the proxies of the environment, that follows no redirect."""

    def connection(kind: Any, host: str, **options: Any) -> Any:
        made = kind(host, **options)
        made.response_class = partial(_Answer, limits=limits)
        return made

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(partial(connection, http.client.HTTPConnection), request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            context = ssl.create_default_context()
            return self.do_open(partial(connection, http.client.HTTPSConnection), request, context=context)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Http(),
        Https(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def check_address(address: str) -> str:
    """Return the address if a request can be sent there.

    Raises
    ------
    UsageError
        If it is none of http or https, has a name or password in it, or is malformed; it is shown without them.
    """
    if "@" in address:
        # Wherever a malformed address has them: nothing before the last @ is shown.
        scheme, _, rest = address.partition(":")
        shown = f"{scheme}://***@{rest.rpartition('@')[2]}" if scheme.isalpha() and rest.startswith("//") else "***"
    else:
        shown = address
    shown = printable(shown, 200)
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{shown!r}: an address is at most 2,000 printable ASCII characters without blanks and backslashes; write "
            "%20 for a blank, and a host's name as xn--..."
        )
    try:
        parts = urllib.parse.urlsplit(address)
        host, port, user = parts.hostname or "", parts.port, parts.username
    except ValueError:
        # Its words may hold a part of a password.
        raise UsageError(f"{shown}: has a malformed host or port (host.example.org:8080 or [::1]:8080)") from None
    if parts.scheme not in {"http", "https"}:
        raise UsageError(f"{shown}: only http and https addresses are downloaded from; give another --base-url")
    if user is not None:
        raise UsageError(f"{shown}: names and passwords in addresses are not taken; use a public --base-url")
    if not _is_host(host, parts.netloc) or port == 0:
        raise UsageError(f"{shown}: has no host or port that can be (host.example.org, port 1 to 65535)")
    return address


def _is_host(host: str, netloc: str) -> bool:
    if "[" in netloc:
        if not _BRACKETS.fullmatch(netloc):
            return False
        with contextlib.suppress(ValueError):
            return bool(ipaddress.IPv6Address(host))
        return False
    return _HOST.fullmatch(host) is not None


@contextlib.contextmanager
def open_address(
    address: str, limits: DownloadLimits, largest: int, headers: Callable[[str], Mapping[str, str]]
) -> Iterator[tuple[str, http.client.HTTPResponse]]:
    """Request a file, following redirects, and give the address that sends it with the answer.

    Parameters
    ----------
    address : str
        As `check_address` takes it.
    limits : Limits
        How long it may take.
    largest : int
        Bytes that the answer may have.
    headers : callable
        Gives the headers to send to an address.

    Raises
    ------
    PassingFaultError
        If the connection failed.
    OutOfTimeError
        If it took too long.
    InputError
        If the answer is malformed, or points to where no file is taken from.
    urllib.error.HTTPError
        If the server refuses; closed.
    """
    try:
        final, answer = _follow(address, limits, headers)
        # Twice: the lengths of small chunks take room.
        limits.begin(2 * largest + _MOST_BEFORE)
        with answer:
            yield final, answer
    except urllib.error.HTTPError as error:
        error.close()
        raise
    except ssl.SSLCertVerificationError as error:
        raise InputError(_untrusted(address, error)) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise InputError(_untrusted(address, error.reason)) from None
        raise PassingFaultError(f"the connection failed ({printable(str(error.reason))})") from None
    except (OSError, http.client.IncompleteRead) as error:
        raise PassingFaultError(f"the connection failed ({printable(str(error) or type(error).__name__)})") from None
    except (http.client.HTTPException, ValueError) as error:
        # ValueError: the client's parser, and proxies of the environment that are no addresses.
        reason = printable(ascii(str(error))[1:-1] or type(error).__name__)
        raise InputError(f"{address}: the answer (or a proxy of the environment) is malformed: {reason}") from None


def _follow(
    address: str, limits: DownloadLimits, headers: Callable[[str], Mapping[str, str]]
) -> tuple[str, http.client.HTTPResponse]:
    opener, here = _opener(limits), address
    for _ in range(_MOST_REDIRECTIONS + 1):
        limits.begin(_MOST_BEFORE)
        request = urllib.request.Request(here, headers=dict(headers(here)))  # noqa: S310 (the scheme was checked)
        try:
            return here, opener.open(request, timeout=limits.wait())
        except urllib.error.HTTPError as error:
            target = error.headers.get("Location")
            if error.code not in _REDIRECTIONS or target is None:
                raise
            error.close()
            here = _redirected(here, target)
    raise InputError(f"{address}: the server redirects more than {_MOST_REDIRECTIONS} times; try a mirror (--base-url)")


def _redirected(here: str, target: str) -> str:
    """Return where a redirect leads."""
    # Servers forget to quote blanks and letters.
    target = urllib.parse.quote(target, safe="!#$%&'()*+,/:;=?@[]~", encoding="iso-8859-1")
    try:
        there = check_address(urllib.parse.urljoin(here, target))
    except (UsageError, ValueError) as error:
        raise InputError(f"{here}: the server redirects to an address that is not followed: {error}") from None
    if here.startswith("https:") and not there.startswith("https:"):
        raise InputError(f"{here}: the server redirects from https to {there}, which is not encrypted; refused")
    return there


def _untrusted(address: str, error: ssl.SSLError) -> str:
    return f"{address}: the server's certificate is not trusted: {printable(str(error), 200)}"


# The logs of the Parallel Workloads Archive by name -------------------------------------------------------------------

# The logs of the Parallel Workloads Archive by name (https://www.cs.huji.ac.il/labs/parallel/workload/).
#
# ``archive.csv`` has the names, folders and versions of the archive's list of logs. A SHA-256 is pinned for the files
# that this project was tested with, as they were when it was tested; for the others the digest is printed and written
# down when they are downloaded. Whoever uses a log cites the archive (Feitelson, Tsafrir and Krakov, Experience with
# using the Parallel Workloads Archive, JPDC 74, 2014) and the site that gave it.


ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload/"


@dataclasses.dataclass(frozen=True, slots=True)
class KnownLog:
    """One file of the archive.

    Parameters
    ----------
    name : str
        Its name without ``.swf.gz``.
    folder : str
        The archive's folder of the machine.
    site : str
        Whose machine it was.
    short : str
        A name that is easier to type.
    sha256 : str or None
        Digest of the file that this project was tested with.
    """

    name: str
    folder: str
    site: str
    short: str = ""
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.swf.gz"

    @property
    def page(self) -> str:
        """The archive's page about the log: how it was made, what is known of it, whom to thank."""
        return f"{ARCHIVE_URL}{self.folder}/index.html"

    def url(self, base: str = ARCHIVE_URL) -> str:
        """Return where the file is, at the archive or at a mirror with the same folders."""
        return f"{base.rstrip('/')}/{self.folder}/{self.file}"


def _read_table() -> dict[str, KnownLog]:
    lines = files(__package__).joinpath("archive.csv").read_text(encoding="utf-8").splitlines()
    logs = (KnownLog(**{field: value for field, value in row.items() if value}) for row in csv.DictReader(lines))
    return {log.name: log for log in logs}


KNOWN_LOGS = _read_table()


def find_log(name: str) -> KnownLog:
    """Return the log called ``name``: its file's name with or without suffix, or its short name, in any case.

    Raises
    ------
    UsageError
        If none is called so, with those whose names are near.
    """
    wanted = name.casefold().removesuffix(".gz").removesuffix(".swf")
    names = {name: log for log in KNOWN_LOGS.values() for name in (log.name.casefold(), log.short)}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"near are {', '.join(names[n].name for n in near)}; " if near else ""
    raise UsageError(
        f"no log is called {name!r}; {hint}policyfactory workload download --list prints all {len(KNOWN_LOGS)}"
    )
