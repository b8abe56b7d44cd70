"""The one place for compiler options of the kernels.

``fastmath`` stays off: the order of floating-point operations is part of the results, which are compared byte
by byte. ``nogil`` lets threads of one process run kernels side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code on disk."""
    compiled = numba.njit(cache=True, error_model="numpy", fastmath=False, nogil=True)(function)
    return cast("F", compiled)
