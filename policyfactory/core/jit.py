"""The one place for compiler options of the kernels.

``fastmath`` stays off: the order of floating-point operations is part of the results, which are compared byte
by byte. ``nogil`` lets threads of one process run kernels side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.cpu import CPUTargetOptions

from policyfactory.core.compiled import share

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": False, "nogil": True}
_INLINED: dict[str, Any] = {**_OPTIONS, "forceinline": True}
# In every version of numba, but not in its documentation; without it the kernels are slower, and no different.
if hasattr(CPUTargetOptions, "_nrt"):
    _INLINED["_nrt"] = False


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


def _compiled(function: F, options: dict[str, Any]) -> F:
    try:
        dispatcher = numba.njit(**options)(function)
    except RuntimeError:
        # There is no folder that code can be kept in: neither the package's own nor one of the user.
        return cast("F", numba.njit(**{**options, "cache": False})(function))
    share(dispatcher, function)
    return cast("F", dispatcher)
