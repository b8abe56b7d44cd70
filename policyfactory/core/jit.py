"""The one place for compiler options of the kernels, and for their machine code on disk.

``fastmath`` stays off: the order of floating-point operations is part of the results, which are compared byte
by byte. ``nogil`` lets threads of one process run kernels side by side.

Machine code is kept under a name that says what it was made of: the byte code of the function and of all that it calls,
their constants, the fields of the engine's named tuples. A changed comment, another checkout or another version of the
package with the same kernel finds it; a changed callee does not. It is made by one process and waited for by those that
need it at the same time: workers that are started together need the same kernels, half a minute of processor time each.

Kept code is run, and its files are pickles: a folder that others can write is not read.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import os
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import models, register_model, typeof_impl

from policyfactory.core import process
from policyfactory.core.files import try_lock
from policyfactory.core.inputs import who_else
from policyfactory.core.options import Int64Array
from policyfactory.core.process import announce

F = TypeVar("F", bound=Callable[..., Any])

_config: Any = numba.config  # which gets its names when it is imported

# Compiling takes seconds, for Slurm's rules minutes on a busy machine. Who waits longer than this (a lock of a lost
# node on a network file system) compiles by itself.
_PATIENCE = 600.0
_PAUSE = 0.02
_KEPT_DAYS = 90
_MOST_FUNCTIONS = 1_000  # that are compiled into one

_OPTIONS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": False,
    # Not said, these two are taken over from the caller that has it compiled.
    "forceinline": False,
    "_nrt": True,
    "nogil": True,
    "no_cfunc_wrapper": True,  # by which C would call them
}
# Only kernels call these: the wrapper that unpacks their arguments for Python, hundreds of arrays at times, would take
# longer to compile than most of them do.
_STEP: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "_nrt": False}
_INLINED: dict[str, Any] = {**_STEP, "forceinline": True}
_JOINED: dict[str, Any] = {**_STEP, "inline": "always"}


def kernel(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code on disk."""
    return _compiled(function, _OPTIONS)


def inlined(function: F) -> F:
    """Compile ``function``, which makes no array, into each kernel that calls it.

    For steps of a few lines, and for those in which a kernel spends its time and for which a call is too much. Each
    place at which they are called gets their code.
    """
    return _compiled(function, _INLINED)


def step(function: F) -> F:
    """Compile ``function``, which makes no array, once, to be called by kernels.

    For steps of an event loop that are called at several places. numba counts no references in them (``_nrt``): that
    saves time where they are given arrays, and none where these are in a named tuple that is `by_pointer`.
    """
    return _compiled(function, _STEP)


def joined(function: F) -> F:
    """Compile ``function`` as if its lines stood in its caller.

    numba links the code of all that a function calls into it and optimises it once more: what is called at one place,
    in a kernel, is compiled there and not before and again. Not for many in each other: numba copies them each time.
    """
    return _compiled(function, _JOINED)


def read_only(array: Int64Array) -> Int64Array:
    """Return an array as kernels are given it that only read it.

    One that can be written is another type to numba, and the kernel would be compiled once more.
    """
    view = np.ascontiguousarray(array, dtype=np.int64).view()
    view.flags.writeable = False
    return view


def is_compiled(function: Callable[..., Any]) -> bool:
    """Tell whether machine code of a kernel is there already, for arguments of some types.

    Where arguments, or parts of them, may be None there is a variant for each case, and another one may be missing.
    """
    return not isinstance(function, Kernel) or function.is_compiled()


def _compiled(function: F, options: dict[str, Any]) -> F:
    if _config.DISABLE_JIT:
        return function
    return cast("F", functools.wraps(function)(Kernel(function, options)))


class Kernel:
    """A compiled function, to be called from Python and from other kernels.

    Parameters
    ----------
    function : callable
        What is compiled.
    options : dict
        Of `numba.njit`.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.options = self.targetoptions = options  # the latter name is where numba looks for "inline"
        # By what is None among the arguments, where something may be; else there is one of them.
        self._prepared: dict[tuple[Any, ...], Any] = {}
        kinds = inspect.get_annotations(function)
        self._has_variants = any("None" in str(kind) for name, kind in kinds.items() if name != "return")

    @functools.cached_property
    def stamp(self) -> str:
        """What the machine code depends on; known when all that the function calls is defined."""
        return _digest(self.py_func, self.options)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        with _DISPATCHERS:
            return self.__dict__.get("dispatcher") or _dispatcher(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run it, once it is compiled."""
        variant = _absent(args) if self._has_variants else ()
        callable_ = self._prepared.get(variant)
        if callable_ is None:
            callable_ = self._prepared[variant] = self._prepare(args, named)
        return callable_(*args, **named)

    def is_compiled(self) -> bool:
        """Tell whether this process or one before it has compiled the kernel, or one of its variants."""
        folder = _folder()
        compiled = "dispatcher" in self.__dict__ and bool(self.dispatcher.signatures)
        return compiled or (folder is not None and any(folder.glob(f"{self._name}*.made")))

    @property
    def _name(self) -> str:
        return f"{self.py_func.__name__}-{self.stamp}"

    def _prepare(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self.options.get("no_cpython_wrapper"):
            # What is made for kernels cannot be called from here. Tests do.
            return numba.njit(**{**_OPTIONS, "cache": False})(self.py_func)
        folder = _folder()
        if folder is not None and not named:
            types_ = tuple(map(numba.typeof, args))
            mark = folder / f"{self._name}-{hashlib.sha256(repr(types_).encode()).hexdigest()[:8]}.made"
            if not mark.exists():
                with _alone(folder / f"{self._name}.lock"), _quick():
                    _compile(self.dispatcher, types_)
                with contextlib.suppress(OSError):
                    mark.touch()
        return self.dispatcher


def _absent(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return which arguments are None, and which parts of those that are tuples."""
    return tuple([_absent(arg) if isinstance(arg, tuple) else arg is None for arg in args])


@contextlib.contextmanager
def _quick() -> Iterator[None]:
    """Let what is compiled take less time.

    No garbage is looked for: numba copies its trees by the million, and each look goes through all of them. LLVM
    optimises at level 2, not 3: in five sixths of the time, and the kernels run as fast (NUMBA_OPT says another).
    """
    was_enabled, level = gc.isenabled(), _config.OPT
    gc.disable()
    if "NUMBA_OPT" not in os.environ:
        _config.OPT = type(level)(2)
    try:
        yield
    finally:
        _config.OPT = level
        if was_enabled:
            gc.enable()


def _compile(dispatcher: Any, types_: tuple[Any, ...]) -> None:
    """Compile a kernel; a full disk costs the next process the time to do it again."""
    for _ in range(_MOST_FUNCTIONS):
        try:
            dispatcher.compile(types_)
        except OSError:  # a function was compiled and not kept: this process has it the next time
            continue
        return


class _Called(numba.types.Dispatcher):
    """Kernels that call each other: numba sees what it has compiled.

    A constant among the arguments is one number of its type: else numba compiles a kernel once more for each of them.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        plain = numba.types.unliteral
        return super().get_call_type(context, tuple(map(plain, args)), {name: plain(kws[name]) for name in kws})


register_model(_Called)(models.OpaqueModel)


@typeof_impl.register(Kernel)
def _type_of(found: Kernel, _: Any) -> Any:
    return _Called(found.dispatcher)


class _Listener(event.Listener):
    """Says that a kernel is compiled, not what is compiled into it."""

    def __init__(self) -> None:
        self._depth = 0  # under the lock that numba has while it compiles

    def on_start(self, begun: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            announce(begun.data["dispatcher"].py_func.__module__)

    def on_end(self, _: Any) -> None:
        self._depth -= 1


event.register("numba:compile", _Listener())


def _dispatcher(definition: Kernel) -> Any:
    """Return numba's part of a kernel, whose code is kept where `Locator` says, or not at all."""
    before = _config.CACHE_LOCATOR_CLASSES
    # As the variable NUMBA_CACHE_LOCATOR_CLASSES does it, for this function and not for those of others.
    _config.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"
    _stamps[definition.py_func] = definition.stamp
    try:
        return numba.njit(**{**definition.options, "cache": _folder() is not None})(definition.py_func)
    finally:
        _config.CACHE_LOCATOR_CLASSES = before
        del _stamps[definition.py_func]


class Locator:
    """Where numba keeps the machine code of a function, and under which name (NUMBA_CACHE_LOCATOR_CLASSES)."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._stamp = _stamps[function]
        self._path = folder
        self._py_file = inspect.getfile(function)  # numba names it in warnings

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> Locator | None:
        """Return the locator of a function, if there is a folder."""
        folder = _folder()
        return None if folder is None else cls(function, folder)

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is there."""

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return what tells the function, with all that it calls, from any other."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return the part of the file's name that says the same."""
        return self._stamp


_DISPATCHERS = threading.RLock()
_stamps: dict[Callable[..., Any], str] = {}  # for the locator, which numba gives the function alone


# What a function was made of ------------------------------------------------------------------------------------------


def _digest(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """Return what a function's machine code depends on, as 16 hexadecimal digits."""
    options_ = repr(sorted(options.items()))
    lowering = _file_digest(str(Path(__file__).with_name("by_pointer.py")))
    fields = map(_fields, _files(function))
    parts = [options_, lowering, *fields, *_parts(function.__code__, function.__globals__)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _parts(body: types.CodeType, scope: dict[str, Any]) -> Iterator[str]:
    yield body.co_code.hex()
    yield repr((body.co_names, body.co_varnames, body.co_freevars, body.co_cellvars))
    # The first constant is the docstring, if there is one.
    for constant in body.co_consts[isinstance(body.co_consts[0], str) if body.co_consts else 0 :]:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant, scope)
        else:
            yield repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)
    for name in body.co_names:
        if name in scope:
            yield f"{name} {_global(scope[name])}"


def _global(value: Any) -> str:
    if isinstance(value, Kernel):
        return value.stamp
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, types.FunctionType):  # of which kernels have a version of their own (engine/lanes)
        return _file_digest(inspect.getfile(value))
    return value.__qualname__ if isinstance(value, type) else repr(value)


@functools.cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _files(function: Callable[..., Any]) -> list[Path]:
    """Return where named tuples are that a function may be given: they are types of arguments, known by their names."""
    engine = Path(__file__).parent.parent / "engine"
    return sorted({*engine.rglob("*.py"), Path(inspect.getfile(function))})


@functools.cache
def _fields(path: Path) -> str:
    """Return classes and fields of a file's named tuples."""
    lines: list[str] = []
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line and not line.startswith(" "):
            inside = line.endswith("(NamedTuple):")
        if inside and ":" in line:
            lines.append(line.partition("#")[0].strip())
    return "\n".join(lines)


# Where it is kept -----------------------------------------------------------------------------------------------------


@functools.cache
def _folder() -> Path | None:
    """Return where machine code is kept; None if nothing can be written, or others can write there too."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home, "policyfactory"), "kernels")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        wrong = who_else(folder)
        for file in sorted(folder.glob("*.nb[ci]")):
            with contextlib.suppress(FileNotFoundError):  # another process removed one that is old
                wrong = wrong or who_else(file)
    except OSError:
        return None
    if wrong:
        warnings.warn(
            f"kept machine code is not used: {wrong}. The kernels are compiled by each process, which takes half a "
            "minute; take the right from the others (chmod -R go-w), remove the folder, or name one of your own "
            "(export NUMBA_CACHE_DIR=$HOME/.cache/numba)",
            RuntimeWarning,
            stacklevel=1,
        )
        return None
    _forget(folder)
    return folder


def _forget(folder: Path) -> None:
    """Remove what was made long ago, as by versions that are gone; who still needs it makes it anew."""
    oldest = time.time() - _KEPT_DAYS * 86_400
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another process was quicker
            if file.stat().st_mtime < oldest:
                file.unlink()


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process has the lock, and hold it; where there are no locks everybody compiles."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context(lock.open("ab"))
            end = time.monotonic() + _PATIENCE
            while not try_lock(file) and time.monotonic() < end:
                time.sleep(_PAUSE)
        yield


# Kernels that take long are answered for while they run ---------------------------------------------------------------

# A signal ends the command then, not when they are done. No pool of concurrent.futures: if a signal comes while that
# starts its thread, the process waits for it at the end, for ever.
#
# Python calls what was installed for a signal between two steps of the main thread, and a kernel is one step. So a
# second thread runs it, and the main thread waits in a way that a signal ends. The kernel goes on until the process
# ends, which is soon (`policyfactory.core.process.abandon`); what it writes nobody reads any more.


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

    Where nobody has said what a signal does (`policyfactory.core.process.install`), in other threads, and where kernels
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
    if _config.DISABLE_JIT or not (main and process.installed()):
        return kernel(*arguments)
    call = _Call(kernel, arguments)
    _helper().put(call)
    try:
        call.done.acquire()
    except BaseException:
        process.abandon()
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
