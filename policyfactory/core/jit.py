"""The one place for compiler options of the kernels, and for their machine code on disk.

``fastmath`` stays off: the order of floating-point operations is part of the results, which are compared byte
by byte. ``nogil`` lets threads of one process run kernels side by side.

Machine code is made by one process and waited for by those that need it at the same time: workers that are started
together need the same kernels, and numba would compile each in every one of them, half a minute of processor time for
each worker.

Kept code is run, and its files are pickles: a folder that others can write is not read.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUTargetOptions

from policyfactory.core.compiling import announce
from policyfactory.core.locks import try_lock
from policyfactory.core.trust import who_else

__all__ = ["SharedCache", "inlined", "is_compiled", "kernel", "step"]

F = TypeVar("F", bound=Callable[..., Any])

# Numba also takes settings from a file in the current folder, at each compilation; one of them is where the cache is.
config._config_fname = os.devnull  # noqa: SLF001 (it has no switch)
config.reload_config()

# Compiling takes seconds, for Slurm's rules minutes on a busy machine. Who waits longer than this (a lock of a lost
# node on a network file system) compiles by itself.
_PATIENCE = 600.0
_PAUSE = 0.02

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": False, "nogil": True}
_STEP: dict[str, Any] = dict(_OPTIONS)
# In every version of numba, but not in its documentation; without it the kernels are slower, and no different.
if hasattr(CPUTargetOptions, "_nrt"):
    _STEP["_nrt"] = False
# What unpacks their arguments for Python, hundreds of arrays at times, would take longer to compile than most of them.
_STEP |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINED: dict[str, Any] = {**_STEP, "forceinline": True}


_depth = 0  # of kernels that are compiled into each other, under numba's lock


@contextlib.contextmanager
def _nested() -> Iterator[None]:
    """Hold numba's lock, and count how deep in a kernel this one is compiled."""
    global _depth  # noqa: PLW0603 (under the lock)
    with global_compiler_lock:
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1


def _begins(function: Callable[..., Any]) -> None:
    if _depth == 1:
        announce(function.__module__)


def kernel(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code on disk."""
    return _compiled(function, _OPTIONS)


def inlined(function: F) -> F:
    """Compile ``function``, which makes no array, into each kernel that calls it.

    For the small steps of an event loop that work on the same arrays. A call would pass every field of each of
    them, and numba counts references at every step (``_nrt``): together they take more than half of the
    time of the EASY kernel.
    """
    return _compiled(function, _INLINED)


def step(function: F) -> F:
    """Compile ``function``, which makes no array, as a part of kernels that they call.

    For the steps of an event loop that are too large to be compiled into each kernel. That numba counts no references
    in them makes them quicker to compile, and no different.
    """
    return _compiled(function, _STEP)


def _compiled(function: F, options: dict[str, Any]) -> F:
    try:
        dispatcher = numba.njit(**options)(function)
    except RuntimeError:
        # There is no folder that code can be kept in: neither the package's own nor one of the user.
        dispatcher = None
    cache = getattr(dispatcher, "_cache", None)
    folder = Path(cache.cache_path) if isinstance(cache, FunctionCache) else None
    if dispatcher is None or (folder and not _is_private(folder, Path(inspect.getfile(function)).parent)):
        dispatcher = numba.njit(**{**options, "cache": False})(function)
        _announce_each(dispatcher, function)
    else:
        _share(dispatcher, function)
    if options.get("no_cpython_wrapper"):
        _keep_from_python(dispatcher, function)
    return cast("F", dispatcher)


def _keep_from_python(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let Python call a step, which its tests do, though its machine code is for kernels only: by code of its own.

    Parameters
    ----------
    dispatcher : numba dispatcher
        Of ``function``, compiled without what unpacks arguments for Python; without a compiler nothing is changed.
    function : callable
        The step's Python function.
    """
    if not hasattr(dispatcher, "add_overload"):
        return

    @functools.cache
    def for_python() -> Any:
        return numba.njit(**{**_OPTIONS, "cache": False})(function)

    def add(code: Any) -> None:
        dispatcher.overloads[tuple(code.signature.args)] = code

    # Numba would jump to what is not there: it is never told of the code, and asks for some at each call.
    dispatcher.add_overload = add
    dispatcher._compile_for_args = lambda *_, **__: for_python()  # noqa: SLF001 (numba offers no other way)


@functools.cache
def _is_private(folder: Path, sources: Path) -> bool:
    """Tell whether machine code from a folder can be run; if not, say why, once in a process.

    Parameters
    ----------
    folder : Path
        Where numba keeps it.
    sources : Path
        The folder of the kernel's source. Who can write there runs code in any case, so that what is kept beside it,
        as Python's own byte code is, is no less safe.
    """
    global _said  # noqa: PLW0603 (of the process)
    try:
        wrong = who_else(folder, like=sources if folder.parent == sources else None)
        for file in sorted(folder.glob("*.nb[ci]")):
            # Another process may remove one that is too old.
            with contextlib.suppress(FileNotFoundError):
                wrong = wrong or who_else(file, like=folder)
    except OSError as error:
        wrong = f"{error.filename}: {error.strerror}"
    if wrong and not _said:
        _said = True
        warnings.warn(
            f"kept machine code is not used: {wrong}. The kernels are compiled by each process, which takes half a "
            "minute; take the right from the others (chmod -R go-w), remove the folder, or name one of your own "
            "(export NUMBA_CACHE_DIR=$HOME/.cache/numba)",
            RuntimeWarning,
            stacklevel=1,
        )
    return not wrong


_said = False


def is_compiled(function: Callable[..., Any]) -> bool:
    """Tell whether the machine code of a kernel is there already, so that its first call need not wait for it."""
    if not hasattr(function, "signatures") or function.signatures:
        return True
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    # Empty where it was made of other sources, or for another version or processor.
    return file is not None and bool(file._load_index())  # noqa: SLF001 (numba has no question for it)


class SharedCache(FunctionCache):
    """The cache of one kernel; while a process compiles it, others wait and then read what it made.

    A kernel is compiled by whoever holds the lock of its file. Kernels call each other without circles, so two
    processes never wait for each other.

    Parameters
    ----------
    function : callable
        The kernel's Python function.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        # Numba looks at the kernel's own file only, and kernels are compiled into each other.
        file = self._cache_file
        file._source_stamp = (file._source_stamp, _sources())  # noqa: SLF001 (numba offers no other way)
        self._function = function
        self._held: IO[bytes] | None = None
        self._depth = 0

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the machine code for ``signature``; None tells the caller to compile it."""
        code = self._kept(signature, target)
        if code is None and self._depth:
            self._take()
            # Another process may have made it while this one waited.
            code = self._kept(signature, target)
            if code is None:
                _begins(self._function)
        return code

    def _kept(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except (AttributeError, ImportError):
            # Of an older version of the package, with a class that is gone: numba reads the names before the date.
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Keep machine code for ``signature``; a full disk costs the next process the time to compile it again.

        So does an older version of the package that runs beside this one and has just written the index (`_kept`).
        """
        with contextlib.suppress(OSError, AttributeError, ImportError):
            super().save_overload(signature, code)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Keep the lock, if the kernel has to be compiled, until its code is saved or compiling has failed."""
        with _nested():
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth and self._held is not None:
                    self._held.close()
                    self._held = None

    def _take(self) -> None:
        if self._held is not None:
            return
        # Where nothing can be written nothing is kept either: everybody compiles.
        with contextlib.suppress(OSError):
            self._impl.locator.ensure_cache_path()
            lock = Path(self.cache_path, f"{self._impl.filename_base}.lock")
            self._held = lock.open("ab")
            end = time.monotonic() + _PATIENCE
            while not try_lock(self._held) and time.monotonic() < end:
                time.sleep(_PAUSE)


@functools.cache
def _sources() -> tuple[tuple[str, float, int], ...]:
    """Return name, time and size of all sources of the engine: machine code that was made of others is made anew."""
    folder = Path(__file__).resolve().parent.parent / "engine"
    facts = ((path, path.stat()) for path in sorted(folder.rglob("*.py")))
    return tuple((path.relative_to(folder).as_posix(), fact.st_mtime, fact.st_size) for path, fact in facts)


def _share(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let processes that compile a kernel at the same time wait for the first of them.

    Parameters
    ----------
    dispatcher : numba dispatcher
        What `numba.njit` with ``cache=True`` returned for ``function``; without a compiler, which keeps no code,
        nothing is changed.
    function : callable
        The kernel's Python function.
    """
    if not isinstance(getattr(dispatcher, "_cache", None), FunctionCache):
        return
    cache = SharedCache(function)
    bare = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        with cache.compiling():
            return bare(signature)

    # Numba has no other way to give a kernel a cache of one's own.
    dispatcher._cache = cache  # noqa: SLF001
    dispatcher.compile = compile_in_turn


def _announce_each(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Announce each compiling of a kernel whose machine code is not kept."""
    if not hasattr(dispatcher, "compile"):
        return
    bare = dispatcher.compile

    def compile_aloud(signature: Any) -> Any:
        with _nested():
            _begins(function)
            return bare(signature)

    dispatcher.compile = compile_aloud
