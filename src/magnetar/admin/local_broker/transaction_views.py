"""Transactions for REST, in the shapes of Apache Pulsar 4.0.8 (rule 9.17)."""

from __future__ import annotations

from collections.abc import Mapping

from magnetar.admin.local_broker.loaded_topics import written
from magnetar.admin.local_broker.stats.internal_stats import log_stats
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.broker.transaction_coordinator import LOG, TC_ID
from magnetar.model.errors import NotFoundError, ServiceNotReadyError, SubscriptionNotFoundError, TopicNotFoundError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.protocol.commands import TxnId
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.transactions.coordinator import Transaction, txn_text
from magnetar.transactions.pending_acks import PendingAcks, TransactionAcks


class TransactionViews:
    """Implements :class:`magnetar.admin.ports.TransactionsPort` over a broker with transactions."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._coordinator = service.coordinator

    # the coordinator ---------------------------------------------------------------------------------------------

    def coordinators(self) -> list[Json]:
        """The coordinators with their brokers; there is one."""
        return [{"id": TC_ID, "brokerServiceUrl": self._service.service_url or self._service.service_url_tls}]

    def coordinator_stats(self) -> JsonObject:
        """State and counts of the only coordinator."""
        coordinator = self._coordinator
        began, ended = coordinator.recovered_ms
        return {
            "state": "Ready",
            "leastSigBits": coordinator.last_id,
            "lowWaterMark": coordinator.decisions.low_water_mark(),
            "ongoingTxnSize": len(coordinator.open),
            "recoverStartTime": began,
            "recoverEndTime": ended,
        }

    def coordinator_internals(self, coordinator: int) -> JsonObject:
        """The log of a coordinator. Raises NotFoundError."""
        if coordinator != TC_ID:
            raise NotFoundError(f"Transaction coordinator not found! coordinator id : {coordinator}")
        log = self._service.store.find_log(LOG)
        return {} if log is None else {"transactionLogStats": _internals(LOG, log)}

    def owner(self, txn: TxnId) -> str | None:
        """The role that began an open transaction, empty if it had none; ``None`` if there is no such transaction."""
        found = self._coordinator.decisions.living.all.get(txn)
        return None if found is None else found.owner

    def transaction(self, txn: TxnId) -> JsonObject:
        """Metadata of one transaction. Raises TransactionCoordinatorNotFoundError, TransactionNotFoundError."""
        self._coordinator.require(txn.most)
        return self._metadata(self._coordinator.decisions.get(txn))

    def slow(self, timeout_ms: int) -> JsonObject:
        """Open transactions that may stay so for longer than ``timeout_ms``."""
        return {txn_text(t.id): self._metadata(t) for t in self._coordinator.open if t.ttl_ms > timeout_ms}

    def _metadata(self, found: Transaction) -> JsonObject:
        acked: JsonObject = {}
        for name, subscription in found.subscriptions:
            of_topic = acked.setdefault(name, {})
            assert isinstance(of_topic, dict)
            topic = self._service.find(TopicName.parse(name))
            of_topic[subscription] = {} if topic is None else _held(topic, subscription, found.id)
        produced: JsonObject = {}
        for name in found.partitions:
            topic = self._service.find(TopicName.parse(name))
            produced[name] = {"aborted": False} if topic is None else _in_buffer(topic, found.id)
        return {
            "txnId": txn_text(found.id),
            "status": found.status.value,
            "openTimestamp": found.opened_ms,
            "timeoutAt": found.ttl_ms,
            "producedPartitions": produced,
            "ackedPartitions": acked,
        }

    async def abort(self, txn: TxnId) -> None:
        """Abort a transaction of any owner; return when that is durable. Raises PersistenceError after a while."""
        await written(lambda done: self._coordinator.end(txn, commit=False, owner=None, done=done))

    # topics ------------------------------------------------------------------------------------------------------

    def buffer(self, name: TopicName, *, low_water_marks: bool) -> JsonObject:
        """Raises TopicNotFoundError."""
        topic = self._topic(name)
        buffer = None if topic.transactions is None else topic.transactions.buffer
        readable = topic.log.end if buffer is None or buffer.limit is None else buffer.limit
        began, ended = self._coordinator.recovered_ms
        return {
            "state": "NoSnapshot" if buffer is None else "Ready",
            "maxReadPosition": _before(topic, readable),
            "lastSnapshotTimestamps": 0,
            **self._low_water_marks(low_water_marks),
            "ongoingTxnSize": 0 if buffer is None else len(buffer.open),
            "recoverStartTime": began,
            "recoverEndTime": ended,
            "totalAbortedTransactions": 0 if buffer is None else buffer.aborted,
            "snapshotType": "Single",
        }

    def buffer_internals(self, name: TopicName) -> JsonObject:
        """The log that holds a topic's buffer: its own, of which it is a part. Raises TopicNotFoundError."""
        log = self._topic(name).log
        return {"snapshotType": "Single", "singleSnapshotSystemTopicInternalStats": _internals(name.fqn, log)}

    def pending_ack_internals(self, name: TopicName, subscription: str) -> JsonObject:
        """The log that holds pending acknowledgements, which is the topic's.

        Raises TopicNotFoundError, SubscriptionNotFoundError, and ServiceNotReadyError before the first of them.
        """
        topic = self._topic(name)
        if subscription not in topic.subscriptions:
            raise SubscriptionNotFoundError(f"{name.fqn} not found subscription : {subscription}")
        if _pending(topic, subscription) is None:
            raise ServiceNotReadyError("Pending ack have not init success!")
        return {"pendingAckLogStats": _internals(name.fqn, topic.log)}

    def in_buffer(self, name: TopicName, txn: TxnId) -> JsonObject:
        """Messages of one transaction in a topic. Raises TopicNotFoundError."""
        return _in_buffer(self._topic(name), txn)

    def pending_acks(self, name: TopicName, subscription: str, *, low_water_marks: bool) -> JsonObject:
        """Raises TopicNotFoundError, SubscriptionNotFoundError."""
        topic = self._topic(name)
        _subscription(topic, subscription)
        pending = _pending(topic, subscription)
        began, ended = self._coordinator.recovered_ms if topic.transactions is not None else (0, 0)
        return {
            "state": "None" if topic.transactions is None else "Ready",
            **self._low_water_marks(low_water_marks),
            "ongoingTxnSize": 0 if pending is None else len(pending.held),
            "recoverStartTime": began,
            "recoverEndTime": ended,
        }

    def in_pending_acks(self, name: TopicName, subscription: str, txn: TxnId) -> JsonObject:
        """Raises TopicNotFoundError, SubscriptionNotFoundError."""
        topic = self._topic(name)
        _subscription(topic, subscription)
        return _held(topic, subscription, txn)

    def position(self, name: TopicName, subscription: str, at: Position, batch_index: int | None) -> JsonObject:
        """Whether a pending acknowledgement holds a message. Raises TopicNotFoundError, SubscriptionNotFoundError."""
        topic = self._topic(name)
        cursor = _subscription(topic, subscription).cursor
        if topic.transactions is None:
            return {"state": "PendingAckNotReady"}
        ordinal = topic.log.exact_ordinal(at)
        if ordinal is None:
            return {"state": "InvalidPosition"}
        if cursor.acknowledged(ordinal):
            return {"state": "MarkDelete"}
        pending = _pending(topic, subscription)
        if pending is None:
            return {"state": "NotInPendingAck"}
        part = pending.parts.get(ordinal)
        held = ordinal in pending.whole or (
            part is not None and (batch_index is None or bool(part.taken >> batch_index & 1))
        )
        return {"state": "PendingAck" if held else "NotInPendingAck"}

    def _low_water_marks(self, wanted: bool) -> Mapping[str, Json]:
        return {"lowWaterMarks": {str(TC_ID): self._coordinator.decisions.low_water_mark()}} if wanted else {}

    def _topic(self, name: TopicName) -> Topic:
        topic = self._service.find(name)
        if topic is None:
            raise TopicNotFoundError(f"Topic not found {name.fqn}")
        return topic


def _internals(name: str, log: ManagedLedger) -> JsonObject:
    return {"managedLedgerName": name, "managedLedgerInternalStats": log_stats(log)}


def _subscription(topic: Topic, name: str) -> Subscription:
    found = topic.subscriptions.get(name)
    if found is None:
        raise SubscriptionNotFoundError(f"Subscription {name} not found on {topic.name.fqn}")
    return found


def _pending(topic: Topic, subscription: str) -> PendingAcks | None:
    return None if topic.transactions is None else topic.transactions.beside.now.get(subscription)


def _held(topic: Topic, subscription: str, txn: TxnId) -> JsonObject:
    pending = _pending(topic, subscription)
    held = TransactionAcks() if pending is None else pending.held.get(txn, TransactionAcks())
    if held.until is None:
        return {}
    _, taken, size = held.until
    left = ((1 << size) - 1) & ~taken
    # of a batch that is not taken as a whole, the last message before what is left
    of_batch = f":{(left & -left).bit_length() - 2}" if left else ""
    return {"cumulativeAckPosition": _text(topic, held.until.ordinal) + of_batch}


def _in_buffer(topic: Topic, txn: TxnId) -> JsonObject:
    first = None if topic.transactions is None else topic.transactions.buffer.first_of(txn)
    found: JsonObject = {} if first is None else {"startPosition": _text(topic, first)}
    return {**found, "aborted": False}


def _text(topic: Topic, ordinal: int) -> str:
    position = topic.log.position(ordinal)
    return f"{position.ledger}:{position.entry}"


def _before(topic: Topic, ordinal: int) -> str:
    """The position before this one; in an empty ledger, the one before its first entry."""
    log = topic.log
    if ordinal > log.first:
        return _text(topic, ordinal - 1)
    return f"{log.table.ledgers[-1].id}:-1"
