"""Control of the broker of this process."""

from __future__ import annotations

from collections.abc import Iterable

from magnetar.broker.service import BrokerService
from magnetar.model.errors import NotAvailableError, NotFoundError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.storage.backup.running_backup import BackupStatus, RunningBackups


class LocalControl:
    """Implements :class:`magnetar.admin.broker_control.BrokerControlPort`."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def loaded_topics(self) -> Iterable[TopicName]:
        stored = [topic.name for topic in self._service.topics.values()]
        return [*stored, *(topic.name for topic in self._service.nonpersistent_topics.by_name.values())]

    async def check_backlog_quotas(self) -> None:
        await self._service.surroundings.check_quotas()

    async def begin_backup(self, name: str) -> JsonObject:
        backups = self._backups()
        return _shown(await backups.begin(name), backups.last_whole)

    def backup_status(self) -> JsonObject:
        backups = self._backups()
        if backups.last is None:
            raise NotFoundError("no backup was begun since the broker started")
        return _shown(backups.last, backups.last_whole)

    def _backups(self) -> RunningBackups:
        found = self._service.surroundings.backups
        if found is None:
            raise NotAvailableError("the metadata of this broker are elsewhere: it cannot back them up")
        return found

    def stop(self) -> None:
        self._service.surroundings.request_stop()


def _shown(status: BackupStatus, whole: BackupStatus | None) -> JsonObject:
    return {
        "name": status.name,
        "status": status.state,
        "taken": status.taken_ms,
        "bytes": status.bytes,
        "totalBytes": status.total,
        "lastError": status.error,
        "lastSuccess": "" if whole is None else whole.name,
        "lastSuccessTaken": 0 if whole is None else whole.taken_ms,
    }
