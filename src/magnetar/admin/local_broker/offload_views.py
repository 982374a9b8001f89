"""Offloaded ledgers of this process, for REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from magnetar.admin.local_broker.loaded_topics import durable
from magnetar.admin.values.coercion import number
from magnetar.broker.offloader import complete
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import (
    ConflictError,
    ForbiddenError,
    InvalidValueError,
    MagnetarError,
    PersistenceError,
    TopicNotFoundError,
)
from magnetar.model.ids import Position
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.offload.object_store import folder_of, require_name
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger


class OffloadViews:
    """Implements :class:`magnetar.admin.ports.OffloadsPort`."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service

    def begin(self, name: TopicName, until: Position) -> None:
        """Copy the ledgers before ``until``. Raises TopicNotFoundError, ConflictError."""
        self._service.offloader.begin(self._topic(name), until)

    def status(self, name: TopicName) -> JsonObject:
        """The state of the last run in the shape of Apache Pulsar 4.0.8, also before any run."""
        self._topic(name)
        found = self._service.offloader.status(name)
        at = found.first_unoffloaded
        first: JsonObject = {
            "ledgerId": at.ledger, "entryId": at.entry, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0,
        }  # fmt: skip
        return {"status": found.status, "lastError": found.last_error, "firstUnoffloadedMessage": first}

    async def scan(self, namespace: NamespaceName) -> AsyncIterator[JsonObject]:
        """Every copy of a ledger of a namespace's topics, and whether its object is there and has its size."""
        for piece in self._service.directory.pieces(namespace, ["persistent"], system=True):
            for text in piece:
                log = self._service.store.find_log(text)
                for ledger in [] if log is None else list(log.table.ledgers):
                    if ledger.offload is not None:
                        yield await self._object(text, ledger, ledger.offload)
            await asyncio.sleep(0)

    async def _object(self, topic: str, ledger: Ledger, copy: Offload) -> JsonObject:
        return {
            "ledger": ledger.id,
            "name": copy.name,
            "uri": copy.key,
            "size": copy.size,
            "lastModified": copy.recorded_ms,
            "managedLedgerName": topic,
            "numEntries": ledger.entries,
            "offloaded": True,
            "status": await self._service.offloader.found(copy),
        }

    def ledgers(self, name: TopicName) -> JsonObject:
        """Every ledger with the place of its copy, or whether it can be copied; and the object store for copies."""
        managed = self._topic(name).log
        return {
            "url": self._service.settings.offloadUrl,
            "log": managed.id,
            "ledgers": [_ledger(managed, ledger) for ledger in managed.table.ledgers],
        }

    async def adopt(self, name: TopicName, ledger: int, object_name: str) -> JsonObject:
        """See :meth:`magnetar.broker.offloader.Offloader.adopt`."""
        _require_own(name, object_name, folder_of(name))
        try:
            copy = await self._service.offloader.adopt(self._topic(name), ledger, object_name)
        except FileNotFoundError as error:
            raise ConflictError(f"there is no such object: {error}") from error
        except OSError as error:
            raise PersistenceError(f"the object cannot be read: {error}") from error
        return _copy(copy)

    async def plan_compaction(self, name: TopicName) -> JsonObject:
        """The plan of a compaction job: what it reads and where its result goes. Raises ConflictError during a run."""
        topic = self._topic(name)
        plan, log = topic.compaction().plan(), topic.log
        # a reader of the directory counts a block only if another one follows it (docs/disk.md)
        await durable(lambda done, failed: log.barrier(done, failed))
        await durable(lambda done, _: log.write_birth(done))
        return {
            "url": self._service.offloader.url,
            "log": log.id,
            "generation": plan.generation,
            "view": plan.view,
            "start": plan.start,
            "horizon": plan.horizon,
            "startPosition": list(log.position(plan.start)),
            "horizonPosition": list(log.position(plan.horizon)),
            "retainKeyless": self._service.settings.topicCompactionRetainNullKey,
        }

    def adopt_view(self, name: TopicName, given: JsonObject) -> None:
        """Begin to adopt the view of a job. Raises ConflictError, InvalidValueError, PreconditionFailedError."""
        files = given.get("files")
        if not isinstance(files, list):
            raise InvalidValueError('expected "files" as a list')
        offloading = self._service.offloader
        copies = [_file(offloading.required_place(), file) for file in files]
        for _, copy in copies:
            _require_own(name, copy.name, f"compaction/{folder_of(name)}")
        generation, horizon, removed = (
            number(given.get(word), f'"{word}"') for word in ("generation", "horizon", "removed")
        )
        self._topic(name).compaction().begin_adoption(generation, horizon, removed, offloading.result(copies))

    def _topic(self, name: TopicName) -> Topic:
        found = self._service.find(name)
        if found is None:
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return found


def _ledger(managed: ManagedLedger, ledger: Ledger) -> JsonObject:
    try:
        complete(managed, ledger.id)
        refused = ""
    except MagnetarError as error:
        refused = str(error)
    return {
        "ledgerId": ledger.id,
        "entries": ledger.entries,
        "messages": ledger.messages,
        "size": ledger.bytes,
        "firstIndex": ledger.index,
        "ordinal": ledger.ordinal,
        "copy": None if ledger.offload is None else _copy(ledger.offload),
        "refused": refused,
    }


def _require_own(topic: TopicName, object_name: str, folder: str) -> None:
    """Raise ForbiddenError unless the object lies in the topic's own folder: others hold messages of other topics."""
    if not require_name(object_name).startswith(folder + "/"):
        raise ForbiddenError(f"{object_name[:200]!r} does not lie in {folder}/, where objects of {topic.fqn} belong")


def _file(url: str, given: Json) -> tuple[int, Offload]:
    if not isinstance(given, dict):
        raise InvalidValueError("expected a JSON object for each file")
    name, digest = given.get("name"), given.get("digest")
    if not isinstance(name, str) or not isinstance(digest, str):
        raise InvalidValueError('expected "name" and "digest" of each file as texts')
    unit, entries, size = (number(given.get(word), f'"{word}"') for word in ("unit", "entries", "bytes"))
    return unit, Offload(url, require_name(name), digest, entries, size, 0, 0)


def _copy(copy: Offload) -> JsonObject:
    return {
        "url": copy.url,
        "name": copy.name,
        "digest": copy.digest,
        "size": copy.size,
        "recorded": copy.recorded_ms,
        "released": copy.released,
    }
