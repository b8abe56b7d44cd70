"""Workers of Dask: a cluster that is running already, or threads of this process under a scheduler of their own.

The latter talk in memory (``inproc``): they have no port, so nobody else of this machine can send them work. A Dask
worker of a cluster runs whatever its scheduler sends, and a scheduler takes work from whoever reaches its port, without
a password: use a cluster only on a network that you trust, or with TLS (``tls://`` addresses; the certificates come
from Dask's own configuration, ``distributed.comm.tls``).

Dask's own executor (``Client.get_executor``) fetches one result after the other: all would wait for one that was lost
with its worker and has to be computed again. So each result is fetched by a coroutine of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import pickle
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from policyfactory.core import process
from policyfactory.core.errors import InputError, UsageError, WorkersError
from policyfactory.core.inputs import read_bytes, who_else
from policyfactory.parallel.workers import Function, Notify, Workers, unit_text

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

# Seconds: until a scheduler answers; between two looks at the workers; until the first worker must be there (a batch
# job that starts workers may wait in a queue itself); between two tries to fetch a result.
_ANSWER = 15
_LOOK = 1.0
_PATIENCE = 24 * 3600
_PAUSE = 1.0
# How often a result is asked for that cannot be fetched although the scheduler is there.
_TRIES = 5
# At least so many units are with the scheduler, for workers that join later: a unit is a kilobyte.
_FEWEST = 1024
_AHEAD = 64
# Versions in which workers may differ from this process, at the risk of other last digits.
_COMPARED = ("python", "numpy", "numba", "scipy")


class DaskExecutor:
    """The workers of a Dask cluster.

    Parameters
    ----------
    function : callable
        ``function(shared, unit, check_stop)``, a function of a module that is installed on the workers.
    shared : object
        What is the same for all units; sent to each worker once.
    workers : Workers
        Which.
    notify : callable
        Called with a sentence when a worker was lost or workers are waited for.
    """

    def __init__(self, function: Function[Any, Any, Any], shared: Any, workers: Workers, notify: Notify) -> None:
        check_installed()
        self.ahead = _FEWEST
        self._data = pickle.dumps((function, shared), protocol=5)
        self._workers = workers
        self._notify = notify
        self._token = ""
        self._scheduler = workers.scheduler or "on this machine"
        self._quiet = quiet()
        self._cluster: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._client: Any = None
        self._open: dict[str, DaskFuture] = {}
        self._number = 0
        self._leaving = False
        self._known: set[str] = set()
        self._next_look = 0.0

    def __enter__(self) -> Self:
        self._quiet.__enter__()
        try:
            self._connect()
            self._wait_for_workers()
            self._compare_versions()
            self._send_shared()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def submit(self, unit: Any) -> Future[Any]:
        """Send a unit to the scheduler."""
        from policyfactory.parallel.dask_worker import compute

        self._number += 1
        key = f"{self._token}-{self._number}"
        try:
            future = self._client.submit(compute, self._token, unit, key=key, pure=False)
        except Exception:
            self.check()
            raise
        self._open[key] = future
        result: Future[Any] = Future()
        self._client.loop.add_callback(self._fetch, future, unit_text(unit), result)
        return result

    def check(self) -> None:
        """Raise an error if the scheduler is lost; now and then, look whether workers have gone.

        Raises
        ------
        WorkersError
            If the scheduler is lost.
        """
        if self._client.status != "running":
            raise self._loss()
        if time.monotonic() >= self._next_look:
            self._look()
            self._next_look = time.monotonic() + _LOOK

    async def _fetch(self, future: DaskFuture, unit: str, result: Future[Any]) -> None:
        """Fetch the result of a unit when it is finished, however often it has to be computed again."""
        from distributed.scheduler import KilledWorker

        for left in reversed(range(_TRIES)):
            try:
                value = await future.result()
            except KilledWorker as error:
                failure: Exception = WorkersError(
                    f"work unit {unit} was lost {error.allowed_failures + 1} times with its worker; most often the "
                    "memory of the workers is not enough: give them more, or fewer threads each"
                )
            except Exception as error:  # noqa: BLE001 (the function's own among them)
                failure = error
            else:
                result.set_result(value)
                break
            if self._leaving:
                return
            if future.status != "error":
                # A lost connection is known as such after an instant.
                await asyncio.sleep(_PAUSE)
                if future.status == "cancelled" or self._client.status != "running":
                    failure = self._loss(failure)
                elif left:
                    continue
            result.set_exception(failure)
            break
        del self._open[future.key]

    def _connect(self) -> None:
        """Connect to the scheduler, which is started if none is given.

        Raises
        ------
        WorkersError
            If there is no scheduler at the address.
        """
        if self._workers.scheduler is None:
            self._folder = tempfile.TemporaryDirectory(prefix="policyfactory-", ignore_cleanup_errors=True)
            self._client, self._cluster = connect_local(self._workers.count, self._folder.name)
        else:
            self._scheduler = scheduler_address(self._workers.scheduler)
            check_reachable(self._scheduler, _ANSWER)
            self._client = connect(self._scheduler, _ANSWER)
        self._token = token_of(self._client.id)

    def _wait_for_workers(self) -> None:
        """Wait until there is a worker.

        Raises
        ------
        WorkersError
            If there is none after a day, or the scheduler is lost meanwhile.
        """
        end = time.monotonic() + _PATIENCE
        waiting = False
        while not (threads := self._threads()):
            if self._client.status != "running":
                raise self._loss()
            if time.monotonic() > end:
                raise WorkersError(
                    f"the scheduler {self._scheduler} had no worker for {_PATIENCE // 3600} hours; start workers (dask "
                    f"worker {self._scheduler})"
                )
            if not waiting:
                self._notify(
                    f"the scheduler {self._scheduler} has no worker yet; waiting for one (up to {_PATIENCE // 3600} "
                    "hours)"
                )
                waiting = True
            time.sleep(0.5)
        if waiting:
            self._notify("a worker has come")
        self._known = set(threads)
        self.ahead = max(_FEWEST, _AHEAD * sum(threads.values()))

    def _threads(self) -> dict[str, int] | None:
        """Return the workers and how many threads each has, None if the scheduler does not answer."""
        try:
            return dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=_LOOK))
        except Exception:  # noqa: BLE001 (whether the scheduler is lost is asked of the client's state)
            return None

    def _compare_versions(self) -> None:
        """Compare the versions of the workers with those of this process.

        Raises
        ------
        WorkersError
            If policyfactory is missing on a worker, or is of another version.
        """
        versions = self._client.get_versions(packages=["policyfactory", "numba", "scipy"])
        here = versions["client"]["packages"]
        for worker, answer in sorted(versions["workers"].items()):
            there = answer["packages"]
            ours, its = here["policyfactory"], there.get("policyfactory")
            if its != ours:
                has = f"has policyfactory {its}" if its else "does not have policyfactory"
                raise WorkersError(
                    f"worker {worker} {has}, this run is of {ours}; install the same version on all workers, in the "
                    "environment that starts them"
                )
            other = [
                f"{name} {there.get(name)} (here {here.get(name)})"
                for name in _COMPARED
                if _release(there.get(name)) != _release(here.get(name))
            ]
            if other:
                self._notify(
                    f"worker {worker} has {', '.join(other)}: the last digits of results may depend on who computed "
                    "them; install the same versions to exclude it"
                )

    def _send_shared(self) -> None:
        """Give all workers, also those to come, the function and the shared data."""
        from policyfactory.parallel.dask_worker import RunPlugin

        # The workers keep what a run gave them until it takes it back; a run that was killed does not.
        with contextlib.suppress(Exception):
            for token in self._client.run_on_scheduler(_orphans()):
                with contextlib.suppress(Exception):
                    self._client.unregister_worker_plugin(token)
        plugin = RunPlugin(self._token, self._data)
        self._data = b""
        try:
            self._client.register_plugin(plugin)
        except Exception as error:
            if self._client.status != "running":
                raise self._loss() from None
            raise WorkersError(
                f"the workers of {self._scheduler} cannot take the work ({type(error).__name__}: {error}); install "
                "the same versions of policyfactory, Python and Dask on all workers"
            ) from error

    def _look(self) -> None:
        """Report workers that have gone."""
        threads = self._threads()
        if threads is None or self._client.status != "running":
            return
        for worker in sorted(self._known - threads.keys()):
            self._notify(f"worker {worker} has gone; what it had begun is computed again by others")
        if self._known and not threads:
            self._notify(f"the scheduler {self._scheduler} has no worker any more; waiting for one")
        self._known = set(threads)

    def _loss(self, error: Exception | None = None) -> WorkersError:
        """Return the error that says that the scheduler is lost."""
        why = f" ({type(error).__name__})" if error is not None else ""
        return WorkersError(
            f"the scheduler {self._scheduler} was lost{why}; start it again: the same command goes on from what is "
            "finished"
        )

    def _close(self) -> None:
        """Take everything back from the cluster, and leave it."""
        self._leaving = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._leave()
        finally:
            self._quiet.__exit__(None, None, None)

    def _leave(self) -> None:
        client = self._client
        if self._cluster is not None and process.stopping():
            # All of it is inside this process, which ends now, and Dask would wait for its threads.
            process.abandon()
            client = None
        # Whatever cannot be taken back now is lost with the scheduler; the error of the run matters more.
        with contextlib.suppress(Exception):
            if client is not None and client.status == "running":
                client.cancel(list(self._open.values()), force=True)
                client.unregister_worker_plugin(self._token)
        with contextlib.suppress(Exception):
            if client is not None:
                client.close(timeout=_LOOK)
        with contextlib.suppress(Exception):
            if self._cluster is not None and client is not None:
                self._cluster.close(timeout=_ANSWER)
        if self._folder is not None:
            self._folder.cleanup()


def token_of(client: str) -> str:
    """Return the name of what the run of a client puts on the workers."""
    return f"{CLIENT}-{client}"


def _orphans() -> Callable[..., list[str]]:
    """Return a function for a scheduler that finds what runs left on its workers whose client has gone."""
    begin = token_of("")

    # A function in a function is sent whole: a scheduler can work without this package.
    def orphans(dask_scheduler: Any) -> list[str]:
        return [
            plugin
            for plugin in dask_scheduler.worker_plugins
            if plugin.startswith(begin) and plugin.removeprefix(begin) not in dask_scheduler.clients
        ]

    return orphans


def _release(version: Any) -> str:
    """Return the number of a version; Python's has more words."""
    return str(version).split()[0].rstrip("+").split(".final")[0]


# The connection to a Dask scheduler, given by its address or started in this process ----------------------------------

# Addresses are checked before Dask is imported: that takes a second.


CLIENT = "policyfactory"  # the name of our clients on a scheduler

_LIMIT = 1 << 20
_SIZE = 8
_SHOWN = 200  # characters of an address that is none
_WANTED = "give tcp://HOST:PORT, tls://HOST:PORT, or the name of a scheduler file (FILE.json)"


def check_installed() -> None:
    """Check that Dask is installed, without importing it.

    Raises
    ------
    UsageError
        If it is not.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("backend dask needs Dask, which is not installed: pip install 'policyfactory[dask]'")


def scheduler_address(text: str) -> str:
    """Return the address of a scheduler: as it is given, or from its scheduler file.

    Raises
    ------
    UsageError
        If it is no address.
    InputError
        If the scheduler file cannot be read, has no address, or could be somebody else's.
    """
    if not text.endswith(".json"):
        return _checked(text if "://" in text else f"tcp://{text}", f"--scheduler {text}")
    path = Path(text)
    data = read_bytes(path, limit=_LIMIT)
    # Workers and command run what comes from there.
    if wrong := who_else(path):
        raise InputError(
            f"{text}: says where the work is sent, and somebody else can change it: {wrong}; keep it in a folder that "
            "only you can write to (chmod go-w), or give the scheduler's address"
        )
    try:
        address = json.loads(data)["address"]
        if not isinstance(address, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{text}: is not a scheduler file of Dask (JSON with an address); dask scheduler --scheduler-file makes one"
        ) from None
    return _checked(address, f"{text}: address {address[:_SHOWN]}")


def _checked(address: str, text: str) -> str:
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:
        good = False
    if not good or not address.isprintable():
        raise UsageError(f"{ascii(text)[1:-1]} is not an address of a Dask scheduler; {_WANTED}")
    return address.rstrip("/")


def check_reachable(address: str, seconds: float) -> None:
    """Check that something listens at an address, and speaks first as a Dask scheduler does.

    Parameters
    ----------
    address : str
        As `scheduler_address` returns it.
    seconds : float
        How long it may take to answer.

    Raises
    ------
    WorkersError
        If nothing listens there, or something else.
    """
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=seconds) as connection:
            # With TLS it is the caller who speaks first.
            first = connection.recv(_SIZE, socket.MSG_WAITALL) if parts.scheme == "tcp" else None
    except socket.gaierror as error:
        raise WorkersError(
            f"{address}: there is no host {parts.hostname} ({error.strerror}); check the name, or give its number"
        ) from None
    except TimeoutError:
        raise WorkersError(
            f"{address}: no Dask scheduler answers within {seconds:g} seconds; check the address and the port (8786 is "
            "the scheduler's, 8787 its web page), and that no firewall is between"
        ) from None
    except ConnectionRefusedError:
        raise WorkersError(
            f"{address}: nothing listens at this port; start a scheduler (dask scheduler), or check the port"
        ) from None
    except (OSError, UnicodeError) as error:
        raise WorkersError(f"{address}: cannot be reached ({error}); check the address") from None
    # Dask's message begins with its size; text would be an absurd one.
    if first is not None and (len(first) < _SIZE or int.from_bytes(first, "little") > _LIMIT):
        raise WorkersError(_not_a_scheduler(address))


def _not_a_scheduler(address: str) -> str:
    """Return the message for what listens at an address and is no Dask scheduler."""
    return (
        f"{address}: something answers there, but not as a Dask scheduler; check the port (8786 is the scheduler's, "
        "8787 its web page), whether it is tcp:// or tls://, and that Dask's versions are the same"
    )


def connect(address: str, seconds: float) -> Client:
    """Return the connection to a scheduler.

    Raises
    ------
    WorkersError
        If what is at the address is no scheduler.
    """
    from distributed import Client

    answers: SimpleQueue[Client | Exception] = SimpleQueue()

    def try_it() -> None:
        try:
            answers.put(Client(address, timeout=seconds, set_as_default=False, name=CLIENT))
        except Exception as error:  # noqa: BLE001 (what is no scheduler answers in many ways)
            answers.put(error)

    # Dask's own time limit does not hold while it waits for the first message.
    threading.Thread(target=try_it, name="dask-connect", daemon=True).start()
    try:
        answer = answers.get(timeout=2 * seconds)
    except Empty:
        raise WorkersError(_not_a_scheduler(address)) from None
    if isinstance(answer, Exception):
        raise WorkersError(f"{_not_a_scheduler(address)} ({type(answer).__name__})")
    return answer


def connect_local(threads: int, folder: str) -> tuple[Client, Any]:
    """Start a scheduler and one worker of so many threads in this process; return the connection and the cluster.

    They talk in memory. Dask starts a web server for each in any case; theirs have no pages, and listen to this machine
    alone. And Dask imports first from where it keeps their data: ``folder`` must be nobody else's.
    """
    import dask.config
    from distributed import Client, Scheduler, SpecCluster, Worker

    both = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    empty: dict[str, Any] = {f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")}
    with dask.config.set({**empty, "temporary-directory": folder}):
        cluster = SpecCluster(
            scheduler={"cls": Scheduler, "options": both},
            workers={"threads": {"cls": Worker, "options": {**both, "nthreads": threads, "memory_limit": 0}}},
            silence_logs=60,
        )
    return Client(cluster, set_as_default=False, name=CLIENT), cluster


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask from writing its log to the terminal: what matters in it is reported in our words."""
    import distributed  # noqa: F401 (makes its loggers)

    names = ("distributed", "tornado", "asyncio")
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] in names]
    before = [(logger, logger.disabled) for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled
