"""A client that waits for a silence of its broker waits until a script says that there is one, not for a time.

After a time, a test whose broker had to wait for the processor would have another conversation than it says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Final

import pytest

from magnetar.client.connection import Connection, Read

_PATIENCE: Final = 600.0
"""What the client takes for its `_SILENCE`; nothing else waits for half as long."""
_STEP: Final = 0.01
_TOO_LONG: Final = 30.0


class ToldSilence:
    """The silence of one broker, for the module that asks for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
        monkeypatch.setattr(module, "_SILENCE", _PATIENCE)
        self._now, self._noticed = threading.Event(), threading.Event()
        real = Connection._received

        def received(connection: Connection, read: Callable[[], Read], wait: float) -> Read | None:
            if wait < _PATIENCE / 2:
                return real(connection, read, wait)
            while True:
                silent = self._now.is_set()  # before it reads: what was sent before comes first
                found = real(connection, read, _STEP)
                if found is not None or silent:
                    break
            if found is None:
                self._noticed.set()
            return found

        monkeypatch.setattr(Connection, "_received", received)

    def begin(self) -> None:
        """Be silent from now on; returns when the client has noticed it."""
        self._noticed.clear()
        self._now.set()
        assert self._noticed.wait(_TOO_LONG), "the client does not wait for a silence"

    def end(self) -> None:
        self._now.clear()
