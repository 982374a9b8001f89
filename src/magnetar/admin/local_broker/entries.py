"""Single entries for the REST interface, awaited instead of called back."""

from __future__ import annotations

from functools import partial

from magnetar.broker.topic.topic import Topic
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
    """The id of the last message in an entry, as REST shows ids; -1:-1 before the first entry."""
    log = topic.log
    if ordinal < log.first:
        return _message_id(-1, -1, topic.name.partition_index, None)
    position = log.position(ordinal)
    messages = batch_size(await entry_at(log, ordinal))
    return _message_id(position.ledger, position.entry, topic.name.partition_index, messages)


def position_id(topic: Topic, ordinal: int) -> JsonObject:
    """The id of an entry that may not exist yet; nothing is read."""
    position = topic.log.position(ordinal)
    return _message_id(position.ledger, position.entry, topic.name.partition_index, None)


def _message_id(ledger: int, entry: int, partition: int, messages: int | None) -> JsonObject:
    return {
        "ledgerId": ledger,
        "entryId": entry,
        "partitionIndex": partition,
        "batchIndex": -1 if messages is None else messages - 1,
        "batchSize": messages or 0,
    }
