"""Downloads against a server of our own: whole, interrupted, resumed, changed meanwhile, wrong, missing."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from naive.serving import Server, serving
from policyfactory.core.errors import InputError, OutputError, UsageError
from policyfactory.core.files import exclusive
from policyfactory.core.journal import partial_path
from policyfactory.workload.header import ARCHIVE_URL
from policyfactory.workload.swf.download import KNOWN_LOGS, Download, Patience, download, find_log
from refusals import refusal, refused

CONTENT = random.Random(1).randbytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server(CONTENT)) as running:
        yield running


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "log.swf.gz"


def fetch(server: Server, target: Path, **options: Any) -> Download:
    patience = Patience(options.pop("tries", 4), timeout=5, pause=0.01)
    return download(server.url, target, patience=patience, **({"sha256": DIGEST} | options))


def a_part(server: Server, target: Path, content: bytes, validator: object = '"one"') -> None:
    """Leave a part as an earlier call does."""
    partial_path(target).write_bytes(content)
    target.with_name(f"{target.name}.partial.json").write_text(json.dumps([server.url, validator]))


def only(target: Path) -> bool:
    """Tell whether the file stands alone: no part, no lock, no note of a part."""
    return [path.name for path in target.parent.iterdir()] == [target.name]


def test_a_file_is_downloaded_and_checked(server: Server, target: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    result = fetch(server, target, progress=lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == CONTENT
    assert result == Download(target, server.url, len(CONTENT), 0, DIGEST, pinned=True)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert only(target)
    assert server.requests[0]["User-Agent"].startswith("policyfactory/")


def test_a_broken_connection_is_tried_again_from_where_it_broke(server: Server, target: Path) -> None:
    server.cut_after = [100_000, 50_000]
    result = fetch(server, target)
    assert target.read_bytes() == CONTENT
    assert server.asked == ["", "bytes=100000-", "bytes=150000-"]
    assert server.requests[1]["If-Range"] == '"one"'
    assert result.resumed_from == 0
    assert only(target)


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(server: Server, target: Path) -> None:
    server.cut_after = [120_000]
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 120,000 300,000", fetch, server, target, tries=1)
    assert not target.exists()
    assert partial_path(target).read_bytes() == CONTENT[:120_000]
    result = fetch(server, target)
    assert result.resumed_from == 120_000
    assert server.asked == ["", "bytes=120000-"]
    assert target.read_bytes() == CONTENT
    assert only(target)


def test_a_call_that_was_killed_is_gone_on_with(server: Server, target: Path) -> None:
    # kill -9 in the middle leaves the part and nothing that stands in the way.
    program = (
        "import os, pathlib, sys; from policyfactory.workload.swf.download import download\n"
        "end = lambda done, _: done > 100_000 and os.kill(os.getpid(), 9)\n"
        "download(sys.argv[1], pathlib.Path(sys.argv[2]), progress=end)"
    )
    done = subprocess.run([sys.executable, "-c", program, server.url, target], check=False)
    assert done.returncode == -9
    assert 0 < partial_path(target).stat().st_size < len(CONTENT)
    assert fetch(server, target).resumed_from > 0
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_the_file_again(server: Server, target: Path) -> None:
    server.ranges = False
    server.cut_after = [100_000]
    fetch(server, target)
    assert server.asked == ["", "bytes=100000-"]
    assert target.read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_not_glued_to_the_old_part(server: Server, target: Path) -> None:
    server.cut_after = [100_000]
    with pytest.raises(InputError):
        fetch(server, target, tries=1)
    server.content, server.etag = CONTENT[::-1], '"two"'
    fetch(server, target, sha256=None)
    assert server.requests[1]["If-Range"] == '"one"'
    assert target.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_what_may_be_another_version_is_not_gone_on_with(etag: str, server: Server, target: Path) -> None:
    server.etag = etag
    server.cut_after = [100_000]
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz again later 100,000", fetch, server, target, tries=1)
    server.content = CONTENT[::-1]
    assert fetch(server, target, sha256=None).resumed_from == 0
    assert server.asked == ["", ""]
    assert target.read_bytes() == CONTENT[::-1]


def test_a_date_identifies_a_version_too(server: Server, target: Path) -> None:
    server.etag, server.modified = "", "Sun, 22 Nov 2026 10:00:00 GMT"
    server.cut_after = [100_000]
    fetch(server, target)
    assert server.asked == ["", "bytes=100000-"]
    assert server.requests[1]["If-Range"] == server.modified


def test_a_part_is_not_gone_on_with_at_another_address(server: Server, target: Path) -> None:
    # Two servers may well have the same ETag for two files.
    server.cut_after = [100_000]
    with pytest.raises(InputError):
        fetch(server, target, tries=1)
    with serving(Server(CONTENT[::-1])) as other:
        result = download(other.url, target, patience=Patience(1, timeout=5))
    assert (other.asked, result.resumed_from) == ([""], 100_000)
    assert target.read_bytes() == CONTENT[::-1]


def test_a_part_is_gone_on_with_only_where_the_same_redirect_leads(server: Server, target: Path) -> None:
    with serving(Server(CONTENT[::-1])) as other, serving(Server(b"", redirect=server.url)) as front:
        server.cut_after = [100_000]
        refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 100,000 bytes", fetch, front, target, tries=1)
        server.cut_after = [50_000]
        refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 150,000 bytes", fetch, front, target, tries=1)
        assert server.asked == ["", "bytes=100000-"]
        front.redirect = other.url
        fetch(front, target, sha256=None)
        assert other.asked == [""]
        assert front.asked == ["", "", ""]
    assert target.read_bytes() == CONTENT[::-1]


def test_a_part_without_a_record_is_begun_again(server: Server, target: Path) -> None:
    partial_path(target).write_bytes(CONTENT[::-1][:1000])
    fetch(server, target)
    assert server.asked == [""]


def test_a_kill_between_two_versions_leaves_nothing_to_glue(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.cut_after = [100_000]
    with pytest.raises(InputError):
        fetch(server, target, tries=1)
    server.content, server.etag = CONTENT[::-1], '"two"'

    def killed(path: Path, data: str) -> None:
        path.write_text(data)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("policyfactory.workload.swf.download.atomic_write", killed)
        with pytest.raises(KeyboardInterrupt):
            fetch(server, target, tries=1)
    fetch(server, target, sha256=None)
    assert target.read_bytes() == CONTENT[::-1]


def test_a_part_that_is_already_the_whole_file(server: Server, target: Path) -> None:
    # A server is asked where only it knows the length; with a digest the part is as good as the file.
    a_part(server, target, CONTENT)
    assert fetch(server, target, sha256=None).sha256 == DIGEST
    assert server.asked == [f"bytes={len(CONTENT)}-"]
    target.unlink()
    a_part(server, target, CONTENT)
    result = fetch(server, target)
    assert (result.sha256, result.resumed_from, result.pinned) == (DIGEST, len(CONTENT), True)
    assert server.asked == [f"bytes={len(CONTENT)}-"]
    assert only(target)


def test_a_part_that_is_longer_than_the_file_is_begun_again(server: Server, target: Path) -> None:
    a_part(server, target, CONTENT + b"more")
    fetch(server, target)
    assert server.asked == [f"bytes={len(CONTENT) + 4}-", ""]
    assert target.read_bytes() == CONTENT


def test_a_server_that_sends_another_part_is_not_believed(server: Server, target: Path) -> None:
    a_part(server, target, CONTENT[:1000])
    server.lie_about_range = True
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz server sent 1", fetch, server, target, tries=1)
    fetch(server, target)
    assert server.asked == ["bytes=1000-", ""]


def test_a_server_that_does_not_tell_the_length(server: Server, target: Path) -> None:
    server.length = False
    seen: list[int | None] = []
    fetch(server, target, progress=lambda _, total: seen.append(total))
    assert set(seen) == {None}


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_in_trouble_is_asked_again(status: int, server: Server, target: Path) -> None:
    server.statuses = [status, status]
    fetch(server, target)
    assert len(server.requests) == 3


def test_a_server_that_stays_in_trouble(server: Server, target: Path) -> None:
    server.statuses = [503] * 3
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 503 3", fetch, server, target, tries=3)


def test_a_missing_file_is_not_asked_for_twice(server: Server, target: Path) -> None:
    server.path = "/elsewhere"
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 404 server", fetch, server, target)
    assert len(server.requests) == 1
    server.statuses = [403]
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz 403 --base-url", fetch, server, target)
    assert list(target.parent.iterdir()) == []


def test_a_wrong_digest_leaves_nothing_behind(server: Server, target: Path) -> None:
    refused(InputError, f"SHA-256 {DIGEST} {'0' * 64}", fetch, server, target, sha256="0" * 64)
    assert list(target.parent.iterdir()) == []


def test_a_file_that_is_no_log_does_not_get_the_logs_name(server: Server, target: Path) -> None:
    # Without a length or a digest, only the content can tell that the connection broke.
    def check(part: Path) -> None:
        assert part.read_bytes() == CONTENT[:1000]
        raise InputError("cut off")

    server.length = False
    server.cut_after = [1000]
    refused(InputError, "KTH-SP2-1996-2.1-cln.swf.gz server removed", fetch, server, target, sha256=None, check=check)
    assert list(target.parent.iterdir()) == []


def test_a_file_that_is_there_is_not_downloaded_again(server: Server, target: Path) -> None:
    target.write_bytes(CONTENT)
    result = fetch(server, target)
    assert result.present
    assert server.requests == []
    target.write_bytes(CONTENT[:-1])
    refused(InputError, "log.swf.gz SHA-256 filtered", fetch, server, target)
    assert target.read_bytes() == CONTENT[:-1]


def test_nobody_listens(server: Server, target: Path) -> None:
    with refusal(InputError, "log.swf.gz 2 connection"):
        download("http://127.0.0.1:9/log.swf.gz", target, patience=Patience(2, pause=0.01))


def test_addresses_of_other_kinds_are_refused(target: Path) -> None:
    refused(UsageError, "passwd https addresses 2,000", download, "file:///etc/passwd", target)


def test_two_runs_do_not_write_one_file(server: Server, target: Path) -> None:
    with exclusive(target), refusal(OutputError, "log.swf.gz another run"):
        fetch(server, target)


def test_a_folder_that_is_not_there(server: Server, target: Path) -> None:
    refused(OutputError, "log.swf.gz exist create", fetch, server, target.parent / "nowhere" / "log.swf.gz")


@pytest.mark.parametrize("validator", ['a\r\nHost: b"', "", 'W/"one"', 1, None, ["a", "b"]])
def test_a_record_of_a_part_that_is_nonsense_is_ignored(validator: object, server: Server, target: Path) -> None:
    a_part(server, target, CONTENT[:1000], validator)
    fetch(server, target)
    assert server.asked == [""]


@pytest.mark.parametrize("text", ["[", "[]", "1", "[1, 2, 3]", "[" * 5000, "", "\xff" * 20_000])
def test_a_record_of_a_part_that_is_no_record_is_ignored(text: str, server: Server, target: Path) -> None:
    a_part(server, target, CONTENT[:1000])
    target.with_name(f"{target.name}.partial.json").write_text(text)
    fetch(server, target)
    assert server.asked == [""]


def test_a_part_that_is_a_link_is_not_written_through(server: Server, target: Path) -> None:
    a_part(server, target, CONTENT[:1000])
    other = partial_path(target).rename(target.with_name("other"))
    partial_path(target).symlink_to(other)
    fetch(server, target)
    assert server.asked == [""]
    assert other.read_bytes() == CONTENT[:1000]
    assert not target.is_symlink()


def test_endless_answers_are_cut_short(server: Server, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyfactory.workload.swf.download._LARGEST", 100_000)
    refused(InputError, "log.swf.gz 100,000 bytes", fetch, server, target)
    server.length = False
    refused(InputError, "log.swf.gz 100,000 bytes", fetch, server, target)


def test_the_table_of_the_archive() -> None:
    assert len({log.name for log in KNOWN_LOGS.values()} | {log.short for log in KNOWN_LOGS.values()}) == 2 * len(
        KNOWN_LOGS
    )
    for name, log in KNOWN_LOGS.items():
        assert re.fullmatch(r"[A-Za-z0-9.-]+", name)
        assert re.fullmatch(r"l_[a-z0-9_]+", log.folder)
        assert log.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", log.sha256)
    kth = find_log("KTH")
    assert kth.url() == f"{ARCHIVE_URL}l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
    assert kth.url("http://mirror/pwa") == "http://mirror/pwa/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
    assert kth.page == f"{ARCHIVE_URL}l_kth_sp2/index.html"
    assert find_log("kth-sp2-1996-2.1-CLN.swf.gz") is kth
    refused(UsageError, "sdsc-bleu sdsc-blue --list", find_log, "sdsc-bleu")
    refused(UsageError, "--list download x", find_log, "x")


def test_the_pinned_digests_are_those_of_the_logs_the_project_was_tested_with(shared: Callable[[str], Path]) -> None:
    pinned = [log for log in KNOWN_LOGS.values() if log.sha256 is not None]
    assert len(pinned) == 4
    for log in pinned:
        assert hashlib.sha256(shared(f"traces/{log.file}").read_bytes()).hexdigest() == log.sha256
