"""What belongs to the process that runs a broker, and is asked through it: its ports' counters, its passes, its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from magnetar.model.errors import NotAvailableError

if TYPE_CHECKING:
    from magnetar.storage.backup.running_backup import RunningBackups


class Surroundings:
    """Filled in by the program around a broker; without one there is nothing to count and no process to stop."""

    def __init__(self) -> None:
        self.tls_counters: Callable[[], Mapping[str, int]] = dict
        """What the ports with TLS count."""
        self.check_quotas: Callable[[], Awaitable[None]] = _at_once
        """Enforces all backlog quotas now. Raises ServiceNotReadyError while nothing may be evicted."""
        self.request_stop: Callable[[], None] = _not_ours
        """Begins a clean stop of the process. Raises NotAvailableError if it is not the broker's."""
        self.backups: RunningBackups | None = None
        """Writes backups of the store and the metadata; None where they are not files."""


async def _at_once() -> None: ...


def _not_ours() -> None:
    raise NotAvailableError("this broker is part of another program, which alone can stop it")
