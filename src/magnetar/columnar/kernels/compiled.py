"""How loops over bytes become machine code: numba, compiled once per machine and kept on disk.

A loop in Python costs 500 to 1000 ns per message, the same loop compiled 20 to 60 (docs/decisions/010-columnar.md).
Importing numba takes a quarter of a second and the first compilation of all kernels some seconds, so modules with
kernels are imported by what needs them, when it needs them.

What is compiled is kept in a directory whose name is a digest of the sources of `magnetar.columnar`, since numba
notices only a change of the very file a kernel is in, not of the kernels it calls. It lies where NUMBA_CACHE_DIR says,
or beside the sources, or, where that cannot be written, in a directory of the user's own under the temporary one: numba
executes what it finds there, so no other user may write to it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numba
import numba.core.cgutils
import numba.extending
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# What kernels work with. They mix numpy's numbers with Python's as machine words, for which mypy has no words.
Uint8Array: TypeAlias = Any
"""NDArray[uint8], read-only where it is read from."""
Int64Array: TypeAlias = Any
"""NDArray[int64]."""
Int32Array: TypeAlias = Any
"""NDArray[int32]."""
_numba: Any = numba
"""Its types do not know all of its options."""
int64: Any = np.int64
uint64: Any = np.uint64


def cache_directory(package: Path, temporary: Path, chosen: str = "") -> Path:
    """Return where compiled code is kept; ``chosen`` is the user's own choice, if any."""
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(source.read_bytes())
    name = f"magnetar-{digest.hexdigest()[:16]}"
    if chosen:
        return Path(chosen) / name
    beside = package / "__pycache__"
    if os.access(beside if beside.exists() else package, os.W_OK | os.X_OK):
        return beside / name
    own = temporary / f"magnetar-kernels-{os.getuid()}"
    try:
        own.mkdir(mode=0o700, exist_ok=True)
        found = own.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return own / name
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="magnetar-kernels-", dir=temporary)) / name


_KEPT_IN: Final = str(
    cache_directory(Path(__file__).parents[1], Path(tempfile.gettempdir()), os.environ.get("NUMBA_CACHE_DIR", ""))
)


def kernel(function: Kernel) -> Kernel:
    """Compile the function when it is first called. It holds no Python object, so other threads run meanwhile.

    Kernels make no arrays: without numba's reference counts (an atomic operation per array and call) they are several
    times as fast.
    """
    # The place is looked up when the function is decorated; other users of numba in this process keep theirs.
    before, _numba.config.CACHE_DIR = _numba.config.CACHE_DIR, _KEPT_IN
    try:
        compiled: Kernel = _numba.njit(cache=True, nogil=True, _nrt=False)(function)
    finally:
        _numba.config.CACHE_DIR = before
    return compiled


def _copy_bytes(_: Any, target: Any, to: Any, source: Any, start: Any, size: Any) -> Any:
    """Generate a memcpy between two arrays of bytes; the caller knows that there is room and no overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, at, out_of, begin, count = arguments
        first = context.make_array(signature.args[0])(context, builder, into)
        second = context.make_array(signature.args[2])(context, builder, out_of)
        _numba.core.cgutils.raw_memcpy(
            builder, builder.gep(first.data, [at]), builder.gep(second.data, [begin]), count, 1
        )
        return context.get_dummy_value()

    types = _numba.types
    return types.void(target, types.intp, source, types.intp, types.intp), generate


copy_bytes: Any = _numba.extending.intrinsic(_copy_bytes)
