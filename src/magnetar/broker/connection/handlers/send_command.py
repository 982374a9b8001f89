"""SEND: the hottest handler of the broker: one dictionary look-up, a few comparisons, one append (rules of 3.3)."""

from __future__ import annotations

from typing import Final

from magnetar.broker.connection.handlers import transaction_commands
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.receipt_order import OrderedReceipts
from magnetar.model.errors import (
    MagnetarError,
    ProtocolError,
    ServerError,
)
from magnetar.protocol import commands as c

_CPP: Final = "Pulsar-CPP"
"""How the version of the C++ client, and of those built on it, begins."""
_FOR_GOOD: Final = frozenset((ServerError.NotAllowedError, ServerError.MetadataError, ServerError.ChecksumError))
"""Codes with which a message is refused however often it is sent."""


def send(session: Session, message: c.CommandSend) -> None:
    """Handle SEND: the receipt follows when the entry is durable."""
    producer = session.producers.get(message.producer_id)
    if producer is None or producer.__class__ is not Producer:
        _send_without_producer(session, message)
        return
    try:
        if not message.checksum_ok or message.txn is not None or message.message_id is not None:
            if (
                message.txn is None
                or message.message_id is not None
                or not message.checksum_ok
                or not transaction_commands.send(session, producer, message)
            ):
                _send_refused(session, producer, message)
                return
        else:
            producer.publish(message)
    except MagnetarError as refused:
        _refuse(session, message, refused.code, str(refused))
        return
    if message.is_chunk:
        _chunk_published(session, producer)
    session.pending_publishes += 1


def send_run(session: Session, run: c.SendRun) -> None:
    """Handle many SENDs of one producer: all at once if its topic asks nothing of each of them."""
    producer = session.producers.get(run.producer_id)
    if producer is not None and producer.__class__ is Producer and producer.store_run(run):
        session.pending_publishes += len(run.entries)
        return
    sends = iter(run.commands())
    for message in sends:
        send(session, message)
        if session.halted:
            session.put_back(sends)
            return


def _chunk_published(session: Session, producer: Producer) -> None:
    producer.chunks_in += 1
    topic = session.service.topics.get(producer.log.name)
    if topic is not None:
        topic.chunking.published_one()


def _send_without_producer(session: Session, message: c.CommandSend) -> None:
    closed_at = session.recently_closed.get(message.producer_id)
    if closed_at is not None:
        if session.loop.time() - closed_at < session.service.settings.keepAliveIntervalSeconds:
            return
        del session.recently_closed[message.producer_id]
    raise ProtocolError(f"SEND for producer {message.producer_id}, which is not open on this connection")


def _send_refused(session: Session, producer: Producer, message: c.CommandSend) -> None:
    if not message.checksum_ok:
        code, text = ServerError.ChecksumError, "Checksum failed on the broker"
    elif message.txn is not None and message.message_id is None:
        code, text = ServerError.NotAllowedError, transaction_commands.why_refused(session, producer, message.txn)
    else:
        code, text = ServerError.NotAllowedError, "Only shadow topic supports sending messages with messageId"
    session.complain(code.name, "producer %d: message %d refused: %s", message.producer_id, message.sequence_id, text)
    _refuse(session, message, code, text)


def _refuse(session: Session, message: c.CommandSend, code: ServerError, text: str) -> None:
    """Answer with a SEND_ERROR by which the client gives up this message and no other.

    The Java client does so for NotAllowedError. The C++ client, and what is built on it (Python, Node), takes every
    code but one as the end of the connection, reconnects and sends the same message again, for ever; with ChecksumError
    it fails that message (docs/decisions/019). A message that may be sent again is refused at once, with its own code.
    """
    if code not in _FOR_GOOD:
        session.send(c.CommandSendError(message.producer_id, message.sequence_id, code, text))
        return
    if code is not ServerError.ChecksumError and session.client_version.startswith(_CPP):
        text, code = f"{code.name}: {text}", ServerError.ChecksumError
    refusal = c.CommandSendError(message.producer_id, message.sequence_id, code, text)
    producer = session.producers.get(message.producer_id)
    connection = producer.connection if isinstance(producer, Producer) else None
    if isinstance(connection, OrderedReceipts):
        connection = connection.behind
    if isinstance(connection, ProducerOutbox):
        connection.refuse(refusal)
    else:
        session.send(refusal)
