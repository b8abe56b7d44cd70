"""Workers that are processes of this machine: each is an executor of its own, with one process.

An executor breaks as a whole when one of its processes is killed. With one process each, that costs the unit which the
process had begun: it is computed again by a new one. The processes are started by joblib's loky, which does not import
the caller's script as the standard library does: a notebook, or a script without a main guard, can use them.
"""

from __future__ import annotations

import contextlib
import multiprocessing.resource_tracker
import os
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from joblib.externals.loky.backend import resource_tracker
from joblib.externals.loky.backend.context import LokyContext
from joblib.externals.loky.backend.process import LokyProcess

from policyfactory.core.errors import WorkersError
from policyfactory.core.process import SAFE_PATH, environment, ignore_folder
from policyfactory.parallel.workers import Function, Notify, ThreadExecutor, never_stop, unit_text

# How often a unit is tried: what kills its worker three times will do so again.
_TRIES = 3
# Signals that a terminal or a batch system sends to all processes of a run; the main process ends its workers.
_NOT_FOR_WORKERS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class ProcessExecutor(ThreadExecutor):
    """Threads that have a process each.

    Parameters
    ----------
    function : callable
        ``function(shared, unit, check_stop)``, a function of a module.
    shared : object
        What is the same for all units; sent to each process once, when it starts.
    count : int
        Number of processes.
    notify : callable
        Called with a sentence when a process was lost.
    """

    def __init__(self, function: Function[Any, Any, Any], shared: Any, count: int, notify: Notify) -> None:
        super().__init__(function, shared, count, initializer=_block_signals)
        # Once for all processes: each keeps a reference for as long as it lives.
        self._data = pickle.dumps((function, shared), protocol=5)
        self._notify = notify
        self._lock = threading.Lock()
        self._processes: dict[str, _Process] = {}

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._stopped.set()
            for process in self._processes.values():
                process.kill()
        super().__exit__(*error)
        for process in self._processes.values():
            process.end()

    def _run(self, unit: Any) -> Any:
        name = threading.current_thread().name.rpartition("_")[2]
        for left in reversed(range(_TRIES)):
            self._check_stop()
            process = self._processes.get(name) or self._start(name)
            try:
                return process.executor.submit(_compute, unit).result()
            except BrokenProcessPool:
                self._check_stop()
            with self._lock:
                del self._processes[name]
            ended = process.end()
            if left:
                self._notify(f"worker process {name} was lost ({ended}); its work unit is computed again")
        raise WorkersError(
            f"work unit {unit_text(unit)} was lost {_TRIES} times with its worker process ({ended}); most often the "
            "memory is not enough (the system kills the largest process): use fewer workers, or --backend threading"
        )

    def _start(self, name: str) -> _Process:
        """Start the process of a thread."""
        with self._lock:
            # After the end no process may be started that nobody ends.
            self._check_stop()
            process = self._processes[name] = _Process(self._data)
        return process


class _Process(LokyContext):  # type: ignore[misc]
    """An executor with one process, which is given ``data`` when it starts; it makes the process through this context.

    Parameters
    ----------
    data : bytes
        The function and the shared data, pickled.
    """

    def __init__(self, data: bytes) -> None:
        self._started: list[LokyProcess] = []
        self.executor = ProcessPoolExecutor(1, self, _begin, (data, os.getpid()))
        # The process starts with the first call.
        self.executor.submit(os.getpid)

    def Process(self, *arguments: Any, **named: Any) -> LokyProcess:  # noqa: N802 (the name in multiprocessing)
        """Return a new process, which gets the path of this one: it finds the caller's functions where this one did."""
        self._started.append(LokyProcess(*arguments, **named, env=SAFE_PATH))
        return self._started[-1]

    def kill(self) -> None:
        """Kill the process; what waits for its result gets an error."""
        for process in self._started:
            if process.exitcode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Wait for the end of the process, which is killed; return how it ended, in words."""
        self.kill()
        self.executor.shutdown()
        code = self._started[-1].exitcode
        return f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _block_signals() -> None:
    """Block signals for the processes that this thread starts, which inherit it: they never see them."""
    # These start with the first process that needs them, and would unblock the signals. They have this environment.
    with environment(SAFE_PATH):
        multiprocessing.resource_tracker.ensure_running()
        resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_WORKERS)


class _Received:
    """What a worker process was given when it started: function and shared data, unpickled when they are needed."""

    data = b""
    call: tuple[Function[Any, Any, Any], Any] | None = None


def _begin(data: bytes, parent: int) -> None:
    """Prepare a worker process; it ends when the main process has gone."""

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    ignore_folder()
    # The main process has said it.
    warnings.filterwarnings("ignore", "kept machine code is not used", RuntimeWarning)
    threading.Thread(target=end_with_parent, daemon=True).start()
    _Received.data = data


def _compute(unit: Any) -> Any:
    try:
        if _Received.call is None:
            _Received.call = pickle.loads(_Received.data)  # noqa: S301 (from the process that started this one)
            _Received.data = b""
        function, shared = _Received.call
        return function(shared, unit, never_stop)
    except Exception as error:  # noqa: BLE001 (raised again in the main process)
        raise sendable(error) from error.__cause__


def sendable(error: Exception) -> Exception:
    """Return an error that another process can read: the error itself, or its words if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (made in this line)
    except Exception:  # noqa: BLE001 (anything can go wrong in a stranger's class)
        return WorkersError(f"a worker stopped with {type(error).__name__}: {error}").with_traceback(
            error.__traceback__
        )
    return error
