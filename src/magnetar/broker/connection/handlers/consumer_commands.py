"""The commands of consumers: permits, acknowledgements, redelivery, seek, close (rules of group 5).

The acknowledgements of one wake-up are gathered per consumer and handed over together; any other command hands them
over first, so that the order stays the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from magnetar.broker.connection.handlers import transaction_commands
from magnetar.broker.connection.open_handles import OpenConsumer, PendingOpen
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.ports import EntryRun
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.model.errors import MagnetarError, MetadataError, PersistenceError, ProtocolError, ServerError
from magnetar.model.ids import Position
from magnetar.protocol import commands as c
from magnetar.protocol.codec import PARTS_MAX
from magnetar.protocol.stored_metadata import batch_size
from magnetar.protocol.unparsed_commands import parts_of

_UNITS_OF_PIECE: Final = 100
"""Units of work (:mod:`magnetar.broker.connection.bounds.turns`) that one piece takes."""
_ENTRIES_OF_UNIT: Final = 8
"""Entries of a run of ACKs that are a unit of work."""
_IDS_OF_UNIT: Final = 4
"""Ids that are looked up one by one and are a unit of work."""
_INT32_MAX: Final = (1 << 31) - 1
"""Permits above this are negative numbers to Apache Pulsar."""


def acknowledge(session: Session, ack: c.CommandAck) -> None:
    """Handle ACK. A consumer id that is not open gets nothing, not even an answer (rule 1.3.5)."""
    held = session.consumers.get(ack.consumer_id)
    if held is None or held.__class__ is not OpenConsumer:
        return
    ids = ack.message_ids
    if len(ids) == 1 and ack.request_id is None and ack.ack_type is c.AckType.Individual and ack.txn is None:
        message_id = ids[0]
        ledger = held.ledger
        if message_id.ledger == ledger.id and 0 <= message_id.entry < ledger.entries and not message_id.ack_set:
            if not held.acks:
                session.acking.append(held)
            held.acks.append(ledger.ordinal + message_id.entry)
            return
    session.hand_over_acks()
    _acknowledge(session, held, ack)


def acknowledge_run(session: Session, run: c.AckRun) -> Iterator[int]:
    """Handle many ACKs of one consumer: with an addition for each if its ledger is known to have all the entries."""
    held = session.consumers.get(run.consumer_id)
    if held is None or held.__class__ is not OpenConsumer:
        return iter(())
    entries = run.entries
    if run.ledger != held.ledger.id:
        held.exact(c.MessageIdData(run.ledger, entries[0]))  # if there is such an entry, its ledger is known then
    ledger = held.ledger
    if run.ledger == ledger.id and max(entries) < ledger.entries:
        if not held.acks:
            session.acking.append(held)
        first = ledger.ordinal
        held.acks += [first + entry for entry in entries]
        return iter((len(entries) // _ENTRIES_OF_UNIT,))
    session.hand_over_acks()
    _acknowledge(session, held, run.together())
    return iter((len(entries) // _IDS_OF_UNIT,))


def lengthy(session: Session, command: c.UnparsedCommand) -> Iterator[int]:
    """Handle ACK or REDELIVER of thousands of ids, a piece at a time."""
    whole: c.CommandAck | None = None
    for piece in parts_of(command):
        if piece is None:
            pass
        elif isinstance(piece, c.CommandRedeliverUnacknowledgedMessages):
            redeliver(session, piece)
        elif piece.txn is None:
            acknowledge(session, piece)
        else:
            # a transaction reserves all of them or none
            whole = _joined(whole, piece)
        yield _UNITS_OF_PIECE
    session.hand_over_acks()
    if whole is not None:
        acknowledge(session, whole)


def _joined(first: c.CommandAck | None, second: c.CommandAck) -> c.CommandAck:
    if first is None:
        return second
    ids = first.message_ids + second.message_ids
    if len(ids) > PARTS_MAX:
        raise ProtocolError(f"ACK of more than {PARTS_MAX} ids in one transaction")
    return second._replace(message_ids=ids)


def _acknowledge(session: Session, held: OpenConsumer, ack: c.CommandAck) -> None:
    def durable() -> None:
        session.send(c.CommandAckResponse(ack.consumer_id, request_id=ack.request_id))

    done = durable if ack.request_id is not None else None
    if ack.txn is not None:
        transaction_commands.acknowledge(session, held, ack, ack.txn)
        return
    if ack.validation_error is not None:
        session.complain(
            "unreadable", "consumer %d could not read %s: %s", ack.consumer_id, ack.message_ids[:3],
            ack.validation_error.name,
        )  # fmt: skip
    subscription, consumer = held.subscription, held.consumer
    if ack.ack_type is c.AckType.Cumulative:
        _acknowledge_until(held, ack, done or _nothing)
        return
    whole: list[int] = []
    parts: list[IndexAck] = []
    for message_id in ack.message_ids:
        ordinal = held.exact(message_id)
        if ordinal is None:
            continue
        if message_id.ack_set:
            parts.append(IndexAck(ordinal, message_id.ack_set, message_id.batch_size))
        else:
            whole.append(ordinal)
    if parts:
        subscription.acks.take_sets(consumer, parts, None if whole else done)
    if whole or not parts:
        subscription.acks.take(consumer, whole, done)


def _acknowledge_until(held: OpenConsumer, ack: c.CommandAck, done: Callable[[], None]) -> None:
    if len(ack.message_ids) != 1:
        done()
        return
    message_id = ack.message_ids[0]
    ordinal = held.exact(message_id)
    batch = None
    if ordinal is None:
        ordinal = held.before(message_id)
        if ordinal is None:
            done()
            return
    elif message_id.ack_set:
        batch = IndexAck(ordinal, message_id.ack_set, message_id.batch_size)
    held.subscription.acks.take_until(held.consumer, ordinal, done, batch)


def flow(session: Session, command: c.CommandFlow) -> None:
    """Handle FLOW: permits must be positive, but FLOW for an unknown consumer is ignored (rule 5.2.1)."""
    held = session.consumers.get(command.consumer_id)
    if isinstance(held, OpenConsumer):
        if not 0 < command.permits <= _INT32_MAX:
            raise ProtocolError(f"FLOW of {command.permits} permits for consumer {command.consumer_id}")
        held.subscription.flow(held.consumer, command.permits)


def redeliver(session: Session, command: c.CommandRedeliverUnacknowledgedMessages) -> Iterator[int]:
    """Handle REDELIVER_UNACKNOWLEDGED_MESSAGES (rules of 5.8)."""
    held = session.consumers.get(command.consumer_id)
    ids = command.message_ids
    if isinstance(held, OpenConsumer):
        held.subscription.redeliver(held.consumer, held.exact_all(ids) if ids else None, command.consumer_epoch)
    return iter((len(ids),))


def close_consumer(session: Session, command: c.CommandCloseConsumer) -> None:
    """Handle CLOSE_CONSUMER with SUCCESS, also for an unknown id (rule 1.3.9)."""
    held = session.consumers.pop(command.consumer_id, None)
    if isinstance(held, PendingOpen):
        held.cancelled = True
    elif held is not None:
        held.leave()
    session.send(c.CommandSuccess(command.request_id))


def unsubscribe(session: Session, command: c.CommandUnsubscribe) -> None:
    """Handle UNSUBSCRIBE: the last consumer deletes the subscription (rule 5.9.9)."""
    held = session.consumers.get(command.consumer_id)
    if not isinstance(held, OpenConsumer):
        session.error(command.request_id, ServerError.MetadataError, "Consumer not found")
        return
    try:
        held.subscription.check_unsubscribe(held.consumer, force=command.force)
    except MagnetarError as error:
        session.fail(command.request_id, error)
        return
    del session.consumers[command.consumer_id]
    held.subscription.remove_consumer(held.consumer)
    held.topic.delete_subscription(held.subscription.name, lambda: session.send(c.CommandSuccess(command.request_id)))


def seek(session: Session, command: c.CommandSeek) -> None:
    """Handle SEEK: CLOSE_CONSUMER first, then SUCCESS when the new position is durable (rules of 5.9)."""
    held = session.consumers.get(command.consumer_id)
    if not isinstance(held, OpenConsumer):
        session.error(command.request_id, ServerError.MetadataError, "Consumer not found")
        return

    def to(found: int | Exception, ack_set: tuple[int, ...] = (), batch_size: int = 0) -> None:
        if isinstance(found, Exception):
            session.fail(command.request_id, PersistenceError(str(found)))
            return
        try:
            held.subscription.seek_to(
                found, lambda: session.send(c.CommandSuccess(command.request_id)), ack_set, batch_size
            )
        except MagnetarError as error:
            session.fail(command.request_id, error)

    message_id = command.message_id
    if message_id is not None:
        to(
            held.log.ordinal(Position(message_id.ledger, message_id.entry)),
            message_id.ack_set,
            message_id.batch_size,
        )
    elif command.message_publish_time is not None:
        held.topic.find_time(command.message_publish_time, to, held.subscription)
    else:
        session.fail(command.request_id, MetadataError("Message id and message publish time were not present"))


def last_message_id(session: Session, command: c.CommandGetLastMessageId) -> None:
    """GET_LAST_MESSAGE_ID (rule 5.9.12): the batch index needs the entry's metadata."""
    held = session.consumers.get(command.consumer_id)
    if not isinstance(held, OpenConsumer):
        session.error(command.request_id, ServerError.MetadataError, "Consumer not found")
        return
    topic = held.topic
    try:
        last = topic.last_position()
    except MagnetarError as error:
        session.fail(command.request_id, error)
        return
    mark = held.log.position(held.subscription.mark_delete)
    marked = c.MessageIdData(mark.ledger, mark.entry)
    shown = topic.last_visible()

    def compacted(found: tuple[Position, int] | Exception) -> None:
        if isinstance(found, Exception):
            session.fail(command.request_id, PersistenceError(str(found)))
        else:
            answer(*found)

    def answer(last: Position, batch_index: int) -> None:
        found = c.MessageIdData(last.ledger, last.entry, topic.name.partition_index, batch_index)
        session.send(c.CommandGetLastMessageIdResponse(found, command.request_id, marked))

    log = held.log
    if isinstance(log, CompactedSource) and log.last_compacted(shown, compacted):
        return
    if last.ledger < 0:
        answer(last, -1)
        return

    def read(result: EntryRun | Exception) -> None:
        if isinstance(result, Exception):
            session.fail(command.request_id, PersistenceError(str(result)))
            return
        messages = batch_size(result.entries[0])
        answer(last, -1 if messages is None else messages - 1)

    run = topic.log.cached(shown, 1, 1)
    if run is not None:
        read(run)
    else:
        topic.log.read(shown, 1, 1, read)


def consumer_stats(session: Session, command: c.CommandConsumerStats) -> None:
    """Handle CONSUMER_STATS (rule 1.3.12)."""
    held = session.consumers.get(command.consumer_id)
    if not isinstance(held, OpenConsumer):
        session.send(
            c.CommandConsumerStatsResponse(
                command.request_id, ServerError.ConsumerNotFound, f"Consumer {command.consumer_id} not found"
            )
        )
        return
    stats = held.subscription.stats(held.consumer)
    (mine,) = stats.consumers
    session.send(
        c.CommandConsumerStatsResponse(
            command.request_id,
            msg_rate_out=0.0,
            msg_throughput_out=0.0,
            msg_rate_redeliver=0.0,
            consumer_name=mine.name,
            available_permits=mine.available_permits,
            unacked_messages=mine.unacked_messages,
            blocked_consumer_on_unacked_msgs=mine.blocked_on_unacked,
            address=session.address,
            connected_since=str(mine.info.get("connectedSince", "")),
            type=stats.type,
            msg_rate_expired=0.0,
            msg_backlog=stats.backlog_entries,
            message_ack_rate=0.0,
        )
    )


def _nothing() -> None: ...
