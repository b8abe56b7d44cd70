"""Faults in system calls: a child process in which one call of those that write fails, or is not reached."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from policyfactory.core.errors import PolicyfactoryError

__all__ = ["FAULTS", "content", "every_fault", "hidden"]

CALLS = (
    "open", "write", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "link", "ftruncate", "fchmod", "chmod",
)  # fmt: skip
FAULTS = {"kill": None, "no space": errno.ENOSPC, "disk": errno.EIO, "interrupted": errno.EINTR}
_KILLED = 77


class _Faults:
    """Counts the calls; at number ``at`` the process ends, or the call fails."""

    def __init__(self, at: int, fault: str) -> None:
        self.at, self.fault = at, fault
        self.count = 0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.at:
                number = FAULTS[self.fault]
                if number is None:
                    os._exit(_KILLED)
                raise OSError(number, os.strerror(number))
            return call(*args, **kwargs)

        return called

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, self.around(getattr(os, name)))


def _in_child(action: Callable[[], None], at: int, fault: str) -> tuple[str, int]:
    """Do ``action`` in a child; return its error (``killed``; empty if it ended) and how many calls it made."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        faults, say, leave = _Faults(at, fault), os.write, os._exit
        try:
            faults.install()
            action()
            message = ""
        except PolicyfactoryError as error:
            message = str(error)
        except BaseException:  # noqa: BLE001 (a child ends here)
            message = f"not reported: {traceback.format_exc()}"
        say(writing, f"{faults.count}\n{message}".encode())
        leave(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as said:
        count, _, message = said.read().partition("\n")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return ("killed", 0) if status == _KILLED else (message, int(count))


def every_fault(prepare: Callable[[], None], action: Callable[[], None]) -> Iterator[tuple[str, str]]:
    """Do ``action`` once for each of its calls and each fault, and again; give the fault and the error each time.

    ``prepare`` makes what there is before.
    """
    prepare()
    error, count = _in_child(action, -1, "kill")
    assert not error, error
    assert count > 5
    for fault in FAULTS:
        for at in range(1, count + 1):
            prepare()
            error, _ = _in_child(action, at, fault)
            yield f"{fault} at call {at} of {count}", error


def content(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder that are not hidden."""
    files = (path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in named.items() if not name.startswith(".") and "/." not in name}


def hidden(folder: Path) -> list[str]:
    """Return what is hidden below a folder."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
