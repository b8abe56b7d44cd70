"""Signals that end a run: one exception in the main thread, whose message and exit code say which signal it was.

Ctrl-C sends SIGINT, a scheduler at the time limit SIGTERM, a session that is closed SIGHUP.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

__all__ = [
    "SIGNALS", "Stop", "abandon", "behind", "end", "ignore", "install", "installed", "received", "stopped", "stopping",
]  # fmt: skip

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Who sends a second signal after so many seconds does not want to wait for the end of the first.
_PATIENCE = 2.0

_received: Stop | None = None
_at = 0.0
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


def behind(error: BaseException) -> Stop | None:
    """Return the `Stop` that an error came from, None if there is none.

    Some code makes another error of whatever is raised inside it, as Python 3.11 does where a class is made.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, Stop):
        seen = seen.__cause__ or seen.__context__
    return seen


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
    global _at, _received
    now = time.monotonic()
    if _received is None:
        _received, _at = Stop(number), now
        raise _received
    if now - _at > _PATIENCE:
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
