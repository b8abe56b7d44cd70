"""Workers of Dask: a cluster that is running already, or threads of this process under a scheduler of their own.

The latter talk in memory (``inproc``): they have no port, so nobody else of this machine can send them work. A Dask
worker of a cluster runs whatever its scheduler sends, and a scheduler takes work from whoever reaches its port, without
a password: use a cluster only on a network that you trust, or with TLS (``tls://`` addresses; the certificates come
from Dask's own configuration, ``distributed.comm.tls``).

What is the same for all units is a task of Dask's that they depend on: each worker has its result once, and if all who
had it are lost, Dask computes it again.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from policyfactory.core import process
from policyfactory.core.errors import InputError, UsageError, WorkersError
from policyfactory.core.inputs import read_bytes, who_else
from policyfactory.core.version import __version__
from policyfactory.parallel.workers import Function, Notify, StoppedError, Workers, unit_text

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture

# Seconds: until a scheduler answers; between two looks at the workers; until the first worker must be there (a batch
# job that starts workers may wait in a queue itself).
_ANSWER = 15
_LOOK = 1.0
_PATIENCE = 24 * 3600
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
        self._call = (function, shared)
        self._workers = workers
        self._notify = notify
        self._scheduler = workers.scheduler or "on this machine"
        self._left = contextlib.ExitStack()
        self._client: Any = None
        self._shared: Any = None
        self._calls = 0
        self._known: set[str] = set()
        self._next_look = 0.0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(quiet())
            self._client = stack.enter_context(self._connection())
            stack.callback(self._end_units)
            self._wait_for_workers()
            self._compare_versions()
            self._shared = self._send(received, pickle.dumps(self._call, protocol=5))
            self._left = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.close()

    def submit(self, unit: Any) -> DaskUnit:
        """Send a unit to the scheduler."""
        return DaskUnit(self, unit, self._send(compute, __version__, self._client.id, self._shared, unit))

    def check(self) -> None:
        """Raise an error if the scheduler is lost; now and then, look whether workers have gone.

        Raises
        ------
        WorkersError
            If the scheduler is lost.
        """
        if self._client.status != "running":
            raise self.loss()
        if time.monotonic() >= self._next_look:
            self._look()
            self._next_look = time.monotonic() + _LOOK

    def loss(self) -> WorkersError:
        """Return the error that says that the scheduler is lost."""
        return WorkersError(
            f"the scheduler {self._scheduler} was lost; start it again: the same command goes on from what is finished"
        )

    def _send(self, function: Callable[..., Any], *arguments: Any) -> DaskFuture:
        """Send a call to the scheduler."""
        self._calls += 1
        try:
            with warnings.catch_warnings():
                # Dask advises another way to send much data, which is lost with the workers.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                return self._client.submit(
                    function, *arguments, key=f"{CLIENT}-{self._client.id}-{self._calls}", pure=False
                )
        except Exception:
            self.check()
            raise

    def _connection(self) -> contextlib.AbstractContextManager[Client]:
        """Return the connection to the scheduler, which is started if none is given."""
        if self._workers.scheduler is None:
            return local(self._workers.count)
        self._scheduler = scheduler_address(self._workers.scheduler)
        return connected(self._scheduler, _ANSWER)

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
                raise self.loss()
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

    def _end_units(self) -> None:
        """End the units that workers have begun; those that they have not are forgotten with the connection."""
        # What cannot be told now is lost with the scheduler; the error of the run matters more.
        with contextlib.suppress(Exception):
            if self._client.status == "running":
                self._client.run(end_units, self._client.id)


class DaskUnit:
    """A work unit that was sent to a scheduler, as an executor's future."""

    def __init__(self, executor: DaskExecutor, unit: Any, future: DaskFuture) -> None:
        self._executor = executor
        self._unit = unit
        self._future = future

    def add_done_callback(self, call: Callable[[DaskUnit], object]) -> None:
        """Have this unit given to ``call`` when it is finished."""
        self._future.add_done_callback(lambda _: call(self))

    def result(self) -> Any:
        """Return the result, computed again if it was lost with its worker.

        Raises
        ------
        WorkersError
            If the scheduler is lost, or the unit was lost several times with its worker.
        Exception
            What the function raised.
        """
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return self._future.result()
        except KilledWorker as error:
            raise WorkersError(
                f"work unit {unit_text(self._unit)} was lost {error.allowed_failures + 1} times with its worker; most "
                "often the memory of the workers is not enough: give them more, or fewer threads each"
            ) from None
        except FutureCancelledError:
            raise self._executor.loss() from None
        except Exception:
            self._executor.check()
            raise


def _release(version: Any) -> str:
    """Return the number of a version; Python's has more words."""
    return str(version).split()[0].rstrip("+").split(".final")[0]


# The connection to a Dask scheduler, given by its address or started in this process ----------------------------------

# Addresses are checked before Dask is imported: that takes a second.


CLIENT = "policyfactory"  # the name of our clients on a scheduler

_LIMIT = 1 << 20
_FIRST = 8  # bytes of the size with which a message of Dask begins
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
            first = connection.recv(_FIRST, socket.MSG_WAITALL) if parts.scheme == "tcp" else None
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
    if first is not None and (len(first) < _FIRST or int.from_bytes(first, "little") > _LIMIT):
        raise WorkersError(_not_a_scheduler(address))


def _not_a_scheduler(address: str) -> str:
    """Return the message for what listens at an address and is no Dask scheduler."""
    return (
        f"{address}: something answers there, but not as a Dask scheduler; check the port (8786 is the scheduler's, "
        "8787 its web page), whether it is tcp:// or tls://, and that Dask's versions are the same"
    )


@contextlib.contextmanager
def connected(address: str, seconds: float) -> Iterator[Client]:
    """Give the connection to a scheduler.

    Parameters
    ----------
    address, seconds
        As for `check_reachable`.

    Raises
    ------
    WorkersError
        If there is no scheduler at the address.
    """
    from distributed import Client

    check_reachable(address, seconds)
    answer: Future[Client] = Future()

    def connect() -> None:
        try:
            answer.set_result(Client(address, timeout=seconds, set_as_default=False, name=CLIENT))
        except Exception as error:  # noqa: BLE001 (what is no scheduler answers in many ways)
            answer.set_exception(error)

    # Dask's own time limit does not hold while it waits for the first message.
    threading.Thread(target=connect, name="dask-connect", daemon=True).start()
    try:
        client = answer.result(2 * seconds)
    except Exception as error:  # noqa: BLE001 (the same)
        raise WorkersError(f"{_not_a_scheduler(address)} ({type(error).__name__})") from None
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=_LOOK)


@contextlib.contextmanager
def local(threads: int) -> Iterator[Client]:
    """Give the connection to a scheduler and one worker of so many threads in this process.

    They talk in memory. Dask starts a web server for each in any case; theirs have no pages, and listen to this machine
    alone. And Dask imports first from where it keeps their data: in a folder that is nobody else's.
    """
    import dask.config
    from distributed import Client, Scheduler, SpecCluster, Worker

    both = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    empty: dict[str, Any] = {f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")}
    with tempfile.TemporaryDirectory(prefix="policyfactory-", ignore_cleanup_errors=True) as folder:
        with dask.config.set({**empty, "temporary-directory": folder}):
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": both},
                workers={"threads": {"cls": Worker, "options": {**both, "nthreads": threads, "memory_limit": 0}}},
                silence_logs=60,
            )
        client: Client | None = None
        try:
            client = Client(cluster, set_as_default=False, name=CLIENT)
            yield client
        finally:
            if process.stopping():
                # All of it is inside this process, which ends now, and Dask would wait for its threads.
                process.abandon()
            else:
                with contextlib.suppress(Exception):
                    if client is not None:
                        client.close(timeout=_LOOK)
                with contextlib.suppress(Exception):
                    cluster.close(timeout=_ANSWER)


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


# What runs in a Dask worker, which finds it by its name and so imports this file --------------------------------------


# Runs whose results nobody waits for any more.
_ENDED: set[str] = set()


def received(data: bytes) -> tuple[Function[Any, Any, Any], Any]:
    """Return the function of a run and what is the same for all its units."""
    function, shared = pickle.loads(data)  # noqa: S301 (Dask runs what its scheduler sends in any case)
    return function, shared


def compute(version: str, run: str, call: tuple[Function[Any, Any, Any], Any], unit: Any) -> Any:
    """Return the result of a work unit of a run.

    Raises
    ------
    WorkersError
        If the run is of another version than this worker.
    """
    if version != __version__:
        raise WorkersError(
            f"a worker has policyfactory {__version__}, this run is of {version}; install the same version on all "
            "workers"
        )

    def check_stop() -> None:
        if run in _ENDED:
            raise StoppedError

    function, shared = call
    return function(shared, unit, check_stop)


def end_units(run: str) -> None:
    """End the work units of a run that this process computes."""
    _ENDED.add(run)
