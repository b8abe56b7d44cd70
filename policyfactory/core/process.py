"""Signals that end a run: one exception in the main thread, whose message and exit code say which signal it was.

Ctrl-C sends SIGINT, a scheduler at the time limit SIGTERM, a session that is closed SIGHUP.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Who sends a second signal after so many seconds does not want to wait for the end of the first.
_PATIENCE = 2.0

_received: Stop | None = None
_received_time = 0.0
_installed = False
_abandoned = False


class Stop(KeyboardInterrupt):
    """Stop is raised where the main thread is when a signal ends the run.

    It is a class of its own also because Python ends a process that met a plain KeyboardInterrupt inside ``exec`` by
    the signal's default action, even if it was caught.

    Parameters
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number
        self.exit_code = 128 + number


def stopped(stop: KeyboardInterrupt) -> str:
    """Return in words by what a run was stopped; a plain KeyboardInterrupt does not say."""
    return str(stop) or "stopped"


def received() -> Stop | None:
    """Return what `install` has raised so far in this process, None if there was no signal."""
    return _received


def installed() -> bool:
    """Tell whether a signal ends this process: its main thread is between `install` and `ignore`."""
    return _installed


def stopping() -> bool:
    """Tell whether a signal is ending this process."""
    return _installed and _received is not None


def abandon() -> None:
    """Note that threads still work for nobody: the process will `end` without them."""
    global _abandoned  # noqa: PLW0603 (a process ends once)
    _abandoned = True


def end(code: int) -> NoReturn:
    """End the process; at once if threads still work for nobody, which Python would wait for."""
    if _abandoned:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def install() -> None:
    """Let the signals raise `Stop`; one that is ignored (nohup, a job in the background) stays ignored.

    Does nothing outside the main thread, which alone gets signals.
    """
    global _abandoned, _installed, _received
    if threading.current_thread() is not threading.main_thread():
        return
    _received, _installed, _abandoned = None, True, False
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    sys.unraisablehook = _raise_again


def ignore() -> None:
    """Let the signals do nothing: the work is done, and only the interpreter's end is left."""
    global _installed  # noqa: PLW0603 (a process has one set of handlers)
    _installed = False
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _handle(number: int, _: Any) -> None:
    global _received, _received_time
    now = time.monotonic()
    if _received is None:
        _received, _received_time = Stop(number), now
        raise _received
    if now - _received_time > _PATIENCE:
        os._exit(128 + number)


def _raise_again(event: Any) -> None:
    """Raise `Stop` again soon if it was lost in a callback or a finaliser, where Python can only report it."""
    global _received  # noqa: PLW0603 (a process has one set of handlers)
    if not isinstance(event.exc_value, Stop):
        sys.__unraisablehook__(event)
        return
    number = event.exc_value.number
    _received = None
    # Not at once: this hook could not raise it either.
    timer = threading.Timer(0.01, lambda: os.kill(os.getpid(), number))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # at the interpreter's end no thread starts
        timer.start()


# The current folder may be a stranger's -------------------------------------------------------------------------------

# The current folder may be a stranger's (an archive that was unpacked): nothing in it sets how a command works.
#
# Python that is started with ``-m`` or ``-c`` imports from it first. When they are imported, numba reads
# ``.numba_config.yaml``, which says whose machine code it runs, and matplotlib ``matplotlibrc``.


# For a Python that we start.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}

# Module -> what it reads.
_FILES = {"matplotlib": "matplotlibrc", "numba.core.config": ".numba_config.yaml"}


def ignore_folder() -> None:
    """Import numba and matplotlib from now on without files of the current folder, and matplotlib without any settings.

    For processes of our own. In a user's session his matplotlib is as he set it, and pictures are drawn with the
    settings of `policyfactory.core.picture` in any case.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _FILES else None
        if spec is not None and spec.loader is not None and spec.origin is not None:
            execute = functools.partial(_execute, spec.loader.exec_module, Path(spec.origin))
            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


def _execute(execute: Callable[[ModuleType], None], origin: Path, module: ModuleType) -> None:
    """Execute a module to which the file in the current folder does not exist."""
    exists, file = os.path.exists, _FILES[module.__name__]
    defaults = {"MATPLOTLIBRC": str(origin.parent / "mpl-data" / "matplotlibrc"), "MPLBACKEND": "agg"}
    with environment(defaults if module.__name__ == "matplotlib" else {}):
        # Its directory cannot be changed instead: other threads open files.
        os.path.exists = lambda path: path != file and exists(path)
        try:
            execute(module)
        finally:
            os.path.exists = exists


_CHANGING = threading.RLock()


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Have these values in the environment, also of the processes that are started inside."""
    with _CHANGING:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


# How far work is, for whoever shows it --------------------------------------------------------------------------------


class WorkCounter:
    """Counts work units of one kind, in the calling thread; this one shows nothing."""

    def expect(self, count: int) -> None:
        """Note that ``count`` more work units are to be done."""

    def resumed(self, count: int) -> None:
        """Note that an earlier run has finished ``count`` of them."""

    def done(self, amount: int) -> None:
        """Note that one work unit is done; ``amount`` is what it consists of (jobs, trials), for the speed."""


class Follower:
    """Follows how far the work is; this one says nothing."""

    def counter(self, title: str, unit: str = "") -> WorkCounter:  # noqa: ARG002
        """Return a counter of work units; ``unit`` is that of the amounts."""
        return WorkCounter()

    def message(self, sentence: str) -> None:
        """Say something about the work that is no result."""

    def kept(self, stop: BaseException, what: str, partial: Path) -> None:
        """Say what is kept, in ``partial``, of work that does not come to its end."""


# Who is told that a kernel is being compiled --------------------------------------------------------------------------

# Who is told that a kernel is being compiled, which takes a while; apart from the compiler, which is slow to load.


_listeners: list[Callable[[str], None]] = []


@contextlib.contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Have ``say`` called with the module of each kernel that this process begins to compile for a call of its own.

    What is compiled into it is not announced.
    """
    _listeners.append(say)
    try:
        yield
    finally:
        _listeners.remove(say)


def announce(module: str) -> None:
    """Say that a kernel of a module is being compiled."""
    for say in _listeners:
        say(module)
