"""Single entries for the REST interface, awaited instead of called back."""

from __future__ import annotations

from functools import partial

from magnetar.broker.topic.topic import Topic
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.policies import JsonObject
from magnetar.protocol.stored_metadata import batch_size, stored_publish_time
from magnetar.runtime.callbacks import answered
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.ledgers.stored_run import StoredRun


async def entry_at(log: ManagedLedger, ordinal: int) -> bytes:
    """Read one entry from memory or disk; a trimmed one is replaced by that of ``log.first``. Raises read errors."""
    run = log.cached(ordinal, 1, 1)
    if run is not None:
        return run.entries[0]
    read: StoredRun = await answered(partial(log.read, ordinal, 1, 1))
    return read.entries[0]


async def publish_time_at(log: ManagedLedger, ordinal: int) -> int:
    """The publish time of an entry; that of its ledger's opening if the entry cannot be read."""
    time = stored_publish_time(await entry_at(log, ordinal))
    return log.table.holding(ordinal).opened_ms if time is None else time


async def message_id_at(topic: Topic, ordinal: int) -> JsonObject:
    """The id of the last message in an entry, as REST shows ids.

    Before the first entry it is -1:-1, and of a terminated topic that never had one what its termination answered.
    """
    log, partition = topic.log, topic.name.partition_index
    if ordinal < log.first:
        ended = topic.termination.last if topic.termination.terminated else EARLIEST
        return message_id(ended if ended.entry < 0 else EARLIEST, partition)
    return message_id(log.position(ordinal), partition, batch_size(await entry_at(log, ordinal)))


def position_id(topic: Topic, ordinal: int) -> JsonObject:
    """The id of an entry that may not exist yet; nothing is read."""
    return message_id(topic.log.position(ordinal), topic.name.partition_index)


def message_id(position: Position, partition: int = -1, messages: int | None = None) -> JsonObject:
    """An id as REST shows it: that of the last of so many messages of a batch, or of a single one."""
    return {
        "ledgerId": position.ledger,
        "entryId": position.entry,
        "partitionIndex": partition,
        "batchIndex": -1 if messages is None else messages - 1,
        "batchSize": messages or 0,
    }
