"""Single stored messages of a topic, and the count of a backlog by reading it.

An entry is shown as Apache Pulsar 4.0.8 shows it (rule 11.5.3): its payload uncompressed, a batch still as one,
and its metadata in headers, with the index of its last message where the broker keeps it. An encrypted payload stays
as it is, and so does one that cannot be uncompressed or read: a header gives the reason. Unreadable metadata are shown
as a part of the payload.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
from typing import Final

from magnetar.admin.values.stored_message import StoredMessage
from magnetar.broker.topic.subscription.backlog import run_at
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import NotFoundError, PreconditionFailedError
from magnetar.model.ids import Position
from magnetar.model.policies import JsonObject
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, decompress
from magnetar.protocol.entries import EntryMetadata, payload_of
from magnetar.protocol.frames import ENTRY_HEADER_SIZE
from magnetar.protocol.stored_metadata import read_metadata
from magnetar.transactions.markers import ABORT

_ENTRIES_PER_TURN: Final = 1000
_SIZE_MAX: Final = 64 << 20
UNREADABLE: Final = "X-Magnetar-Unreadable"
"""The header that gives the reason why the payload is shown as it is stored."""


async def peek(topic: Topic, subscription: Subscription | None, number: int, *, indexed: bool) -> StoredMessage:
    """The ``number``-th entry (from 1) that the subscription has not acknowledged. Raises NotFoundError.

    Without a subscription it is what a new one at the beginning of the topic would get.
    """
    log = topic.log
    if subscription is None:
        if log.first + number <= log.end:
            return await _shown(topic, indexed, log.first + number - 1)
        raise NotFoundError("Message not found")
    cursor = subscription.cursor
    at = cursor.next_unacknowledged(max(cursor.mark_delete + 1, log.first))
    left = number - 1
    while at < log.end:
        stop = cursor.next_acknowledged(at, min(log.end, at + left + 1))
        if at + left < stop:
            return await _shown(topic, indexed, at + left)
        left -= stop - at
        at = cursor.next_unacknowledged(stop)
    raise NotFoundError("Message not found")


async def examine(topic: Topic, number: int, *, from_start: bool, indexed: bool) -> StoredMessage:
    """The ``number``-th entry from one end, the first of them for 0. Raises PreconditionFailed, NotFoundError."""
    log = topic.log
    if log.end <= log.first:
        raise PreconditionFailedError("Could not examine messages due to the total message is zero")
    steps = max(number - 1, 0)
    if from_start:
        return await _shown(topic, indexed, min(log.first + steps, log.end - 1))
    if log.end - 1 - steps < log.first:
        raise NotFoundError("Message not found")
    return await _shown(topic, indexed, log.end - 1 - steps)


async def by_id(topic: Topic, position: Position, *, indexed: bool) -> StoredMessage:
    """The entry at exactly that position. Raises NotFoundError."""
    ordinal = topic.log.exact_ordinal(position)
    if ordinal is None or ordinal >= topic.log.end:
        raise NotFoundError("Message id not found")
    return await _shown(topic, indexed, ordinal)


async def analyze(topic: Topic, subscription: Subscription, start: Position | None, most: int) -> JsonObject:
    """Count unacknowledged entries and messages, from ``start`` on if given, by reading at most ``most`` entries."""
    log, cursor = topic.log, subscription.cursor
    at = cursor.mark_delete + 1
    if start is not None:
        at = max(at, log.ordinal(start))
    entries = messages = 0
    first = last = -1
    at = cursor.next_unacknowledged(max(at, log.first))
    while at < log.end and entries < most:
        stop = cursor.next_acknowledged(at, min(log.end, at + _ENTRIES_PER_TURN))
        run = await run_at(log, at, stop - at)
        count = min(len(run.entries), most - entries)
        first = run.first if first < 0 else first
        last = run.first + count - 1
        entries += count
        messages += count if run.counts is None else sum(run.counts[:count])
        at = cursor.next_unacknowledged(last + 1)
        await asyncio.sleep(0)
    found: JsonObject = {
        "entries": entries,
        "messages": messages,
        "filterRejectedEntries": 0,
        "filterAcceptedEntries": entries,
        "filterRescheduledEntries": 0,
        "filterRejectedMessages": 0,
        "filterAcceptedMessages": messages,
        "filterRescheduledMessages": 0,
        "aborted": at < log.end,
    }
    if entries:
        found["firstMessageId"], found["lastMessageId"] = str(log.position(first)), str(log.position(last))
    return found


async def _shown(topic: Topic, indexed: bool, ordinal: int) -> StoredMessage:
    run = await run_at(topic.log, ordinal, 1)
    entry = run.entries[0]
    found = {"X-Pulsar-Message-ID": str(topic.log.position(ordinal))}
    messages = 1 if run.counts is None else run.counts[0]
    if indexed and run.message_index >= 0 and messages:
        found["X-Pulsar-Broker-Entry-METADATA-index"] = str(run.message_index + messages - 1)
    metadata = read_metadata(entry)
    if metadata is None:
        return StoredMessage(entry, {**found, UNREADABLE: "its metadata are no MessageMetadata"})
    payload = payload_of(entry)
    headers = {**found, **headers_of(metadata, len(payload))}
    hidden = any(ordinal in rule.dead(ordinal, ordinal + 1) for rule in topic.dispatch_rules)
    if metadata.txn is not None or hidden:  # clients need not write into an entry which transaction it is of
        aborted = hidden if metadata.marker_type is None else metadata.marker_type == ABORT
        headers["X-Pulsar-txn-aborted"] = _word(aborted)
    uncommitted = any(ordinal >= rule.readable_end(topic.log.end) for rule in topic.dispatch_rules)
    headers["X-Pulsar-txn-uncommitted"] = _word(uncommitted)
    if not metadata.encryption_keys and metadata.compression is not CompressionType.NONE:
        try:
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size, _SIZE_MAX)
        except DamagedPayloadError as error:
            headers[UNREADABLE] = _line(str(error))
    return StoredMessage(payload, headers)


def headers_of(metadata: EntryMetadata, stored_size: int) -> dict[str, str]:
    """Headers for all metadata that are set, and a few that are always there."""
    about = {
        "PROPERTY": json.dumps(dict(metadata.properties), separators=(",", ":")),
        "publish-time": _instant(metadata.publish_time),
        "Is-Encrypted": _word(bool(metadata.encryption_keys)),
        "producer-name": metadata.producer_name,
        "sequence-id": str(metadata.sequence_id),
    }
    if metadata.event_time:
        about["event-time"] = _instant(metadata.event_time)
    if metadata.deliver_at_time is not None:
        about["deliver-at-time"] = _instant(metadata.deliver_at_time)
    if metadata.num_messages_in_batch is not None:
        about["num-batch-message"] = str(metadata.num_messages_in_batch)
        about["batch-size"] = str(stored_size + ENTRY_HEADER_SIZE)
    if metadata.null_value:
        about["null-value"] = "true"
    if metadata.replicated_from is not None:
        about["replicated-from"] = metadata.replicated_from
    if metadata.partition_key is not None:
        about["partition-key"] = metadata.partition_key
        if metadata.partition_key_b64_encoded:
            about["partition-key-b64-encoded"] = "true"
    if metadata.compression is not CompressionType.NONE:
        about["compression"] = metadata.compression.name
    if metadata.uncompressed_size:
        about["uncompressed-size"] = str(metadata.uncompressed_size)
    if metadata.ordering_key is not None:
        about["Base64-ordering-key"] = base64.b64encode(metadata.ordering_key).decode()
    if metadata.marker_type is not None:
        about["marker-type"] = str(metadata.marker_type)
    if metadata.uuid is not None:
        about["uuid"] = metadata.uuid
        about["chunk-id"] = str(metadata.chunk_id)
        about["num-chunks-from-msg"] = str(metadata.num_chunks_from_msg)
        about["total-chunk-msg-size"] = str(metadata.total_chunk_msg_size)
    return {f"X-Pulsar-{name}": _line(value) for name, value in about.items()}


def _line(text: str) -> str:
    """A text as one line of Latin letters, as headers have to be; other characters are escaped as in JSON."""
    return text.encode("ascii", "backslashreplace").decode().replace("\r", "\\r").replace("\n", "\\n")


def _instant(ms: int) -> str:
    """A time in ISO format without zeros at the end, as Apache Pulsar writes it."""
    try:
        at = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    text = at.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{ms % 1000:03}".rstrip("0").rstrip(".")
    return f"{text}{fraction}Z"


def _word(value: bool) -> str:
    return str(value).lower()
