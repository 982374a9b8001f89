"""Modules that few processes need: imported in a thread when they are, so that the loop goes on meanwhile.

A process without such requests does without their memory, and the first request delays no other one: the inner
client of REST and WebSocket has 170 modules, a quarter of a second of the loop.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module


class LaterModules:
    """Some of them; an ``import`` in a function finds them made after :meth:`ready`."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._importing = asyncio.Lock()
        self._imported = False

    async def ready(self) -> None:
        """Return when all are imported. Raises ImportError, and tries again the next time."""
        if self._imported:
            return
        async with self._importing:
            if self._imported:
                return
            # a thread of its own: all that the loop has may wait for what is imported here
            thread = ThreadPoolExecutor(1, "imports")
            try:
                await asyncio.get_running_loop().run_in_executor(thread, self._import)
            finally:
                thread.shutdown(wait=False)
            self._imported = True

    def _import(self) -> None:
        for name in self._names:
            import_module(name)
