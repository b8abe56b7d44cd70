"""Vectors for kernels: sixteen trials side by side, one in each lane.

The compiler does not find the parallelism between trials by itself, so the trial kernels say it: ``load`` gives
16 neighbouring elements of an array as one value, and ``+ - / >``, ``where``, ``larger``, ``smaller`` work on all
lanes at once. In compiled code such a value is a vector of LLVM, which becomes AVX-512, AVX2, SSE or NEON
instructions, whichever the processor has; the results are the same bits on each. Without the compiler
(``NUMBA_DISABLE_JIT=1``) it is a numpy array of 16 elements, and the functions below are what is run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

__all__ = ["LANES", "Lanes", "any_lane", "as_float", "fill", "larger", "load", "smaller", "store", "where"]

LANES = 16
# A value of 16 lanes: a vector in compiled code, an array else.
Lanes: TypeAlias = Any


def load(array: Any, at: int) -> Any:
    """Return the 16 elements of ``array`` (one dimension) from index ``at`` on."""
    return array[at : at + LANES].copy()


def store(array: Any, at: int, value: Any) -> None:
    """Write ``value`` to the 16 elements of ``array`` from index ``at`` on."""
    array[at : at + LANES] = value


def fill(array: Any, value: Any) -> Any:
    """Return ``value`` in every lane, in the type of ``array``'s elements."""
    return np.full(LANES, value, dtype=array.dtype)


def where(mask: Any, a: Any, b: Any) -> Any:
    """Return lane by lane ``a`` where ``mask`` holds, else ``b``."""
    return np.where(mask, a, b)


def larger(a: Any, b: Any) -> Any:
    """Return lane by lane the larger of two."""
    return np.maximum(a, b)


def smaller(a: Any, b: Any) -> Any:
    """Return lane by lane the smaller of two."""
    return np.minimum(a, b)


def as_float(a: Any) -> Any:
    """Return whole numbers as float64."""
    return a.astype(np.float64)


def any_lane(mask: Any) -> bool:
    """Return whether ``mask`` holds in at least one lane."""
    return bool(mask.any())


class _Lanes(types.Type):
    """The type of 16 elements of ``dtype`` in compiled code."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype}, {LANES})")


_ELEMENTS = {
    types.int32: ir.IntType(32),
    types.int64: ir.IntType(64),
    types.float64: ir.DoubleType(),
    types.boolean: ir.IntType(1),
}


def _vector(dtype: Any) -> ir.VectorType:
    return ir.VectorType(_ELEMENTS[dtype], LANES)


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: _Lanes) -> None:
        super().__init__(manager, lanes, _vector(lanes.dtype))  # type: ignore[no-untyped-call]  # numba is not typed


register_model(_Lanes)(_LanesModel)


def _address(context: Any, builder: Any, array_type: Any, args: Any) -> tuple[Any, int]:
    """Return the address of element ``args[1]`` of ``args[0]`` as a vector, and its alignment in bytes."""
    array = context.make_array(array_type)(context, builder, args[0])
    address = builder.gep(array.data, [args[1]])
    return builder.bitcast(address, _vector(array_type.dtype).as_pointer()), array_type.dtype.bitwidth // 8


def _typed_load(_context: Any, array: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, alignment = _address(context, builder, signature.args[0], args)
        return builder.load(address, align=alignment)

    return _Lanes(array.dtype)(array, types.intp), generate


def _typed_store(_context: Any, array: Any, _at: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, alignment = _address(context, builder, signature.args[0], args)
        builder.store(args[2], address, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, _Lanes(array.dtype)), generate


def _typed_fill(_context: Any, array: Any, _value: Any) -> Any:
    vector = _vector(array.dtype)

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        nothing = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(nothing, args[1], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    return _Lanes(array.dtype)(array, array.dtype), generate


def _typed_where(_context: Any, mask: Any, a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return a(mask, a, a), generate


def _typed_as_float(_context: Any, a: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], _vector(types.float64))

    return _Lanes(types.float64)(a), generate


def _typed_any(_context: Any, mask: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask), generate


def _compare(builder: Any, dtype: Any, sign: str, args: Any) -> Any:
    if dtype == types.float64:
        return builder.fcmp_ordered(sign, *args)
    return builder.icmp_signed(sign, *args)


def _typed_greater(_context: Any, a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _compare(builder, signature.args[0].dtype, ">", args)

    return _Lanes(types.boolean)(a, a), generate


def _typed_choice(sign: str) -> Callable[..., Any]:
    def typed(_context: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compare(builder, signature.args[0].dtype, sign, args), *args)

        return a(a, a), generate

    return typed


def _typed_arithmetic(instruction: str) -> Callable[..., Any]:
    def typed(_context: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
            prefix = "f" if signature.args[0].dtype == types.float64 else ""
            return getattr(builder, prefix + instruction)(*args)

        return a(a, a), generate

    return typed


def _functions(arguments: int, pairs: Iterable[tuple[Callable[..., Any], Any]]) -> None:
    """Tell the compiler which vector instruction each function of one, two or three arguments stands for."""
    for function, on_lanes in pairs:
        overload(function)(_typed_call(arguments, on_lanes))


# The compiler translates the inner function of each pair and checks that both take the same arguments.
def _typed_call(arguments: int, on_lanes: Any) -> Callable[..., Any]:
    if arguments == 1:
        return lambda a: lambda a: on_lanes(a)  # noqa: ARG005, PLW0108 (see above)
    if arguments == 2:
        return lambda a, b: lambda a, b: on_lanes(a, b)  # noqa: ARG005, PLW0108 (see above)
    return lambda a, b, c: lambda a, b, c: on_lanes(a, b, c)  # noqa: ARG005, PLW0108 (see above)


def _operators(pairs: Iterable[tuple[Callable[..., Any], Any]]) -> None:
    """Tell the compiler what an operator means between two values of lanes."""
    for sign, on_lanes in pairs:
        overload(sign)(_typed_operator(on_lanes))


def _typed_operator(on_lanes: Any) -> Callable[..., Any]:
    def call(a: Any, b: Any) -> Any:
        return on_lanes(a, b)

    def typed(a: Any, b: Any) -> Any:
        return call if isinstance(a, _Lanes) and a == b else None

    return typed


_functions(1, ((as_float, intrinsic(_typed_as_float)), (any_lane, intrinsic(_typed_any))))
_functions(2, ((load, intrinsic(_typed_load)), (fill, intrinsic(_typed_fill))))
_functions(2, ((larger, intrinsic(_typed_choice(">"))), (smaller, intrinsic(_typed_choice("<")))))
_functions(3, ((store, intrinsic(_typed_store)), (where, intrinsic(_typed_where))))
_operators(
    (sign, intrinsic(_typed_arithmetic(name)))
    for sign, name in (
        (operator.add, "add"),
        (operator.sub, "sub"),
        (operator.truediv, "div"),
    )
)
_operators([(operator.gt, intrinsic(_typed_greater))])
