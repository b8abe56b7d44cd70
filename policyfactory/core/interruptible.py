"""Kernels that take long are answered for while they run: a signal ends the command then, not when they are done.

Python calls what was installed for a signal between two steps of the main thread, and a kernel is one step. So a
second thread runs it, and the main thread waits in a way that a signal ends. The kernel goes on until the process ends,
which is soon (`policyfactory.core.signals.abandon`); what it writes nobody reads any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from numba import config

from policyfactory.core import signals

__all__ = ["interruptible"]

R = TypeVar("R")

_calls: SimpleQueue[_Call] | None = None


class _Call:
    """A call of a kernel, and what came of it."""

    __slots__ = ("arguments", "done", "error", "kernel", "result")

    def __init__(self, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.kernel, self.arguments = kernel, arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()


def interruptible(kernel: Callable[..., R], *arguments: Any) -> R:
    """Return what a kernel returns; a signal that ends the command ends the waiting for it.

    Where nobody has said what a signal does (`policyfactory.core.signals.install`), in other threads, and where kernels
    are not compiled, this is a plain call.

    Parameters
    ----------
    kernel : callable
        A kernel that may take long, or a function that does little but call one.
    *arguments
        Its arguments.

    Raises
    ------
    Stop
        If a signal came. The arrays among the arguments must not be used any more.
    """
    main = threading.current_thread() is threading.main_thread()
    if config.DISABLE_JIT or not (main and signals.installed()):  # type: ignore[attr-defined]
        return kernel(*arguments)
    call = _Call(kernel, arguments)
    _helper().put(call)
    try:
        call.done.acquire()
    except BaseException:
        signals.abandon()
        raise
    if call.error is not None:
        raise call.error
    return cast("R", call.result)


def _helper() -> SimpleQueue[_Call]:
    """Return where the second thread takes calls from; it is started with the first."""
    global _calls  # noqa: PLW0603 (a process has one)
    if _calls is None:
        _calls = SimpleQueue()
        threading.Thread(target=_run, args=(_calls,), name="kernels", daemon=True).start()
    return _calls


def _run(calls: SimpleQueue[_Call]) -> None:
    while True:
        call = calls.get()
        try:
            call.result = call.kernel(*call.arguments)
        except BaseException as error:  # noqa: BLE001 (raised again in the main thread)
            call.error = error
        call.done.release()
        # Its arrays are the caller's alone from now on.
        del call
