"""What the REST interface asks the broker to do as a whole: stop, look at quotas, say what it serves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from magnetar.model.names import TopicName


class BrokerControlPort(Protocol):
    """The process and its passes over all topics."""

    def loaded_topics(self) -> Iterable[TopicName]:
        """The topics that are in memory, of both domains."""
        ...

    async def check_backlog_quotas(self) -> None:
        """Enforce the backlog quotas of all loaded topics now. Raises ServiceNotReadyError while nothing may go."""
        ...

    def stop(self) -> None:
        """Begin a clean stop; what is asked already is answered. Raises NotAvailableError where others stop it."""
        ...
