"""Workers of Dask: a cluster that is running already, or threads of this process under a scheduler of their own.

The latter talk in memory (``inproc``): they have no port, so nobody else of this machine can send them work. A Dask
worker of a cluster runs whatever its scheduler sends, and a scheduler takes work from whoever reaches its port, without
a password: use a cluster only on a network that you trust, or with TLS (``tls://`` addresses; the certificates come
from Dask's own configuration, ``distributed.comm.tls``).
"""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
import threading
import time
import warnings
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from policyfactory.core.errors import UsageError, WorkersError
from policyfactory.parallel.backend import Done
from policyfactory.parallel.dask_address import check_reachable, connected, quiet, scheduler_address
from policyfactory.parallel.dask_fetch import Fetches
from policyfactory.parallel.dask_local import CLIENT, left_behind, local_cluster, token_of
from policyfactory.parallel.loky import name_of
from policyfactory.parallel.pool import Task, Tell, Workers

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["DaskCrew", "check_installed"]

# Seconds: until a scheduler answers; between two looks at the workers; until the first worker must be there (a job that
# starts workers may wait in a queue itself).
_ANSWER = 15
_LOOK = 1.0
_PATIENCE = 24 * 3600
# So many pieces are with the scheduler at least, for workers that join later: a piece is a kilobyte.
_FEWEST = 1024
_AHEAD = 64
# Versions in which workers may differ from this process, at the risk of other last digits.
_WATCHED = ("python", "numpy", "numba", "scipy")


def check_installed() -> None:
    """Check that Dask is there, without importing it.

    Raises
    ------
    UsageError
        If it is not.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("backend dask needs Dask, which is not installed: pip install 'policyfactory[dask]'")


class DaskCrew:
    """The workers of a Dask cluster.

    Parameters
    ----------
    task : callable
        What is done to a piece; a function of a module that is installed on the workers.
    shared : object
        What is common to all; sent to each worker once.
    workers : Workers
        Which.
    tell : callable
        Called with a sentence when a worker was lost or workers are waited for.
    """

    def __init__(self, task: Task[Any, Any, Any], shared: Any, workers: Workers, tell: Tell) -> None:
        check_installed()
        self.waiting = _FEWEST
        self.ahead = _FEWEST
        self._common = pickle.dumps((task, shared), protocol=5)
        self._workers = workers
        self._tell = tell
        # The name of the client, so that what a killed run left behind is known by its name.
        self._token = ""
        self._scheduler = workers.scheduler or "on this machine"
        self._quiet = quiet()
        self._cluster: Any = None
        self._client: Any = None
        self._lock = threading.Lock()
        self._pieces: dict[str, tuple[Future, Any, Done]] = {}
        self._number = 0
        self._ended: SimpleQueue[Future] = SimpleQueue()
        self._stopped = threading.Event()
        self._lost: WorkersError | None = None
        self._known: set[str] = set()
        self._threads = [
            threading.Thread(target=self._collect, name="dask-results", daemon=True),
            threading.Thread(target=self._watch, name="dask-watch", daemon=True),
        ]

    def __enter__(self) -> Self:
        self._quiet.__enter__()
        try:
            self._client = self._connect()
            self._token = token_of(self._client.id)
            self._fetches = Fetches(self._client, self._loss)
            self._wait_for_workers(self._client)
            self._compare(self._client)
            self._install(self._client)
        except BaseException:
            self._close()
            raise
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        # Before the connection that they use; what still waits for an answer of a lost scheduler is left to itself.
        for thread in self._threads:
            thread.join(_LOOK)
        self._close()

    def begin(self, piece: Any, done: Done) -> None:
        """Send a piece to the scheduler."""
        from policyfactory.parallel.dask_worker import do

        if self._stopped.is_set():
            return
        if self._lost is not None:
            done((None, self._lost))
            return
        with self._lock:
            self._number += 1
            key = f"{self._token}-{self._number}"
        try:
            future = self._client.submit(do, self._token, piece, key=key, pure=False)
        except Exception as error:  # noqa: BLE001 (a client that has lost its scheduler raises many kinds)
            done((None, self._loss_or(error)))
            return
        with self._lock:
            self._pieces[key] = future, piece, done
        future.add_done_callback(self._ended.put)
        # Whoever noticed the loss meanwhile did not see this piece.
        if self._lost is not None:
            self._fail(self._lost)

    def stop(self) -> None:
        """Take back what was begun."""
        self._stopped.set()

    def _connect(self) -> Client:
        """Return the connection to the scheduler, which is started if none is given.

        Raises
        ------
        WorkersError
            If there is no scheduler at the address.
        """
        if self._workers.scheduler is None:
            from distributed import Client

            self._cluster = local_cluster(self._workers.count)
            return Client(self._cluster, set_as_default=False, name=CLIENT)
        address = scheduler_address(self._workers.scheduler)
        self._scheduler = address
        check_reachable(address, _ANSWER)
        return connected(address, _ANSWER)

    def _wait_for_workers(self, client: Client) -> None:
        """Wait until there is a worker.

        Raises
        ------
        WorkersError
            If there is none after a day, or the scheduler is lost meanwhile.
        """
        end = time.monotonic() + _PATIENCE
        told = False
        while not (found := self._count_threads(client)):
            if client.status != "running":
                raise self._loss()
            if time.monotonic() > end:
                raise WorkersError(
                    f"the scheduler {self._scheduler} had no worker for {_PATIENCE // 3600} hours; start workers (dask "
                    f"worker {self._scheduler})"
                )
            if not told:
                self._tell(
                    f"the scheduler {self._scheduler} has no worker yet; waiting for one (up to {_PATIENCE // 3600} "
                    "hours)"
                )
                told = True
            time.sleep(0.5)
        if told:
            self._tell("a worker has come")
        self._known = set(found)
        self.waiting = max(_FEWEST, 4 * sum(found.values()))
        self.ahead = max(self.waiting, _AHEAD * sum(found.values()))

    def _count_threads(self, client: Client) -> dict[str, int]:
        """Return the workers and how many threads each has; none if the scheduler does not answer."""
        try:
            return dict(client.nthreads())
        except Exception:  # noqa: BLE001 (whether the scheduler is lost is asked of the client's state)
            return {}

    def _compare(self, client: Client) -> None:
        """Compare the versions of the workers with those of this process.

        Raises
        ------
        WorkersError
            If policyfactory is missing on a worker, or is of another version.
        """
        found = client.get_versions(packages=["policyfactory", "numba", "scipy"])
        here = found["client"]["packages"]
        for worker, versions in sorted(found["workers"].items()):
            there = versions["packages"]
            ours, its = here["policyfactory"], there.get("policyfactory")
            if its != ours:
                has = f"has policyfactory {its}" if its else "does not have policyfactory"
                raise WorkersError(
                    f"worker {worker} {has}, this run is of {ours}; install the same version on all workers, in the "
                    "environment that starts them"
                )
            other = [
                f"{name} {there.get(name)} (here {here.get(name)})"
                for name in _WATCHED
                if _release(there.get(name)) != _release(here.get(name))
            ]
            if other:
                self._tell(
                    f"worker {worker} has {', '.join(other)}: the last digits of results may depend on who computed "
                    "them; install the same versions to exclude it"
                )

    def _install(self, client: Client) -> None:
        """Give all workers, also those to come, what is common to the pieces."""
        from policyfactory.parallel.dask_worker import RunPlugin

        # The workers keep what a run gave them until it takes it back; a run that was killed does not.
        with contextlib.suppress(Exception):
            for token in client.run_on_scheduler(left_behind()):
                with contextlib.suppress(Exception):
                    client.unregister_worker_plugin(token)
        plugin = RunPlugin(self._token, self._common)
        self._common = b""
        try:
            client.register_plugin(plugin)
        except Exception as error:
            if client.status != "running":
                raise self._loss() from None
            raise WorkersError(
                f"the workers of {self._scheduler} cannot take the work ({type(error).__name__}: {error}); install "
                "the same versions of policyfactory, Python and Dask on all workers"
            ) from error

    def _collect(self) -> None:
        """Hand on results as they come, and look at the workers now and then."""
        look = time.monotonic() + _LOOK
        while not self._stopped.is_set():
            futures = []
            try:
                futures.append(self._ended.get(timeout=0.1))
                while len(futures) < _FEWEST:
                    futures.append(self._ended.get_nowait())
            except Empty:
                pass
            if futures:
                self._fetches.fetch(futures)
            for outcome in self._fetches.arrived():
                self._hand_on(*outcome)
            if time.monotonic() > look:
                self._look()
                look = time.monotonic() + _LOOK

    def _hand_on(self, future: Future, value: Any, error: BaseException | None) -> None:
        """Hand on the result of a piece, or its error."""
        with self._lock:
            entry = self._pieces.pop(future.key, None)
        if entry is not None:
            _, piece, done = entry
            done((value, error and self._in_words(error, piece)))

    def _in_words(self, error: BaseException, piece: Any) -> BaseException:
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return WorkersError(
                f"piece {name_of(piece)} was lost {error.allowed_failures + 1} times with its worker; most often the "
                "memory of the workers is not enough: give them more, or fewer threads each"
            )
        return error

    def _watch(self) -> None:
        """Notice that the scheduler is lost, while others wait for its answer."""
        while not self._stopped.wait(0.1):
            if self._client.status != "running":
                self._fail(self._loss())
                return

    def _look(self) -> None:
        """Tell of workers that have gone."""
        found = set(self._count_threads(self._client))
        if self._stopped.is_set() or self._client.status != "running":
            return
        for worker in sorted(self._known - found):
            self._tell(f"worker {worker} has gone; what it had begun is done again by others")
        if self._known and not found:
            self._tell(f"the scheduler {self._scheduler} has no worker any more; waiting for one")
        self._known = found

    def _loss(self, error: BaseException | None = None) -> WorkersError:
        """Return the error that says that the scheduler is lost; the same each time."""
        if self._lost is None:
            why = f" ({type(error).__name__})" if error is not None else ""
            self._lost = WorkersError(
                f"the scheduler {self._scheduler} was lost{why}; start it again: the same command goes on from what is "
                "finished"
            )
        return self._lost

    def _loss_or(self, error: Exception) -> BaseException:
        """Return the error that says that the scheduler is lost, or the error itself if it is not."""
        end = time.monotonic() + _LOOK
        while self._client.status == "running":
            if time.monotonic() > end:
                return error
            time.sleep(0.05)
        return self._loss(error)

    def _fail(self, error: BaseException) -> None:
        """End all pieces with an error."""
        with self._lock:
            entries = list(self._pieces.values())
            self._pieces.clear()
        for _, _, done in entries:
            done((None, error))

    def _close(self) -> None:
        """Take everything back from the cluster, and leave it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._leave()
        finally:
            self._quiet.__exit__(None, None, None)

    def _leave(self) -> None:
        client = self._client
        # Whatever cannot be taken back now is lost with the scheduler; the error of the run matters more.
        with contextlib.suppress(Exception):
            if client is not None and client.status == "running" and self._lost is None:
                with self._lock:
                    futures = [future for future, _, _ in self._pieces.values()]
                    self._pieces.clear()
                client.cancel(futures, force=True)
                client.unregister_worker_plugin(self._token)
        with contextlib.suppress(Exception):
            if client is not None:
                client.close(timeout=_LOOK)
        with contextlib.suppress(Exception):
            if self._cluster is not None:
                self._cluster.close(timeout=_ANSWER)


def _release(version: Any) -> str:
    """Return the number of a version; Python's has more words."""
    return str(version).split()[0].rstrip("+").split(".final")[0]
