"""One request for a file by HTTP: which addresses and redirects are followed, and how long a server may take.

The standard library's client reads what the server sends through `_Watched`, which ends a transfer that is too slow or
takes too long wherever it is: within a header that never ends as well as in the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import io
import ipaddress
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policyfactory.core.errors import InputError, UsageError
from policyfactory.workload.header import printable

__all__ = ["Limits", "OutOfTimeError", "PassingFaultError", "check_address", "open_address"]

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
class Limits:
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

    def __init__(self, sock: socket.socket, limits: Limits) -> None:
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
    def __init__(self, sock: socket.socket, *args: Any, limits: Limits, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Watched(sock, limits))


def _opener(limits: Limits) -> urllib.request.OpenerDirector:
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
    address: str, limits: Limits, largest: int, headers: Callable[[str], Mapping[str, str]]
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
    address: str, limits: Limits, headers: Callable[[str], Mapping[str, str]]
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
