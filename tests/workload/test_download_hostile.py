"""Downloads from servers that answer nonsense, without end or too slowly, and addresses that are none.

Always one sentence with the address, never a name or password of it, in no more time than the limits say.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from naive.serving import Server, serving
from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.journal import partial_path
from policyfactory.workload.swf.download import Download, Patience, download
from refusals import refusal, refused

OK = b"HTTP/1.1 200 OK\r\n"
END = b"\r\n\r\n"
Conversation = Callable[[socket.socket], None]


@contextmanager
def answering(conversation: Conversation) -> Iterator[str]:
    """Answer every connection on a free port of this machine with ``conversation``; give the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client = listener.accept()[0]
                    with client, suppress(OSError):
                        client.settimeout(5)
                        client.recv(1 << 16)
                        conversation(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/a.swf.gz"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive()


def saying(text: bytes) -> Conversation:
    return lambda client: client.sendall(text)


def for_ever(begin: bytes, more: bytes, pause: float = 0.0) -> Conversation:
    """Say ``more`` again and again, until nobody listens."""

    def talk(client: socket.socket) -> None:
        client.sendall(begin)
        while True:
            time.sleep(pause)
            client.sendall(more)

    return talk


def fetch(address: str, tmp_path: Path, **patience: float) -> Download:
    options = {"timeout": 2.0, "pause": 0.0, "max_time": 20.0, **patience}
    return download(address, tmp_path / "a.swf.gz", patience=Patience(2, **options))


HOSTILE: dict[str, tuple[Conversation, str]] = {
    "nothing": (saying(b""), "a.swf.gz connection failed"),
    "no status line": (saying(b"\x00\xff\x1b[31m\r\n" * 20), "a.swf.gz malformed"),
    "another protocol": (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), "a.swf.gz malformed"),
    "status is text": (saying(b"HTTP/1.1 abc OK" + END), "a.swf.gz malformed"),
    "status is negative": (saying(b"HTTP/1.1 -200 OK" + END), "a.swf.gz malformed"),
    "status is huge": (saying(b"HTTP/1.1 99999999999999999999 OK" + END), "a.swf.gz malformed"),
    "HTTP 9": (saying(b"HTTP/9.9 200 OK" + END), "a.swf.gz malformed"),
    "status line too long": (saying(b"HTTP/1.1 200 " + b"a" * 70_000 + END), "a.swf.gz malformed"),
    "header line too long": (saying(OK + b"A: " + b"a" * 70_000 + END), "a.swf.gz malformed"),
    "headers too many": (saying(OK + b"A: a\r\n" * 101 + b"\r\n"), "a.swf.gz malformed"),
    "headers without end": (for_ever(OK, b"A: a\r\n" * 1000), "a.swf.gz malformed"),
    "continue without end": (for_ever(b"", b"HTTP/1.1 100 Continue" + END), "a.swf.gz 1,000 second"),
    "headers cut": (saying(OK + b"Content-Le"), "a.swf.gz sent 0"),
    "length is negative": (saying(OK + b"Content-Length: -5" + END + b"hello"), "a.swf.gz -5 Content-Length"),
    "length is text": (saying(OK + b"Content-Length: five" + END + b"hello"), "a.swf.gz malformed Content-Length"),
    "length is signed": (saying(OK + b"Content-Length: +5" + END + b"hello"), "a.swf.gz malformed"),
    "length has a line in it": (saying(OK + b"Content-Length: 1_0" + END + b"hello"), "a.swf.gz malformed"),
    "length is Arabic": (saying(OK + b"Content-Length: \xd9\xa5" + END + b"hello"), "a.swf.gz malformed"),
    "length is empty": (saying(OK + b"Content-Length:" + END + b"hello"), "a.swf.gz malformed"),
    "length has 5000 digits": (saying(OK + b"Content-Length: " + b"9" * 5000 + END), "a.swf.gz malformed"),
    "two lengths": (
        saying(OK + b"Content-Length: 5\r\nContent-Length: 6" + END + b"hello"),
        "a.swf.gz 6",
    ),
    "length is huge": (saying(OK + b"Content-Length: 999999999999999999" + END), "a.swf.gz log large 1,048,576"),
    "length is not reached": (saying(OK + b"Content-Length: 9" + END + b"hello"), "a.swf.gz 5 9"),
    "chunk is negative": (for_ever(OK + b"Transfer-Encoding: chunked" + END + b"-1\r\n", b"a" * 65536), "a.swf.gz"),
    "chunk is text": (saying(OK + b"Transfer-Encoding: chunked" + END + b"five\r\nhello\r\n"), "a.swf.gz failed 0"),
    "chunk is huge": (
        saying(OK + b"Transfer-Encoding: chunked" + END + b"f" * 1000 + b"\r\nhello"),
        "a.swf.gz failed 0",
    ),
    "chunk is cut": (saying(OK + b"Transfer-Encoding: chunked" + END + b"9\r\nhello"), "a.swf.gz failed 0"),
    "chunk line too long": (saying(OK + b"Transfer-Encoding: chunked" + END + b"1" * 70_000), "a.swf.gz"),
    "chunks end in trailers without end": (
        for_ever(OK + b"Transfer-Encoding: chunked" + END + b"0\r\n", b"A: a\r\n" * 1000),
        "a.swf.gz 1,000 second",
    ),
    "another coding": (
        saying(OK + b"Transfer-Encoding: gzip, chunked" + END + b"0\r\n\r\n"),
        "a.swf.gz Transfer-Encoding gzip",
    ),
    "a part nobody asked for": (saying(b"HTTP/1.1 206 P\r\nContent-Range: bytes 5-9/10" + END + b"hello"), "a.swf.gz"),
    "no content": (saying(b"HTTP/1.1 204 No Content" + END), "a.swf.gz answered 204"),
    "a reason with an escape": (saying(b"HTTP/1.1 403 \x1b[31mred\x9b" + END), "a.swf.gz answered 403 31mred"),
    "never a word": (lambda client: client.recv(1), "a.swf.gz timed out 2"),
    "redirect to itself": (saying(b"HTTP/1.1 302 F\r\nLocation: /a.swf.gz" + END), "a.swf.gz 10 redirects"),
    "redirect to nowhere": (saying(b"HTTP/1.1 302 Found" + END), "a.swf.gz answered 302"),
    "redirect to a file": (
        saying(b"HTTP/1.1 302 F\r\nLocation: file:///etc/passwd" + END),
        "a.swf.gz http https 2,000",
    ),
    "redirect to ftp": (saying(b"HTTP/1.1 301 F\r\nLocation: ftp://127.0.0.1/a" + END), "a.swf.gz http https 2,000"),
    "redirect to half an address": (saying(b"HTTP/1.1 307 F\r\nLocation: http://[::1" + END), "a.swf.gz address"),
    "redirect to a port too high": (saying(b"HTTP/1.1 308 F\r\nLocation: http://a:70000/" + END), "a.swf.gz address"),
    "redirect with a password": (saying(b"HTTP/1.1 302 F\r\nLocation: http://me:secret@a/" + END), "a.swf.gz"),
    "redirect with control characters": (saying(b"HTTP/1.1 302 F\r\nLocation: \x1b]0;\x00\xff" + END), "a.swf.gz"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_server_is_answered_with_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policyfactory.workload.swf.download._LARGEST", 1 << 20)
    conversation, expected = HOSTILE[name]
    patience = {"never a word": {"timeout": 0.3}}.get(name, {"speed_time": 1.0})
    with answering(conversation) as address, refusal(InputError, expected) as caught:
        fetch(address, tmp_path, **patience)
    message = str(caught.value)
    assert address in message or str(tmp_path) in message
    assert message.isprintable()
    assert "secret" not in message
    assert len(message) < 1000
    assert not (tmp_path / "a.swf.gz").exists()


@pytest.mark.parametrize(
    "begin",
    [
        b"HTTP/1.1 200 OK\r\nA: ",
        OK + b"Content-Length: 100000" + END,
        OK + b"Transfer-Encoding: chunked" + END + b"100000\r\n",
        OK + b"Transfer-Encoding: chunked" + END + b"0\r\nA: ",
    ],
    ids=["header", "body", "chunk", "trailer"],
)
def test_a_server_that_drips_is_left(begin: bytes, tmp_path: Path) -> None:
    with answering(for_ever(begin, b"a", 0.01)) as address:
        refused(InputError, "a.swf.gz 50,000 0.2", fetch, address, tmp_path, speed_limit=50_000, speed_time=0.2)
        refused(InputError, "a.swf.gz 0.3 --max-time", fetch, address, tmp_path, max_time=0.3)


def test_a_proxy_that_drips_before_its_tunnel_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    # A connection that was ended is not given to TLS, which would lose it unclosed.
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", None)
    with answering(for_ever(b"HTTP/1.1 200 OK\r\n", b"A: a\r\n", 0.01)) as address:
        monkeypatch.setenv("https_proxy", address.rpartition("/")[0])
        refused(InputError, "https://example.invalid/a", fetch, "https://example.invalid/a", tmp_path, max_time=0.3)


def test_what_is_waited_for_an_answer_is_not_counted_as_slow(tmp_path: Path) -> None:
    def late(client: socket.socket) -> None:
        time.sleep(0.4)
        client.sendall(OK + b"Content-Length: 5" + END)
        time.sleep(0.4)
        client.sendall(b"hello")

    with answering(late) as address:
        assert fetch(address, tmp_path, speed_limit=1, speed_time=0.6).size == 5


def test_what_a_slow_server_sent_is_kept(tmp_path: Path) -> None:
    begin = OK + b'ETag: "a"\r\nContent-Length: 100000' + END + b"a" * 1000
    with answering(for_ever(begin, b"a", 0.01)) as address:
        refused(InputError, "a.swf.gz bytes command 0.3", fetch, address, tmp_path, max_time=0.3)
        assert partial_path(tmp_path / "a.swf.gz").stat().st_size >= 1000


def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from policyfactory.workload.swf import download as web

    refused(InputError, "y http://b/x redirects", web._redirected, "https://a/y", "http://b/x")
    assert web._redirected("http://a/y", "https://b/x y") == "https://b/x%20y"
    assert web._redirected("https://a/y/z", "../x") == "https://a/x"


def test_a_server_without_a_trusted_certificate_is_asked_once(tmp_path: Path) -> None:
    # Plain text where TLS is expected.
    with answering(saying(OK + END)) as address, refusal(InputError, "a.swf.gz connection failed 2"):
        fetch(address.replace("http:", "https:"), tmp_path)


ADDRESSES = [
    "",
    "http://",
    "http:///a",
    "http://[::1",
    "http://::1]/",
    "http://[::1]x/",
    "http://[g::1]/",
    "http://[v1.a]/",
    "http://a:70000/",
    "http://a:-1/",
    "http://a:0/",
    "http://a:port/",
    "http://a:٣/",
    "http://a b/",
    "http://a\n/",
    "http://a/\x00",
    "http://a/\x1b[31m",
    "http://a..b/",
    "http://.a/",
    "http://-a/",
    f"http://{'a' * 64}/",
    f"http://{'a.' * 130}b/",
    "http://bücher.example/",
    "http://xn--a-\u0661/",
    "http://a\\b/",
    "http:\\\\a/",
    "http://a%00b/",
    "http://*/",
    "ftp://a/",
    "file:///etc/passwd",
    "gopher://a/",
    "data:,a",
    "javascript:1",
    "//a/",
    "a",
    "http:a",
    f"http://a/{'b' * 3000}",
    "http://\ud800/",
    "http://me:secret@a/",
    "http://secret@a/",
    "http://me:sec/ret@a:b/secret@c",
    "http:\\\\me:secret@a/",
    "me:secret@a",
    "http://me:secret\x00@a/",
    "http://[me:secret@::1/",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_none_is_refused_with_a_sentence(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(address, tmp_path)
    message = str(caught.value)
    assert message.isascii() or "ü" in message or "٣" in message or "\u0661" in message
    assert message.isprintable()
    assert "sec" not in message
    assert "ret" not in message
    assert len(message) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_proxy_of_the_environment_that_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    for proxy in ("http://[::1", "ftp://a/", "::::", "http://a:b:c/", "socks5://127.0.0.1:9", "http://127.0.0.1:9"):
        monkeypatch.setenv("http_proxy", proxy)
        refused(InputError, "a http://example.invalid/a", fetch, "http://example.invalid/a", tmp_path)


def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(Server(b"content", path="http://example.invalid/a")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.partition("http://example")[0])
        assert fetch("http://example.invalid/a", tmp_path).size == 7
