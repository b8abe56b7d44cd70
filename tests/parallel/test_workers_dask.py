"""Workers of Dask: the same results, what a killed worker or scheduler costs, and what is told."""

from __future__ import annotations

import contextlib
import gc
import http.server
import json
import logging
import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import worker_tasks
from commands import Run, runner
from dask_cluster import Cluster
from policyfactory import __version__
from policyfactory.core.errors import FormulaError, InputError, UsageError, WorkersError
from policyfactory.parallel import dask
from policyfactory.parallel.dask import DaskExecutor, compute, scheduler_address
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Workers
from refusals import refusal, refused
from support import NIGHTLY, ROOT
from worker_tasks import Shared, seen

Client = pytest.importorskip("distributed").Client
PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
SMALL = ("--tuples", "12", "--trials", "512", "--output", "t.csv")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("dask"), 2)
    yield made
    made.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return runner(tmp_path, monkeypatch, capfd)


def of(cluster: Cluster) -> Workers:
    return Workers(1, "dask", str(cluster.file))


def test_results_are_the_same_on_a_cluster(cluster):
    messages: list[str] = []
    levels = {name: logging.getLogger(name).disabled for name in ("distributed", "distributed.client")}
    expected = [7 + number**2 for number in range(60)]
    assert sorted(results(worker_tasks.square, 7, range(60), of(cluster), notify=messages.append)) == expected
    assert list(results(worker_tasks.square, 7, [], of(cluster))) == []
    assert all(sentence.startswith("the scheduler tcp://127") or "has come" in sentence for sentence in messages)
    assert {name: logging.getLogger(name).disabled for name in levels} == levels


@pytest.mark.parametrize("error", [worker_tasks.ERROR, ValueError("a defect")], ids=repr)
def test_what_a_task_raises_is_raised_here_as_itself(cluster, error):
    with pytest.raises(type(error)) as raised:
        list(results(worker_tasks.fail, error, range(10), of(cluster)))
    assert str(raised.value) == str(error)
    assert not isinstance(error, FormulaError) or raised.value.position == 3


def test_work_that_nobody_waits_for_ends(cluster, tmp_path):
    actual = results(worker_tasks.wait, tmp_path, units_after(tmp_path), of(cluster))
    with pytest.raises(UsageError, match="enough"):
        next(actual)
    end = time.monotonic() + 600
    while seen(tmp_path, "ended") < seen(tmp_path, "begun"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("dask-")]


def units_after(folder: Path) -> Iterator[int]:
    """Give units until one has begun, and then an error."""
    yield from (1, 2)
    while not seen(folder, "begun"):
        time.sleep(0.05)
    raise UsageError("enough")


def test_generate_gives_the_same_bytes_on_every_backend(cluster, run, tmp_path):
    tables = []
    backends = [
        ("--workers", "2"), ("--backend", "loky", "--workers", "1"), ("--backend", "dask", "--workers", "2"),
        ("--scheduler", cluster.file),
    ]  # fmt: skip
    for words in backends:
        done = run("generate", *SMALL, *words, "--overwrite")
        assert "12/12" in done.stderr
        tables.append((tmp_path / "t.csv").read_bytes())
    assert tables.count(tables[0]) == len(backends)
    measured = json.loads((tmp_path / "t.manifest.json").read_text())["measured"]
    assert (measured["backend"], measured["workers"]) == ("dask", None)


def test_dask_without_a_scheduler_is_threads_of_this_process_and_opens_no_port_for_work():
    before = {thread.name for thread in threading.enumerate()}
    actual = results(worker_tasks.whoami, 7, range(20), Workers(2, "dask"))
    assert next(actual)[1] == os.getpid()
    ports = [port for port in listening() if port]
    # Dask's web servers, for this machine alone; they have no page, and take no work.
    assert len(ports) <= 2
    for port in ports:
        for page in ("", "/info/main/workers.html", "/health", "/json/counts.json"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=600)
            assert refused.value.code == 404
            refused.value.close()
    assert [process for _, process in actual] == [os.getpid()] * 19
    left = {thread.name for thread in threading.enumerate()} - before
    assert not [name for name in left if name.startswith("dask-")]


def listening() -> list[int]:
    """Return the ports at which this process listens; all must be this machine's own."""
    inodes = {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}
    ports = []
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *rest = line.split()
        if state == "0A" and f"socket:[{rest[5]}]" in inodes:
            address, port = local.split(":")
            assert address == "0100007F"
            ports.append(int(port, 16))
    return ports


def test_a_lost_connection_is_the_end_of_what_was_begun(cluster):
    with DaskExecutor(worker_tasks.wait, Path(), of(cluster), lambda _sentence: None) as executor:
        unit = executor.submit(2)
        executor._client.close()
        for begin in (unit.result, executor.check, lambda: executor.submit(3)):
            refused(WorkersError, "lost", begin)
    # "coroutine was never awaited" is an error, which else would come up in whatever test runs next.
    gc.collect()


def test_a_worker_that_came_later_with_another_version_refuses_the_work():
    with pytest.raises(WorkersError, match=rf"has policyfactory {re.escape(__version__)}, this run is of 0\.0\.1"):
        compute("0.0.1", "run", (worker_tasks.square, 0), 1)


@pytest.mark.skipif(not NIGHTLY, reason="starts one more worker: make nightly")
def test_a_worker_of_another_version_is_refused_by_both_names(cluster, tmp_path):
    package = tmp_path / "policyfactory"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "0.0.1"\n')
    described = tmp_path / "policyfactory-0.0.1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: policyfactory\nVersion: 0.0.1\n")
    other = cluster.add(first=str(tmp_path))
    try:
        with Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(3, timeout=600)
        refused(WorkersError, f"0.0.1 {__version__} install", list, results(worker_tasks.square, 0, [2], of(cluster)))
    finally:
        other.kill()
        other.wait()


@pytest.mark.fault
def test_a_killed_worker_costs_what_it_had_begun_only(cluster, tmp_path):
    messages: list[str] = []
    shared = Shared(tmp_path, 1 << 20, seconds=0.15)
    units = range(40)
    made = results(worker_tasks.kill_once, shared, units, of(cluster), notify=messages.append)
    assert sorted(made) == [(number, 1 << 20) for number in units]
    times = [seen(tmp_path, str(number)) for number in units]
    assert times[5] == 2
    # Results that lay on the killed worker for an instant may be made again.
    assert sum(times) <= len(units) + 4
    assert any("has gone; what it had begun is computed again by others" in sentence for sentence in messages)
    # Once to each of the two, and again where the only one who had it at that instant was killed: not with each unit.
    assert 2 <= seen(tmp_path, "arrived") <= 5
    cluster.workers.append(cluster.add())


@pytest.mark.fault
def test_a_lost_scheduler_leaves_what_is_finished_and_the_same_command_goes_on(tmp_path, run):
    folder = tmp_path / "dask"
    folder.mkdir()
    cluster = Cluster(folder, 1)
    long = ("--tuples", "40", "--trials", "40000", "--output", "t.csv")
    partial = tmp_path / "t.csv.partial"

    def kill() -> None:
        while not partial.exists() or partial.read_bytes().count(b"\n") < 4:
            time.sleep(0.02)
        cluster.scheduler.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        messages = run("generate", *long, "--scheduler", cluster.address, code=1).stderr
        killer.join()
    finally:
        cluster.close()
    assert f"error: the scheduler {cluster.address} was lost" in messages
    kept = partial.read_bytes().count(b"\n") - 1
    assert 3 <= kept < 40
    assert f"stopped: {kept} of 40 tuples are kept in t.csv.partial; the same command goes on from there" in messages
    assert "distributed" not in messages
    assert f"{kept} tuples were finished by an earlier run" in run("generate", *long, "--workers", "2").stderr
    table = (tmp_path / "t.csv").read_bytes()
    run("generate", *long, "--workers", "1", "--overwrite")
    assert (tmp_path / "t.csv").read_bytes() == table


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--scheduler", "nobody.invalid:8786"), 1, "there is no host nobody.invalid"),
        (("--scheduler", "127.0.0.1:1"), 1, "nothing listens at this port; start a scheduler"),
        (("--scheduler", "none.json"), 1, "none.json: no such file"),
        (("--scheduler", "other.json"), 1, "other.json: is not a scheduler file of Dask"),
        (("--scheduler", "here"), 2, "--scheduler here is not an address of a Dask scheduler; give tcp://HOST:PORT"),
        (("--scheduler", "a:1", "--backend", "loky"), 2, "--scheduler a:1 is for --backend dask, not loky"),
        (
            ("--scheduler", "a:1", "--workers", "3"),
            2,
            "--workers 3 with --scheduler a:1: the workers of the cluster do",
        ),
        (("--backend", "loky", "--convergence"), 2, "leave out --backend and --scheduler"),
    ],
)
def test_wrong_addresses_are_refused_and_leave_nothing(run, tmp_path, arguments, code, message):
    (tmp_path / "other.json").write_text('{"address": 3}')
    assert message in run("generate", "--tuples", "3", "--output", "t.csv", *arguments, code=code).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["other.json"]


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-x\r\n"])
def test_what_is_no_scheduler_is_refused(says):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as caller:
                caller.sendall(says)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with refusal(WorkersError, f"tcp://{address} 8786"):
            list(results(worker_tasks.square, 0, [1], Workers(1, "dask", address)))
        thread.join()


def test_what_begins_as_a_scheduler_does_and_is_silent_then_is_given_up(monkeypatch):
    monkeypatch.setattr(dask, "_ANSWER", 0.5)
    callers = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def begin() -> None:
            with contextlib.suppress(OSError):
                while True:
                    callers.append(server.accept()[0])
                    callers[-1].sendall((100).to_bytes(8, "little"))

        thread = threading.Thread(target=begin)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with refusal(WorkersError, f"tcp://{address} 8786 TimeoutError"):
            list(results(worker_tasks.square, 0, [1], Workers(1, "dask", address)))
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for caller in callers:
        caller.close()


def test_a_web_server_waits_and_is_no_scheduler(monkeypatch):
    monkeypatch.setattr(dask, "_ANSWER", 0.3)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with refusal(WorkersError, "0.3 8787"):
            list(results(worker_tasks.square, 0, [1], Workers(1, "dask", f"127.0.0.1:{server.server_port}")))
        server.shutdown()
        thread.join()


def test_the_page_quotes_our_messages():
    rows = PAGE.partition("\n## When it does not work\n")[2].splitlines()
    quoted = [row.split("`")[1] for row in rows if row.startswith("| `") and "in `logs/`" not in row]
    assert len(quoted) >= 6
    sources = [*(ROOT / "policyfactory" / "parallel").glob("dask*.py"), ROOT / "policyfactory" / "core" / "jit.py"]
    # Strings that go on in the next line are one.
    text = re.sub(r'"\s*\n\s*f?"', "", "".join(path.read_text(encoding="utf-8") for path in sources))
    for quote in quoted:
        assert re.search(re.sub(r"\d+", r"{[^}]+}", quote), text), quote


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("node:8786", "tcp://node:8786"), ("tcp://10.0.0.1:8786", "tcp://10.0.0.1:8786"), ("tls://n:1/", "tls://n:1"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"),
    ],
)  # fmt: skip
def test_addresses(text, address):
    assert scheduler_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "node",
        "node:0",
        "node:99999",
        "node:port",
        "tcp://",
        "http://n:1",
        "tcp://n:1/path",
        "tcp://\x1b[1m:1",
        ":1",
    ],
)
def test_what_is_no_address(text):
    with refusal(UsageError, "address scheduler --scheduler") as raised:
        scheduler_address(text)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"address": 1}', "[" * 100_000, "\x00"])
def test_what_is_no_scheduler_file(tmp_path, text):
    (tmp_path / "s.json").write_text(text)
    refused(InputError, "s.json scheduler file", scheduler_address, str(tmp_path / "s.json"))


def test_without_the_extra_the_cure_is_named(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    messages = run("generate", *SMALL, "--backend", "dask", code=2).stderr
    assert "backend dask needs Dask, which is not installed: pip install 'policyfactory[dask]'" in messages
