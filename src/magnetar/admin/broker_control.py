"""What the REST interface asks the broker to do as a whole: stop, look at quotas, say what it serves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject


class BrokerControlPort(Protocol):
    """The process and its passes over all topics."""

    def loaded_topics(self) -> Iterable[TopicName]:
        """The topics that are in memory, of both domains."""
        ...

    async def check_backlog_quotas(self) -> None:
        """Enforce the backlog quotas of all loaded topics now. Raises ServiceNotReadyError while nothing may go."""
        ...

    async def begin_backup(self, name: str) -> JsonObject:
        """Begin a backup; its status when its moment has come. Raises ConflictError while another is written."""
        ...

    def backup_status(self) -> JsonObject:
        """The status of the backup that is being written, or of the last one. Raises NotFoundError."""
        ...

    def stop(self) -> None:
        """Begin a clean stop; what is asked already is answered. Raises NotAvailableError where others stop it."""
        ...
