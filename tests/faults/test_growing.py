"""A log that grows, is replaced or is half written while it is read: the result is that of bytes that were there."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accounting_logs import job, sacct_text
from faults.conftest import swf
from faults.processes import Nursery, results, wait_until

# Appends to a file, a few bytes at a time, so that a reader finds every kind of torn line.
APPENDER = """
import sys, time
from pathlib import Path
path, more, bite, pause = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), int(sys.argv[3]), float(sys.argv[4])
with path.open("ab", buffering=0) as file:
    print("ready", flush=True)
    for at in range(0, len(more), bite):
        file.write(more[at : at + bite])
        time.sleep(pause)
"""


@contextmanager
def growing(path: Path, more: bytes, bite: int = 997, pause: float = 0.0005) -> Iterator[None]:
    """Let another process append to a file for a while."""
    rest = path.with_name("more")
    rest.write_bytes(more)
    words = [sys.executable, "-c", APPENDER, path, rest, str(bite), str(pause)]
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def prefix_with(data: bytes, digest: str, least: int, bite: int) -> int:
    """Return of how many first bytes of ``data`` the digest is: of ``least``, and some bites more."""
    hasher = hashlib.sha256(data[:least])
    for at in range(least, len(data) + bite, bite):
        if hasher.hexdigest() == digest:
            return min(at, len(data))
        hasher.update(data[at : at + bite])
    pytest.fail("the digest is of bytes that were never the file's beginning")


def test_an_accounting_log_that_grows_is_read_to_where_it_ended(nursery: Nursery, tmp_path: Path) -> None:
    lines = sacct_text(*(job(number, 10 * number) for number in range(1, 3001))).encode()
    path = tmp_path / "sacct.txt"
    path.write_bytes(lines[:100_000])
    with growing(path, lines[100_000:]):
        words = ("workload", "import", "sacct.txt", "--time-zone", "UTC", "--output")
        nursery.start(tmp_path, *words, "grown.swf").must_end()
    recorded = json.loads((tmp_path / "grown.manifest.json").read_text(encoding="utf-8"))
    read = prefix_with(path.read_bytes(), recorded["inputs"]["sacct.txt"], 100_000, 997)
    # What was read is a log of its own, with the same result.
    path.write_bytes(lines[:read])
    nursery.start(tmp_path, *words, "still.swf").must_end()
    there = [(tmp_path / name).read_bytes().splitlines()[6:] for name in ("grown.swf", "still.swf")]
    assert [line for line in there[0] if b"swf" not in line] == [line for line in there[1] if b"swf" not in line]


def test_a_torn_last_record_is_counted(nursery: Nursery, tmp_path: Path) -> None:
    lines = sacct_text(*(job(number, 10 * number) for number in range(1, 51)))
    (tmp_path / "sacct.txt").write_text(lines[: lines.rindex("|", 0, len(lines) - 60)], encoding="utf-8")
    words = ("workload", "import", "sacct.txt", "--time-zone", "UTC", "--output", "a.swf", "--json")
    report = json.loads(nursery.start(tmp_path, *words).must_end().printed)
    assert report["jobs"] == 49
    assert report["records"] == 50


def test_a_log_in_the_standard_format_that_grows_is_scored_as_it_was_at_the_start(
    nursery: Nursery, tmp_path: Path
) -> None:
    whole = swf(4000).encode()
    path = tmp_path / "log.swf"
    begun = whole.rindex(b"\n", 0, 60_000) + 1
    path.write_bytes(whole[:begun])
    for _ in range(3):
        with growing(path, whole[path.stat().st_size :], bite=4001):
            run = nursery.start(tmp_path, "workload", "clean", "log.swf", "--output", "c.swf", "--overwrite", "--json")
            code = run.end()
        if code:
            # The last line was torn: file, line and cure are named.
            run.must_end(1)
            said = r"log\.swf:\d+: .*(18|a number is expected).*mend or delete this line"
            assert re.search(said, run.stderr), run.stderr
        else:
            account = json.loads(run.printed)
            assert prefix_with(path.read_bytes(), account["sha256"], begun, 4001) >= begun
        path.write_bytes(whole[:begun])


def test_what_is_replaced_while_it_is_read_is_one_of_both(nursery: Nursery, tmp_path: Path) -> None:
    versions = [swf(800).encode(), swf(700).encode()]
    path, other = tmp_path / "log.swf", tmp_path / "other"
    digests = {hashlib.sha256(data).hexdigest() for data in versions}
    path.write_bytes(versions[0])
    for number in range(3):
        run = nursery.start(tmp_path, "workload", "clean", "log.swf", "--output", "c.swf", "--overwrite", "--json")
        turn = number
        while run.running():
            turn += 1
            time.sleep(0.001)
            other.write_bytes(versions[turn % 2])
            other.replace(path)
        run.must_end()
        assert json.loads(run.printed)["sha256"] in digests


@pytest.mark.parametrize("command", ["import", "clean"])
def test_a_packed_log_that_is_half_written_is_refused(nursery: Nursery, tmp_path: Path, command: str) -> None:
    text = swf(500) if command == "clean" else sacct_text(*(job(number, 10 * number) for number in range(1, 501)))
    packed = gzip.compress(text.encode(), mtime=0)
    (tmp_path / "log.gz").write_bytes(packed[: len(packed) // 2])
    output = nursery.start(tmp_path, "workload", command, "log.gz", "--output", "c.swf").must_end(1).stderr
    assert re.search(r"log\.gz: ends in the middle of its packed data.*copy it again", output)
    assert set(results(tmp_path)) == {"log.gz"}


def test_learn_looks_at_a_log_once(nursery: Nursery, tmp_path: Path) -> None:
    """What is written to the log after that is not in its parts, nor in the digest."""
    path = tmp_path / "log.swf"
    path.write_text(swf(600), encoding="ascii")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    run = nursery.start(
        tmp_path, "learn", "log.swf", "--estimate-missing", "runtime", "--tuples", "32", "--trials", "256", "-o", "l"
    )
    wait_until((tmp_path / "l").exists, "did not begin", pause=0.0002)
    path.write_text(swf(601), encoding="ascii")
    run.must_end()
    assert json.loads((tmp_path / "l" / "policy.manifest.json").read_text())["inputs"] == {"log.swf": digest}
    # The first three quarters, and the last.
    parts = [(tmp_path / "l" / f"log-{part}.swf").read_text() for part in ("choosing", "test")]
    assert sum(line.strip()[:1].isdigit() for part in parts for line in part.split("\n")) == 600
