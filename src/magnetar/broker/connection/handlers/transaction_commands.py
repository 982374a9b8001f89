"""The commands of transactions: those of the coordinator, and SEND and ACK with a transaction's id (rules of group 9).

Every request is answered in its own response type, with the error in it; only a broker without transactions answers
ERROR (rule 9.1). What a transaction has sent or acknowledged makes its topic a participant, whether or not the client
has added it before; a transaction that is not open is refused (docs/decisions/007).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from magnetar.authorization.access import ClusterAccess
from magnetar.authorization.decision import Decision
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.broker.transaction_coordinator import TransactionCoordinator
from magnetar.model.errors import ForeignTransactionError, MagnetarError, NotAllowedError, ServerError
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c
from magnetar.transactions.coordinator import txn_text
from magnetar.transactions.pending_acks import PartialBatch, partial_batch

_DISABLED: Final = "Transactions are not enabled."
_NO_ACKS: Final = (
    "org.apache.pulsar.broker.service.BrokerServiceException$NotAllowedException: Server don't support transaction ack!"
)


def _coordinator(session: Session, request_id: int) -> TransactionCoordinator | None:
    if session.service.settings.transactionCoordinatorEnabled:
        return session.service.coordinator
    session.fail(request_id, NotAllowedError(_DISABLED))
    return None


def _refuse(
    session: Session, response: Callable[..., Any], request_id: int, txn: c.TxnId | None, error: MagnetarError
) -> None:
    session.complain(error.code.name, "request %d refused: %s", request_id, error)
    if txn is not None:
        _record(session, txn, error)
    session.send(response(request_id, txn, error.code, str(error)))


def _record(session: Session, txn: c.TxnId, error: MagnetarError) -> None:
    """Tell the audit log who tried to use another role's transaction."""
    authorizer = session.service.authorizer
    if authorizer is not None and isinstance(error, ForeignTransactionError):
        access = ClusterAccess(f"use transaction {txn_text(txn)}, which another role began")
        authorizer.record(session.caller, access, Decision(False, str(error)), "transaction")


def principal_of(session: Session) -> str:
    """The owner of the client's transactions (rule 9.7): without authentication all clients are the same."""
    caller = session.caller
    return caller.original_role or caller.role or ""


def owner_of(session: Session) -> str | None:
    """Whose transactions the client may use: its own, or everybody's (``None``)."""
    authorizer = session.service.authorizer
    if authorizer is not None and authorizer.superuser(session.caller):
        return None
    return principal_of(session)


# the coordinator -------------------------------------------------------------------------------------------------


def connect_coordinator(session: Session, command: c.CommandTcClientConnectRequest) -> None:
    """Handle TC_CLIENT_CONNECT_REQUEST (rule 9.2)."""
    coordinator = _coordinator(session, command.request_id)
    if coordinator is None:
        return
    try:
        coordinator.require(command.tc_id)
    except MagnetarError as error:
        text = (
            f"{error} It would be the one of partition {command.tc_id} of transaction_coordinator_assign, which is not "
            "served here. Please redo the lookup."
        )
        session.send(c.CommandTcClientConnectResponse(command.request_id, ServerError.ServiceNotReady, text))
        return
    session.send(c.CommandTcClientConnectResponse(command.request_id))


def begin(session: Session, command: c.CommandNewTxn) -> None:
    """Handle NEW_TXN: ``txn_ttl_seconds`` are milliseconds (rule 9.3). Above the limit there is no answer (rule
    9.4)."""
    coordinator = _coordinator(session, command.request_id)
    if coordinator is None:
        return
    request_id = command.request_id
    try:
        begun = coordinator.begin(
            command.tc_id, command.txn_ttl_seconds, principal_of(session),
            lambda txn: session.send(c.CommandNewTxnResponse(request_id, txn)),
        )  # fmt: skip
    except MagnetarError as error:
        _refuse(session, c.CommandNewTxnResponse, request_id, c.TxnId(command.tc_id, 0), error)
        return
    if not begun:
        session.complain(
            "TooManyTransactions", "NEW_TXN is not answered: maxActiveTransactionsPerCoordinator (%d) are open",
            session.service.settings.maxActiveTransactionsPerCoordinator,
        )  # fmt: skip


def _on_open(
    session: Session,
    command: c.CommandAddPartitionToTxn | c.CommandAddSubscriptionToTxn | c.CommandEndTxn,
    response: Callable[..., Any],
    act: Callable[[TransactionCoordinator, Callable[[], None]], object],
) -> None:
    """Do ``act`` on the transaction that the command names; send ``response`` when it is done, or with its error."""
    coordinator = _coordinator(session, command.request_id)
    if coordinator is None:
        return
    request_id, txn = command.request_id, command.txn
    try:
        act(coordinator, lambda: session.send(response(request_id, txn)))
    except MagnetarError as error:
        _refuse(session, response, request_id, txn, error)


def add_partitions(session: Session, command: c.CommandAddPartitionToTxn) -> None:
    """Handle ADD_PARTITION_TO_TXN (rule 9.5)."""
    _on_open(
        session, command, c.CommandAddPartitionToTxnResponse,
        lambda coordinator, done: coordinator.add_partitions(
            command.txn, command.partitions, owner_of(session), done
        ),
    )  # fmt: skip


def add_subscriptions(session: Session, command: c.CommandAddSubscriptionToTxn) -> None:
    """Handle ADD_SUBSCRIPTION_TO_TXN (rule 9.5)."""
    names = [(one.topic, one.subscription) for one in command.subscriptions]
    _on_open(
        session, command, c.CommandAddSubscriptionToTxnResponse,
        lambda coordinator, done: coordinator.add_subscriptions(command.txn, names, owner_of(session), done),
    )  # fmt: skip


def end(session: Session, command: c.CommandEndTxn) -> None:
    """Handle END_TXN: the answer follows when the end is durable and visible everywhere (rule 9.6)."""
    commit = command.action is not c.TxnAction.ABORT
    _on_open(
        session, command, c.CommandEndTxnResponse,
        lambda coordinator, done: coordinator.end(command.txn, commit=commit, owner=owner_of(session), done=done),
    )  # fmt: skip


def end_on_partition(session: Session, command: c.CommandEndTxnOnPartition) -> None:
    """Handle END_TXN_ON_PARTITION from other brokers' coordinators."""
    _end_on(session, c.CommandEndTxnOnPartitionResponse, command.request_id, command.txn)


def end_on_subscription(session: Session, command: c.CommandEndTxnOnSubscription) -> None:
    """Handle END_TXN_ON_SUBSCRIPTION from other brokers' coordinators."""
    _end_on(session, c.CommandEndTxnOnSubscriptionResponse, command.request_id, command.txn)


def _end_on(session: Session, response: Callable[..., Any], request_id: int, txn: c.TxnId) -> None:
    """A transaction that is not open here needs no end (rule 9.15); one that is open ends as a whole."""
    coordinator = _coordinator(session, request_id)
    if coordinator is None:
        return
    if coordinator.is_open(txn):
        text = f"transaction {txn_text(txn)} belongs to the coordinator of this broker: send END_TXN"
        _refuse(session, response, request_id, txn, NotAllowedError(text))
    else:
        session.send(response(request_id, txn))


# sending and acknowledging ---------------------------------------------------------------------------------------


def send(session: Session, producer: Producer, message: c.CommandSend) -> bool:
    """Publish a SEND of an open transaction; False if it has to be refused (:func:`why_refused`)."""
    txn, service = message.txn, session.service
    topic = service.topics.get(producer.log.name)
    if txn is None or topic is None or _closed(session, txn):
        return False
    try:
        service.coordinator.sends(txn, topic.name.fqn, owner_of(session))
    except MagnetarError as error:
        _record(session, txn, error)
        return False
    ordinal = topic.log.next
    transactions = topic.transacting()
    producer.publish(message)
    if topic.log.next > ordinal:
        transactions.wrote(txn, ordinal)
    return True


def _closed(session: Session, txn: c.TxnId) -> bool:
    service = session.service
    return not (service.settings.transactionCoordinatorEnabled and service.coordinator.is_open(txn))


def why_refused(session: Session, producer: Producer, txn: c.TxnId) -> str:
    """The reason, for SEND_ERROR."""
    if producer.log.name not in session.service.topics:
        return f"{producer.log.name} takes no part in transactions: only persistent topics do"
    if not session.service.settings.transactionCoordinatorEnabled:
        return "Transaction buffer disable!"
    return f"Transaction {txn_text(txn)} is not open: it has ended or timed out, begin another one"


def acknowledge(session: Session, held: OpenConsumer, ack: c.CommandAck, txn: c.TxnId) -> None:
    """Handle ACK of a transaction: its messages are reserved until it ends (rule 9.12)."""

    def answer(error: MagnetarError | None = None) -> None:
        if ack.request_id is None:
            return
        if error is None:
            session.send(c.CommandAckResponse(ack.consumer_id, request_id=ack.request_id))
        else:
            session.send(c.CommandAckResponse(ack.consumer_id, None, error.code, str(error), request_id=ack.request_id))

    service, topic, subscription = session.service, held.topic, held.subscription
    enabled = service.settings.transactionCoordinatorEnabled
    if not enabled or not isinstance(topic, Topic):
        answer(NotAllowedError(_NO_ACKS))
        return
    assert isinstance(subscription, Subscription)
    try:
        # refused before it is noted, so that a conflict leaves no participant without acknowledgements
        service.coordinator.require(txn.most)
        owner = owner_of(session)
        service.coordinator.decisions.require_open(txn, owner)
        _reserve(topic, subscription, held, ack, txn, answer)
        service.coordinator.acknowledges(txn, topic.name.fqn, subscription.name, owner)
    except MagnetarError as error:
        session.complain(error.code.name, "consumer %d: acknowledgement refused: %s", ack.consumer_id, error)
        _record(session, txn, error)
        answer(error)


def _reserve(
    topic: Topic,
    subscription: Subscription,
    held: OpenConsumer,
    ack: c.CommandAck,
    txn: c.TxnId,
    done: Callable[[], None],
) -> None:
    transactions = topic.transacting()
    if ack.ack_type is c.AckType.Cumulative:
        if len(ack.message_ids) != 1 or subscription.sub_type not in (SubType.Exclusive, SubType.Failover):
            done()
            return
        until = _until(held, subscription, ack.message_ids[0])
        if until is None:
            done()
        else:
            transactions.acknowledge_until(subscription, txn, until, done)
        return
    whole: dict[int, None] = {}
    parts: dict[int, PartialBatch] = {}
    for message_id in ack.message_ids:
        ordinal = held.exact(message_id)
        if ordinal is None:
            continue
        if message_id.ack_set:
            part = _part(subscription, ordinal, message_id)
            parts[ordinal] = part.joined(parts.get(ordinal))
        else:
            whole[ordinal] = None
    only_parts = [part for part in parts.values() if part.ordinal not in whole]
    transactions.acknowledge(subscription, held.consumer, txn, list(whole), only_parts, done)


def _until(held: OpenConsumer, subscription: Subscription, message_id: c.MessageIdData) -> PartialBatch | None:
    """An id that does not exist acknowledges the entries before its place, behind all none (rule 5.7.13)."""
    ordinal = held.exact(message_id)
    if ordinal is None:
        before = held.before(message_id)
        return None if before is None else PartialBatch(before, 0, 0)
    if message_id.ack_set:
        return _part(subscription, ordinal, message_id)
    return PartialBatch(ordinal, 0, 0)


def _part(subscription: Subscription, ordinal: int, message_id: c.MessageIdData) -> PartialBatch:
    """Raises NotAllowedError for a batch larger than the entry can be."""
    left = subscription.acks.remaining(ordinal, message_id.ack_set, message_id.batch_size)
    if left is None:
        raise NotAllowedError(
            f"message {message_id.ledger}:{message_id.entry} cannot be known to be a batch of as many messages as "
            "acknowledged: receive it again"
        )
    return partial_batch(ordinal, left.words, left.size)
