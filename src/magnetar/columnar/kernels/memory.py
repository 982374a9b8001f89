"""Numbers in memory by address, for kernels that consist of many small functions.

A numba array that is passed to a function costs reference counting at every call, ten times what reading a number
costs (measured, docs/decisions/011-schemas-in-spark.md). These are loads and stores of one machine instruction each.
Nothing is checked: the caller knows what is there, and keeps it alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]  # publishes no types
from numba import types
from numba.extending import intrinsic

from magnetar.columnar.kernels.compiled import kernel

_WORD = ir.IntType(64)


def _load(width: int, real: Any = None) -> Any:
    def made(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], (real or ir.IntType(width)).as_pointer())
            found = builder.load(place, align=1)
            if real is not None:
                return builder.fpext(found, ir.DoubleType())
            return found if width == 64 else builder.zext(found, _WORD)

        return (types.int64 if real is None else types.float64)(types.int64), generate

    return made


def _store(width: int, kind: Any = types.int64, target: Any = None) -> Any:
    def made(context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = arguments[1]
            if target is not None:
                number = builder.fptrunc(number, target) if width == 32 else number
            elif width < 64:
                number = builder.trunc(number, ir.IntType(width))
            place = builder.inttoptr(arguments[0], number.type.as_pointer())
            builder.store(number, place, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, kind), generate

    return made


if TYPE_CHECKING:

    def load8(address: int) -> int:
        """Load one byte, 0 to 255."""

    def load32(address: int) -> int:
        """Load four bytes, little-endian, without a sign."""

    def load64(address: int) -> int:
        """Load eight bytes, little-endian, with a sign."""

    def load_float(address: int) -> float:
        """Load an IEEE float of four bytes."""

    def store8(address: int, value: int) -> None:
        """Store the lowest byte."""

    def store32(address: int, value: int) -> None:
        """Store the lowest four bytes."""

    def store64(address: int, value: int) -> None:
        """Store eight bytes."""

    def store_float(address: int, value: float) -> None:
        """Store an IEEE float of four bytes."""

    def store_double(address: int, value: float) -> None:
        """Store an IEEE float of eight bytes."""

else:
    load8 = intrinsic(_load(8))
    load32 = intrinsic(_load(32))
    load64 = intrinsic(_load(64))
    load_float = intrinsic(_load(32, ir.FloatType()))
    store8 = intrinsic(_store(8))
    store32 = intrinsic(_store(32))
    store64 = intrinsic(_store(64))
    store_float = intrinsic(_store(32, types.float64, ir.FloatType()))
    store_double = intrinsic(_store(64, types.float64, ir.DoubleType()))


@kernel
def word(table: int, index: int) -> int:
    """Read a number of a table of int64."""
    return load64(table + (index << 3))


@kernel
def put(table: int, index: int, value: int) -> None:
    """Write a number into a table of int64."""
    store64(table + (index << 3), value)


@kernel
def copied(source: int, target: int, size: int) -> int:
    """Copy bytes, and return 128 or more if any of them is."""
    seen = 0
    for index in range(size):
        byte = load8(source + index)
        store8(target + index, byte)
        seen |= byte
    return seen
