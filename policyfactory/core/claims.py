"""What a command is to write is claimed before any work: from other runs, from earlier results, from its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.locks import locked
from policyfactory.core.output import check_output, file_of, is_stream
from policyfactory.core.together import complete

__all__ = ["exclusive", "refuse_earlier"]


@contextlib.contextmanager
def exclusive(*paths: Path | None) -> Iterator[None]:
    """Hold the right to write these outputs (None: nothing); a second run on one of them is refused at once.

    The locks belong to the process and go with it, also after ``kill -9``. On file systems without locks a second run
    is not noticed. A pipe or a device is nobody's.

    Raises
    ------
    OutputError
        If another run holds one, or it cannot be written.
    UsageError
        If the command has read one, or reads one inside.
    """
    with contextlib.ExitStack() as held:
        for path in paths:
            if path is None:
                continue
            check_output(path)
            held.enter_context(inputs.claimed(path))
            where = file_of(path)
            if where is not None:
                complete(where.parent)
                lock = where.with_name(f".{where.name}.lock")
                held.enter_context(locked(path, lock))
                held.callback(_remove, lock)
        yield


def _remove(lock: Path) -> None:
    with contextlib.suppress(OSError):  # one that is left locks nobody out
        lock.unlink()


def refuse_earlier(*paths: Path | None, overwrite: bool) -> None:
    """Refuse to replace what is there: the one rule of every command that writes (None: nothing is written).

    A pipe or a device is no earlier result.

    Raises
    ------
    OutputError
        If one of the files exists and ``overwrite`` is not given.
    UsageError
        If the command reads one of the files.
    """
    for path in paths:
        if path is None:
            continue
        complete(path.parent)
        inputs.refuse_input(path)
        if path.is_file() and not is_stream(path) and not overwrite:
            raise OutputError(
                f"{path}: exists; add --overwrite to replace it (in Python overwrite=True), or name another output"
            )
