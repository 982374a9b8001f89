"""How loops over bytes become machine code: numba, compiled once per machine and kept on disk.

A loop in Python costs 500 to 1000 ns per message, the same loop compiled 20 to 60 (docs/decisions/010-columnar.md).
Importing numba takes a quarter of a second and the first compilation of all kernels some seconds, so modules with
kernels are imported by what needs them, when it needs them.

What is compiled is kept in a directory whose name is a digest of the sources of `magnetar.columnar`, since numba
notices only a change of the very file a kernel is in, not of the kernels it calls. It lies where NUMBA_CACHE_DIR says,
or beside the sources, or, where that cannot be written, in a directory of the user's own under the temporary one: numba
executes what it finds there, so no other user may write to it. What was compiled at installation beside the
sources (`python -m magnetar.columnar.compilation`) is used by all: it is as trusted as the sources are.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numba
import numba.core.caching
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


_PACKAGE: Final = Path(__file__).parents[1]
_KEPT_IN: Final = cache_directory(_PACKAGE, Path(tempfile.gettempdir()), os.environ.get("NUMBA_CACHE_DIR", ""))
_INSTALLED: Final = _PACKAGE / "__pycache__" / _KEPT_IN.name
_kernels: Final[list[Any]] = []
"""All of this process."""


def forms() -> int:
    """Return how many forms of kernels this process has, from the disk or compiled here."""
    return sum(len(one.signatures) for one in _kernels)


def compilations() -> list[str]:
    """Return the kernels that this process has compiled, and not found on disk: one name for each form."""
    return [one.__name__ for one in _kernels for _ in one.stats.cache_misses.elements()]


class KeptKernel:
    """The compiled form of one kernel on disk, in the place of numba's own cache of a function.

    It is looked for in each of ``places`` and kept in the last. A disk that refuses costs the time of a compilation in
    the next process, and no more.
    """

    def __init__(self, function: Callable[..., Any], places: Iterable[Path]) -> None:
        self._caches = [_cache_in(place)(function) for place in places]

    @property
    def cache_path(self) -> str:
        """Return where the form is kept."""
        found: str = self._caches[-1].cache_path
        return found

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the form for these types of arguments, or None."""
        for cache in self._caches:
            # Half of a file, or one of another version, is as good as none, whatever numba says of it.
            with contextlib.suppress(Exception):
                if (found := cache.load_overload(signature, target)) is not None:
                    return found
        return None

    def save_overload(self, signature: Any, form: Any) -> None:
        """Keep a form."""
        with contextlib.suppress(OSError):
            self._caches[-1].save_overload(signature, form)


@functools.cache
def _cache_in(place: Path) -> Any:
    """Return numba's cache of a function with one directory, which is made when something is kept."""

    class Place(numba.core.caching._CacheLocator):
        def __init__(self, source: str, line: int) -> None:
            self._py_file = source
            self._line = line

        @classmethod
        def from_function(cls, function: Any, source: str) -> Place:
            return cls(source, function.__code__.co_firstlineno)

        def get_cache_path(self) -> str:
            folder = Path(self._py_file).parent
            return str(place / "-".join(folder.parts[len(_PACKAGE.parts) - 1 :]))

        def get_source_stamp(self) -> str:
            # The directory's name is a digest of all sources; what is elsewhere (jobs) has its own in the key.
            return hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()

        def get_disambiguator(self) -> str:
            return str(self._line)

    class Implementation(numba.core.caching.CompileResultCacheImpl):
        _locator_classes: list[Any] = [Place]  # noqa: RUF012 - numba declares it so

    class Forms(numba.core.caching.Cache):
        _impl_class: Any = Implementation

    return Forms


def kernel(function: Kernel) -> Kernel:
    """Compile the function when it is first called. It holds no Python object, so other threads run meanwhile.

    Kernels make no arrays: without numba's reference counts (an atomic operation per array and call) they are several
    times as fast.
    """
    made: Any = _numba.njit(nogil=True, _nrt=False)(function)
    made._cache = KeptKernel(function, dict.fromkeys((_INSTALLED, _KEPT_IN)))
    _kernels.append(made)
    compiled: Kernel = made
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
