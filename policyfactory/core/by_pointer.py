"""Named tuples that kernels are given behind one pointer.

numba takes a named tuple apart: each array in it is seven or more arguments of every function that is given the tuple,
and of every call. Of the classes that are marked here a kernel gets the address of a structure instead, from which it
loads what it reads. The classes stay named tuples for Python. Kernels read their fields by name; they neither make nor
return such tuples, nor take them apart.

The structure is filled in when Python calls a kernel, and stays as it is until that kernel returns, so that a field is
loaded once and not again in each turn of a loop. What it holds belongs to the caller: no references are counted.

This is numba's extension interface (https://numba.readthedocs.io/en/stable/extending/low-level.html).
"""

# mypy: disable-error-code="misc, no-untyped-call, override, untyped-decorator"
# numba has no types.

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

T = TypeVar("T", bound=type[Any])


class _Pointer(types.Type):
    """What numba knows of a named tuple behind a pointer: the names and the types of its fields."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.fields = fields
        digest = hashlib.sha256(repr([(field, str(type_)) for field, type_ in fields.items()]).encode())
        super().__init__(f"{name}_{digest.hexdigest()[:12]}")


def by_pointer(class_: T) -> T:
    """Let kernels take instances of a class of named tuples behind a pointer."""

    @typeof_impl.register(class_)
    def type_of(tuple_: Any, context: Any) -> _Pointer:
        fields = zip(class_._fields, tuple_, strict=True)
        return _Pointer(class_.__name__, {name: typeof_impl(value, context) for name, value in fields})

    return class_


@register_model(_Pointer)
class _Model(models.PrimitiveModel):
    """An address."""

    def __init__(self, manager: Any, type_: _Pointer) -> None:
        fields = [manager.lookup(field).get_value_type() for field in type_.fields.values()]
        self.content = ir.LiteralStructType(fields)
        super().__init__(manager, type_, self.content.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    """Fields have the types that they had in Python."""

    key = _Pointer

    def generic_resolve(self, type_: _Pointer, name: str) -> Any:
        """Return the type of a field; None if there is no such."""
        return type_.fields.get(name)


@lower_getattr_generic(_Pointer)
def _load(context: Any, builder: Any, type_: _Pointer, pointer: Any, name: str) -> Any:
    position, field = list(type_.fields).index(name), type_.fields[name]

    def load(*indices: int) -> Any:
        value = builder.load(cgutils.gep_inbounds(builder, pointer, 0, position, *indices))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if not isinstance(field, types.Array):
        return load()
    array = context.make_array(field)(context, builder)
    fields = list(context.data_model_manager.lookup(field)._fields)
    for part in ("nitems", "itemsize", "data"):
        setattr(array, part, load(fields.index(part)))
    for part in ("shape", "strides"):
        sizes = [load(fields.index(part), axis) for axis in range(field.ndim)]
        setattr(array, part, cgutils.pack_array(builder, sizes))
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()  # noqa: SLF001 (its documented name)


@unbox(_Pointer)
def _unbox(type_: _Pointer, tuple_: Any, c: Any) -> NativeValue:
    """Fill the structure in, on the stack of what was compiled for Python to call."""
    builder = c.builder
    content = c.context.data_model_manager.lookup(type_).content
    pointer, failed, unboxed = cgutils.alloca_once(builder, content), cgutils.false_bit, []
    for position, field in enumerate(type_.fields.values()):
        native = c.unbox(field, c.pyapi.tuple_getitem(tuple_, position))
        builder.store(native.value, cgutils.gep_inbounds(builder, pointer, 0, position))
        failed = builder.or_(failed, native.is_error)
        unboxed.append((field, native))
    # From here on the structure stays as it is, and is read.
    touch = ir.FunctionType(ir.VoidType(), [pointer.type])
    builder.asm(touch, "", "r,~{memory}", [pointer], side_effect=True)

    def cleanup() -> None:
        # As numba does for an argument: what unboxing has counted as a reference is given back.
        for field, native in reversed(unboxed):
            if native.cleanup is not None:
                native.cleanup()
            if c.context.enable_nrt:
                c.context.nrt.decref(builder, field, native.value)

    return NativeValue(pointer, is_error=failed, cleanup=cleanup)
