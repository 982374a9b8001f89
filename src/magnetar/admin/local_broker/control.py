"""Control of the broker of this process."""

from __future__ import annotations

from collections.abc import Iterable

from magnetar.broker.service import BrokerService
from magnetar.model.names import TopicName


class LocalControl:
    """Implements :class:`magnetar.admin.broker_control.BrokerControlPort`."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def loaded_topics(self) -> Iterable[TopicName]:
        stored = [topic.name for topic in self._service.topics.values()]
        return [*stored, *(topic.name for topic in self._service.nonpersistent_topics.by_name.values())]

    async def check_backlog_quotas(self) -> None:
        await self._service.surroundings.check_quotas()

    def stop(self) -> None:
        self._service.surroundings.request_stop()
