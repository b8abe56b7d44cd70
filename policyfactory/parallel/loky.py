"""Workers that are processes of this machine, started by joblib's loky.

Each thread of the crew has one process and hands its pieces over a pipe. A process that is lost costs the piece it had:
a new one takes its place. Loky's own pool is not used because it ends all processes when one is lost.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing.resource_tracker
import os
import pickle
import reprlib
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, ClassVar

from joblib.externals.loky.backend import resource_tracker
from joblib.externals.loky.backend.context import get_context

from policyfactory.core.errors import WorkersError
from policyfactory.parallel.pool import Task, Tell
from policyfactory.parallel.threads import ThreadCrew

__all__ = ["ProcessCrew", "name_of", "packed_error", "without"]

# How often a piece is tried: what kills its worker three times will do so again.
_TRIES = 3
# Signals that a terminal or a batch system sends to all processes of a run; the main process ends its workers.
_NOT_FOR_WORKERS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def name_of(piece: Any) -> str:
    """Return a piece as messages name it: its start if it is long."""
    return reprlib.repr(piece) if len(repr(piece)) > 100 else repr(piece)


def packed_error(error: BaseException) -> bytes:
    """Return an error as bytes, with where it was raised; one that cannot be sent is told in words."""
    # The user's errors are told in one sentence; of a defect the place is wanted.
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    with contextlib.suppress(Exception):
        data = pickle.dumps((None, error))
        pickle.loads(data)  # noqa: S301 (made in the line above)
        return data
    told = WorkersError(f"a worker stopped with {type(error).__name__}: {error}")
    told.add_note(error.__notes__[-1])
    return pickle.dumps((None, told))


@contextlib.contextmanager
def without(signals: set[signal.Signals]) -> Iterator[None]:
    """Block signals for the processes that are started here, which inherit it: they do not see them even at first."""
    # These start with the first process that needs them, and would unblock the signals.
    multiprocessing.resource_tracker.ensure_running()
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process:
    """One worker process and the pipe to it."""

    # What multiprocessing notes about its children is not safe between threads.
    _lock = threading.Lock()
    running: ClassVar[set[_Process]] = set()

    def __init__(self, number: int) -> None:
        context = get_context("loky")
        ours, theirs = context.Pipe()
        self.connection: Connection = ours
        self._process = context.Process(
            target=_work, args=(theirs, os.getpid()), name=f"policyfactory-{number}", daemon=True
        )
        try:
            with without(_NOT_FOR_WORKERS), self._lock:
                self._process.start()
                self.running.add(self)
        finally:
            theirs.close()

    def end(self) -> None:
        """Kill it."""
        with self._lock:
            # As long as it is not joined its number is not given to another process.
            if self._process.is_alive() and self._process.pid is not None:
                os.kill(self._process.pid, signal.SIGKILL)

    def joined(self) -> str:
        """Wait for its end; return how it ended, in words."""
        with self._lock:
            self._process.join(10)
            code = self._process.exitcode
            self.running.discard(self)
        self.connection.close()
        if code is not None and code < 0:
            return f"killed by signal {-code}"
        return f"exit code {code}"


@atexit.register
def _end_all() -> None:
    """End what is left when the interpreter ends, which would wait for it."""
    for process in list(_Process.running):
        process.end()


class ProcessCrew(ThreadCrew):
    """Threads that have a process each.

    Parameters
    ----------
    task : callable
        What is done to a piece; a function of a module.
    shared : object
        What is common to all; sent to each process when it starts.
    count : int
        How many processes.
    tell : callable
        Called with a sentence when a process was lost.
    """

    def __init__(self, task: Task[Any, Any, Any], shared: Any, count: int, tell: Tell) -> None:
        super().__init__(task, shared, count)
        self._tell = tell
        self._processes: dict[int, _Process] = {}
        self._changing = threading.Lock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for process in self._processes.values():
            process.joined()

    def stop(self) -> None:
        """End all processes at once."""
        super().stop()
        with self._changing:
            for process in self._processes.values():
                process.end()

    def work(self, number: int, piece: Any) -> Any:
        """Return the result of a piece, done by process ``number``, which is made if it is not there."""
        data = pickle.dumps(piece)
        ended = ""
        for tried in range(_TRIES):
            if tried:
                self._tell(f"worker process {number} was lost ({ended}); its piece is done again")
            process = self._processes.get(number) or self._start(number)
            try:
                process.connection.send_bytes(data)
                reply = process.connection.recv_bytes()
            except (EOFError, OSError):
                self.go_on()
                with self._changing:
                    del self._processes[number]
                ended = process.joined()
                continue
            result, error = pickle.loads(reply)  # noqa: S301 (from our own process)
            if error is not None:
                raise error
            return result
        raise WorkersError(
            f"piece {name_of(piece)} was lost {_TRIES} times with its worker process ({ended}); most often the memory "
            "is not enough (the system kills the largest process): use fewer workers, or --backend threading"
        )

    def _start(self, number: int) -> _Process:
        """Start a process and send it what is common to all pieces."""
        with self._changing:
            # After stop() no process may be left that nobody ends.
            self.go_on()
            process = self._processes[number] = _Process(number)
        # A process that is lost meanwhile is noticed when it is given its piece.
        with contextlib.suppress(OSError):
            process.connection.send_bytes(pickle.dumps((self._task, self._shared), protocol=5))
        return process


def _work(connection: Connection, parent: int) -> None:
    """Do the work of a worker process until there is none, or the main process has gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        common = connection.recv_bytes()
        task: Task[Any, Any, Any] | None = None
        shared = None
        while True:
            piece = connection.recv_bytes()
            try:
                if task is None:
                    task, shared = pickle.loads(common)  # noqa: S301 (from the process that started this one)
                    common = b""
                reply = pickle.dumps((task(shared, pickle.loads(piece), _go_on), None), protocol=5)  # noqa: S301
            except Exception as error:  # noqa: BLE001 (raised again in the main process)
                reply = packed_error(error)
            connection.send_bytes(reply)


def _go_on() -> None:
    """Go on: a process whose results nobody waits for is killed."""
