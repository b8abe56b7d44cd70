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
import http.client
import json
import math
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from policyfactory.core.errors import InputError, OutputError, PolicyfactoryError, UsageError
from policyfactory.core.files import atomic_write, exclusive, sync_folder
from policyfactory.core.inputs import read_bytes, sha256_file
from policyfactory.core.journal import partial_path
from policyfactory.core.text import did_you_mean
from policyfactory.core.version import __version__
from policyfactory.workload.header import ARCHIVE_URL, printable

_BLOCK = 1 << 16
_MOST = {True: 100, False: 1_000_000}  # tries; seconds, bytes a second
_LARGEST = 1 << 30  # bytes; what is read of a log
_MOST_REDIRECTIONS = 10
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
# A strong ETag, or a date: a weak ETag does not promise equal bytes.
_VALIDATOR = re.compile(r'"[!#-~]{1,200}"|[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT', re.ASCII)
# The server or the way to it had a bad moment: worth another try.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
# A backslash is a slash for some programs and none for others.
_ADDRESS = re.compile(
    rf"(?i:https?)://(?:(?=[^/?:]{{1,253}}(?:[/?:]|\Z))(?:{_LABEL}\.)*{_LABEL}\.?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>\d{1,5}))?(?:[/?][!-\[\]-~]*)?",
    re.ASCII,
)
_LONGEST_ADDRESS = 2_000

Progress = Callable[[int, int | None], None]
Check = Callable[[Path], None]


class _PassingFaultError(Exception):
    """The connection failed in a way that may be over the next time."""


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
        An attempt fails that brings fewer than so many bytes of the file a second over so many seconds.
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
    patience = patience or Patience()
    with exclusive(path):
        if path.exists():
            digest = sha256_file(path)
            if sha256 not in {None, digest}:
                raise InputError(
                    f"{path}: is there already with SHA-256 {digest}, expected is {sha256}: it is damaged, filtered or "
                    "another version; move it away and try again"
                )
            return Download(path, url, path.stat().st_size, 0, digest, sha256 is not None, present=True)
        resumed_from = _known_part(path)[0]
        # Whole where a call was killed between the last byte and the new name.
        if not (sha256 and resumed_from and sha256_file(partial_path(path)) == sha256):
            _fetch_patiently(url, path, patience, progress)
        return _finish(url, path, sha256, check, resumed_from)


def _fetch_patiently(url: str, path: Path, patience: Patience, progress: Progress | None) -> None:
    until = time.monotonic() + patience.max_time
    for attempt in range(1, patience.tries + 1):
        try:
            _fetch(url, path, _Watch(patience, until), progress)
            break
        except _PassingFaultError as fault:
            late = time.monotonic() >= until
            if late or attempt == patience.tries:
                why = f"took longer than {patience.max_time:g} s (--max-time)"
                raise InputError(_given_up(url, path, why if late else f"{fault} ({attempt} tries)")) from None
            time.sleep(min(patience.pause * 2 ** (attempt - 1), max(until - time.monotonic(), 0)))


def _given_up(url: str, path: Path, why: str) -> str:
    kept = _known_part(path)[0]
    rest = f"{kept:,} bytes are kept, the same command goes on from there" if kept else "try again later"
    return f"{url}: {why}; {rest}, or use a mirror (--base-url)"


def _finish(url: str, path: Path, sha256: str | None, check: Check | None, resumed_from: int) -> Download:
    """Check the whole part and give it its name."""
    part = partial_path(path)
    digest = sha256_file(part)
    if sha256 not in {None, digest}:
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
    with _writing(path):
        part.replace(path)
        sync_folder(path.parent)
    _throw_away(path)
    return Download(path, url, size, resumed_from, digest, sha256 is not None)


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial.json")


def _throw_away(path: Path) -> None:
    partial_path(path).unlink(missing_ok=True)
    _record_path(path).unlink(missing_ok=True)


def _known_part(path: Path) -> tuple[int, str, str]:
    """Return how many bytes are kept, the address that sent them, and what identifies the version it sent.

    Without bytes that can be gone on with, it is 0 and two empty texts.
    """
    part = partial_path(path)
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError, PolicyfactoryError):
        address, validator = json.loads(read_bytes(_record_path(path), limit=1 << 14, replaceable=True))
        if _VALIDATOR.fullmatch(validator) and part.is_file() and not part.is_symlink():
            return part.stat().st_size, address, validator
    return 0, "", ""


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cure = "free some space or choose another folder"
        raise OutputError(f"{partial_path(path)}: cannot be written: {error.strerror}; {cure}") from None


# One request for a file by HTTP ---------------------------------------------------------------------------------------


_LOOK = 0.1  # s; a span that begins anew is noticed so late


class _Watch(threading.Thread):
    """Ends a connection that takes too long or brings too few bytes of the file, within a header as well."""

    def __init__(self, patience: Patience, until: float) -> None:
        super().__init__(daemon=True)
        self.patience, self.received, self.reason = patience, 0, ""
        self._until, self._done = until, threading.Event()
        # Nothing is expected before there is a connection.
        self._before, self._judged = 0, math.inf
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()
        self.attach(None)

    def run(self) -> None:
        span, least = self.patience.speed_time, self.patience.speed_limit
        while not self._done.wait(max(min(_LOOK, self._judged - time.monotonic(), self._until - time.monotonic()), 0)):
            now = time.monotonic()
            late = now >= self._until
            if not late and now < self._judged:
                continue
            if late or self.received - self._before < least * span:
                slow = f"fewer than {least:,g} bytes a second came for {span:g} s (--speed-limit, --speed-time)"
                self.reason = "it took too long" if late else slow
                self._end()
                return
            self.restart()

    def restart(self) -> None:
        """Begin to count the bytes of a span of time."""
        self._before, self._judged = self.received, time.monotonic() + self.patience.speed_time

    def attach(self, connection: socket.socket | None) -> None:
        """Watch a connection in place of the one before."""
        if self._socket is not None:
            self._socket.close()
        # A socket of our own: that of the connection is taken over by TLS.
        self._socket = None if connection is None else connection.dup()
        self.restart()
        if self.reason and connection is not None:
            raise TimeoutError(self.reason)  # to the client the end of a tunnel's header looks like its last line

    def _end(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def timeout(self) -> float:
        """Seconds without a byte after which the attempt fails."""
        return min(self.patience.timeout, max(self._until - time.monotonic(), 0.01))


def _fetch(url: str, path: Path, watch: _Watch, progress: Progress | None) -> None:
    """Bring the part up to the whole file, in one request.

    Raises
    ------
    _PassingFaultError
        If it may work the next time.
    InputError
        If it will not.
    """
    try:
        with watch, _follow(url, path, watch) as answer:
            _receive(answer, path, watch, progress)
    except urllib.error.HTTPError as error:
        error.close()
        reason = f"{error.code} {printable(str(error.reason))}"
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if error.headers.get("Content-Range") == f"bytes */{_known_part(path)[0]}":
                return  # it is whole already
            _throw_away(path)
            raise _PassingFaultError("the server's file is not longer than what was here") from None
        if error.code in _PASSING:
            raise _PassingFaultError(f"the server answered {reason}") from None
        if error.code == HTTPStatus.NOT_FOUND:
            cure = "it may have moved: see its pages, or use --base-url"
            raise InputError(f"{url}: the server has no such file (404); {cure}") from None
        raise InputError(f"{url}: the server answered {reason}; try a mirror with --base-url") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError: the client's parser, and proxies of the environment that are no addresses.
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = printable(str(cause), 200)
            raise InputError(f"{url}: the server's certificate is not trusted: {why}") from None
        why = watch.reason or f"the connection failed ({printable(str(cause) or type(cause).__name__)})"
        if watch.reason or isinstance(error, OSError | http.client.IncompleteRead):
            raise _PassingFaultError(why) from None
        why = printable(ascii(str(error))[1:-1] or type(error).__name__)
        raise InputError(f"{url}: the answer (or a proxy of the environment) is malformed: {why}; try again") from None


def _follow(url: str, path: Path, watch: _Watch) -> http.client.HTTPResponse:
    """Return the answer to a request for the file, or for its rest at the address that sent the beginning."""
    opener, address = _opener(watch), url
    have, sender, validator = _known_part(path)
    for _ in range(_MOST_REDIRECTIONS + 1):
        headers = {"User-Agent": f"policyfactory/{__version__}", "Accept-Encoding": "identity"}
        if have and address == sender:
            headers |= {"Range": f"bytes={have}-", "If-Range": validator}
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 (the scheme was checked)
        try:
            answer: http.client.HTTPResponse = opener.open(request, timeout=watch.timeout)
        except urllib.error.HTTPError as error:
            target = error.headers.get("Location")
            if error.code not in _REDIRECTIONS or target is None:
                raise
            error.close()
            address = _redirected(address, target)
        else:
            return answer
    raise InputError(f"{url}: the server redirects more than {_MOST_REDIRECTIONS} times; try a mirror (--base-url)")


def _opener(watch: _Watch) -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone, through the proxies of the environment, that follows no redirect."""

    class Answer(http.client.HTTPResponse):
        """Watched from its beginning, that of a proxy to the request for a tunnel as well."""

        def __init__(self, connection: socket.socket, *args: Any, **kwargs: Any) -> None:
            if not isinstance(connection, ssl.SSLSocket):
                watch.attach(connection)
            super().__init__(connection, *args, **kwargs)

    class Plain(http.client.HTTPConnection):
        response_class = Answer

        def connect(self) -> None:
            super().connect()
            watch.attach(self.sock)

    class Secure(http.client.HTTPSConnection, Plain):
        """Its own connect begins with that of `Plain`, so that the handshake is watched too."""

    class Handler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Plain, request)

        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Secure, request, context=ssl.create_default_context())

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Handler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _receive(answer: http.client.HTTPResponse, path: Path, watch: _Watch, progress: Progress | None) -> None:
    """Write what an address sends behind the part, or in its place if it is the beginning."""
    have, address = _known_part(path)[0], answer.geturl()
    lengths = set(answer.headers.get_all("Content-Length", []))
    coding = answer.headers.get("Transfer-Encoding", "chunked")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)) or coding.lower() != "chunked":
        what = printable(ascii(f"Content-Length {', '.join(sorted(lengths))}, Transfer-Encoding {coding}"), 100)
        raise InputError(f"{address}: the answer is malformed: {what}; try a mirror")
    if answer.status == HTTPStatus.PARTIAL_CONTENT:
        size, total = have, _rest(answer, path)
    elif answer.status == HTTPStatus.OK:
        size, total = 0, answer.length
        # The part goes before the record of the next one is there: they could not be told apart after a kill.
        _throw_away(path)
        tag, date = answer.headers.get("ETag", ""), answer.headers.get("Last-Modified", "")
        validator = next((text for text in (tag, date) if _VALIDATOR.fullmatch(text)), "")
        atomic_write(_record_path(path), json.dumps([address, validator]))
    else:
        raise InputError(f"{address}: the server answered {answer.status}, which is no file; try a mirror (--base-url)")
    largest = watch.patience.largest or _LARGEST
    _check_size(total or 0, largest, path)
    with _writing(path):
        file = partial_path(path).open("ab")
    watch.restart()
    with file:
        while block := answer.read1(_BLOCK):
            size += len(block)
            watch.received += len(block)
            _check_size(size, largest, path)
            with _writing(path):
                file.write(block)
                file.flush()
            if progress is not None:
                progress(size, total)
        with contextlib.suppress(OSError):  # a disk that cannot be waited for
            os.fsync(file.fileno())
    if watch.reason:
        raise _PassingFaultError(watch.reason)
    if size == 0 or (total is not None and size > total):
        # A server that breaks off in the headers seems to have an empty file.
        _throw_away(path)
        raise _PassingFaultError(f"the server sent {size:,} bytes, expected {'some' if total is None else total}")
    if total is not None and size < total:
        raise _PassingFaultError(f"the connection ended after {size:,} of {total:,} bytes")


def _rest(answer: http.client.HTTPResponse, path: Path) -> int | None:
    """Return how large the whole is whose rest the server sends.

    Raises
    ------
    _PassingFaultError
        If it is not the rest that was asked for; the part is removed then.
    """
    have, _, validator = _known_part(path)
    sent = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    version = answer.headers.get("ETag" if validator.startswith('"') else "Last-Modified", validator)
    if have and sent is not None and version == validator:
        first, last = int(sent[1]), int(sent[2])
        if first == have <= last and answer.length in {None, last - first + 1}:
            return None if sent[3] == "*" else int(sent[3])
    _throw_away(path)
    raise _PassingFaultError("the server sent another part than was asked for")


def _check_size(size: int, largest: int, path: Path) -> None:
    if size > largest:
        raise InputError(f"{path}: more than {largest:,} bytes are sent; no log is that large: check the address")


def check_address(address: str) -> str:
    """Return the address if a request can be sent there.

    Raises
    ------
    UsageError
        If it is none of http or https, has a name or password in it, or is malformed; it is shown without them.
    """
    match = _ADDRESS.fullmatch(address)
    if match is not None and len(address) <= _LONGEST_ADDRESS and 0 < int(match["port"] or 80) < 1 << 16:
        return address
    # Wherever a malformed address has a name and password: nothing before the last @ is shown.
    hidden, mark, rest = address.rpartition("@")
    scheme = hidden.partition(":")[0]
    shown = f"{f'{scheme}://' if scheme in {'http', 'https'} else ''}***@{rest}" if mark else address
    raise UsageError(
        f"{printable(shown, 200)!r}: only http and https addresses are downloaded from, without names and passwords, "
        f"of at most {_LONGEST_ADDRESS:,} printable ASCII characters (https://host.example.org:8080/logs, "
        "http://[::1]/logs; write %20 for a blank, and a host's name as xn--...)"
    )


def _redirected(here: str, target: str) -> str:
    """Return where a redirect leads."""
    # Servers forget to quote blanks and letters.
    target = urllib.parse.quote(target, safe="!#$%&'()*+,/:;=?@[]~", encoding="iso-8859-1")
    try:
        there = check_address(urllib.parse.urljoin(here, target))
    except (UsageError, ValueError) as error:
        raise InputError(f"{here}: the server redirects to what is no address: {error}; use a mirror") from None
    if here.startswith("https:") and not there.startswith("https:"):
        raise InputError(f"{here}: the server redirects from https to {there}, which is not encrypted; use a mirror")
    return there


# The logs of the Parallel Workloads Archive by name (https://www.cs.huji.ac.il/labs/parallel/workload/) ---------------

# ``archive.csv`` has the names, folders and versions of the archive's list of logs. A SHA-256 is pinned for the files
# that this project was tested with, as they were when it was tested; for the others the digest is printed and written
# down when they are downloaded. Whoever uses a log cites the archive (Feitelson, Tsafrir and Krakov, Experience with
# using the Parallel Workloads Archive, JPDC 74, 2014) and the site that gave it.


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
    hint = did_you_mean(wanted, names, 3, cutoff=0.5)
    raise UsageError(
        f"no log is called {name!r}; {hint}policyfactory workload download --list prints all {len(KNOWN_LOGS)}"
    )
