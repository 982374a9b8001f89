"""How loops over bytes become machine code: numba, compiled once per machine and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compiled when first called. No Python object inside, so other threads run meanwhile."""
    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    found: Kernel = compiled
    return found
