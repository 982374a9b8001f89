"""A topic's part in transactions: what it sent, what its subscriptions hold reserved, and what an end does to both.

The state lives beside the log and outlives an unload (:class:`TransactionFeatureState`); :class:`TopicTransactions`
joins it with a loaded topic. What a transaction's end changes here is noted in the turn of the loop in which it is
decided and takes effect when that block is durable (docs/decisions/007): first the readable end moves, then reserved
acknowledgements go to their cursors or their entries out again, then subscriptions look what they may send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from typing_extensions import override

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.publish.publish_results import PublishResults
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.broker.topic.transactions.isolation import PendingAckRule, ReadCommittedRule, UnreservedIndexes
from magnetar.model.errors import TransactionConflictError
from magnetar.protocol.commands.ids import TxnId
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.transactions.buffer import TransactionBuffer
from magnetar.transactions.coordinator import txn_text
from magnetar.transactions.feature_state import TRANSACTIONS, TransactionFeatureState
from magnetar.transactions.markers import marker
from magnetar.transactions.pending_acks import PartialBatch, PendingAcks, TransactionAcks

log = logging.getLogger(__name__)

Done = Callable[[], None]


class _MarkerProducer:
    """Stands for the producer of markers: it gets no receipts, and no statistics count its bytes."""

    open = False
    msg_in = 0

    def __init__(self, results: PublishResults) -> None:
        self._results = results

    @property
    def bytes_in(self) -> int:
        return 0

    @bytes_in.setter
    def bytes_in(self, size: int) -> None:
        self._results.bytes_in -= size

    @property
    def connection(self) -> _MarkerProducer:
        return self

    def dropped(self, count: int) -> None: ...


class TopicTransactions(TopicFeature):
    """One loaded topic's part in transactions; lives on the event loop."""

    def __init__(
        self, name: str, source: ManagedLedger, subscriptions: Subscriptions, results: PublishResults,
        now_ms: Callable[[], int],
    ) -> None:  # fmt: skip
        self._name = name
        self._log = source
        self._subscriptions = subscriptions
        self._now_ms = now_ms
        self._feature_state = source.feature_state(TRANSACTIONS)
        self.beside = self._feature_state.open(TransactionFeatureState)
        self.beside.on_end_durable = self.carry_out
        self._guards: dict[str, PendingAckRule] = {}
        self._owing: set[tuple[str, TxnId]] = set()
        self._add_marker = _MarkerProducer(results)
        self.buffer: TransactionBuffer = self.beside.settled.buffer
        self.buffer.committed = self.buffer.aborted = 0
        subscriptions.add_dispatch_rule(ReadCommittedRule(self.buffer))
        for subscription, pending in self.beside.now.items():
            if pending and subscription in subscriptions:
                self._guard(subscriptions[subscription], pending)
        self.carry_out()

    @override
    def close(self) -> None:
        """The topic is unloaded; what is in flight is dealt with at the next load."""
        if self.beside.on_end_durable == self.carry_out:
            self.beside.on_end_durable = None

    # sending -----------------------------------------------------------------------------------------------------

    def wrote(self, txn: TxnId, ordinal: int) -> None:
        """An entry of an open transaction was appended in this turn of the loop."""
        last = self.beside.last()
        if last is not None and last[0] == "w" and last[4] == ordinal and last[1:3] == [txn.most, txn.least]:
            last[4] = ordinal + 1
        else:
            self.beside.note(["w", txn.most, txn.least, ordinal, ordinal + 1])
        self._feature_state.touch()

    # acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, subscription: Subscription, consumer: Consumer, txn: TxnId, whole: Sequence[int],
        parts: Sequence[PartialBatch], done: Done,
    ) -> None:  # fmt: skip
        """Reserve; ``done`` when that is durable. Raises TransactionConflictError, then nothing changed (rule 9.12)."""
        cursor = subscription.cursor
        for ordinal in (*whole, *[part.ordinal for part in parts]):
            if cursor.acknowledged(ordinal):
                raise self._conflict(subscription, txn, ordinal, None, "already acked before.")
        pending = self.beside.now.get(subscription.name)
        if pending is None:
            pending = self.beside.now[subscription.name] = PendingAcks()
        found = pending.conflict(whole, parts)
        if found is not None:
            words = next((len(p.left) for p in parts if p.ordinal == found[0]), 0) if found[1] else None
            raise self._conflict(subscription, txn, found[0], words, "in pending ack status.")
        pending.reserve(txn, whole, parts)
        held = TransactionAcks()
        held.whole.update(whole)
        held.parts.update({part.ordinal: part for part in parts})
        self._note_reserved(subscription, txn, held, done)
        self._guard(subscription, pending)
        subscription.transactional().set_aside(
            consumer,
            [*whole, *[p.ordinal for p in parts if not self._left(subscription, p.ordinal)]],
            [(p.ordinal, self._left(subscription, p.ordinal)) for p in parts],
        )

    def acknowledge_until(self, subscription: Subscription, txn: TxnId, until: PartialBatch, done: Done) -> None:
        """Reserve a cumulative acknowledgement; on Exclusive and Failover only, which the caller has checked."""
        mark = subscription.cursor.mark_delete
        if until.ordinal <= mark:
            raise TransactionConflictError(
                f"{self._prefix(subscription, txn)} try to cumulative ack position: {self._position(until.ordinal)} "
                f"within range of cursor's markDeletePosition: {self._position(mark)}"
            )
        pending = self.beside.now.get(subscription.name)
        if pending is None:
            pending = self.beside.now[subscription.name] = PendingAcks()
        current = pending.conflict_until(txn, until)
        if current is not None:
            raise TransactionConflictError(
                f"{self._prefix(subscription, txn)} try to cumulative batch ack position: "
                f"{self._position(until.ordinal)} within range of current currentPosition: "
                f"{self._position(current.ordinal)}"
            )
        pending.reserve_until(txn, until)
        self._note_reserved(subscription, txn, TransactionAcks(until=until), done)

    def _note_reserved(self, subscription: Subscription, txn: TxnId, held: TransactionAcks, done: Done) -> None:
        self.beside.note(["p", subscription.name, txn.most, txn.least, held.encode()])
        self._feature_state.touch(done)

    def _left(self, subscription: Subscription, ordinal: int) -> int:
        """Messages of a batch that are not acknowledged in any way."""
        part = self.beside.now[subscription.name].parts[ordinal]
        return sum(word.bit_count() for word in part.left_of(subscription.cursor.remaining_indexes(ordinal)))

    def _guard(self, subscription: Subscription, pending: PendingAcks) -> None:
        """Have the subscription's dispatch filter know what is reserved."""
        if subscription.name not in self._guards:
            rule = self._guards[subscription.name] = PendingAckRule(pending, subscription.cursor)
            subscription.add_dispatch_rule(rule)
            subscription.transactional().show_parts(UnreservedIndexes(pending, subscription.cursor))

    def _unguard(self, subscription: Subscription) -> None:
        rule = self._guards.pop(subscription.name, None)
        if rule is not None:
            subscription.transactional().show_parts(None)
            subscription.remove_dispatch_rule(rule)

    def _prefix(self, subscription: Subscription, txn: TxnId) -> str:
        return (
            "org.apache.pulsar.transaction.common.exception.TransactionConflictException: "
            f"[{self._name}][{subscription.name}] Transaction:{txn_text(txn)}"
        )

    def _position(self, ordinal: int) -> str:
        position = self._log.position(ordinal)
        return f"{position.ledger}:{position.entry}"

    def _conflict(
        self, subscription: Subscription, txn: TxnId, ordinal: int, words: int | None, why: str
    ) -> TransactionConflictError:
        """``words`` None: a whole entry, else how long the ack set of the batch is."""
        what = "message" if words is None else "batch message"
        ack_set = "ackSet is null" if words is None else f"ackSet with long[] size of {words}"
        return TransactionConflictError(
            f"{self._prefix(subscription, txn)} try to ack {what}:{self._position(ordinal)} ({ack_set}) {why}"
        )

    # ending ------------------------------------------------------------------------------------------------------

    def end(self, txn: TxnId, *, commit: bool, sent: bool) -> None:
        """It is decided; ``sent``: the transaction took part by sending here, so a marker follows (rule 9.10)."""
        at = None
        if sent:
            entry = marker(txn, commit=commit, now_ms=self._now_ms())
            at = self._log.append(entry, 0, PendingEntry(self._add_marker, -1, 0))  # type: ignore[arg-type]  # takes receipts as one does
        self.beside.note(["e", txn.most, txn.least, int(commit), at])
        self._feature_state.touch(self.beside.carry_out)

    def carry_out(self) -> None:
        """Deal with the acknowledgements of transactions whose end is durable."""
        ended, self.beside.ended = self.beside.ended, []
        released: list[tuple[str, list[int]]] = []
        for txn, commit in ended:
            for name, pending in list(self.beside.now.items()):
                held = pending.take(txn)
                # the abort of a cumulative one gives nothing back: its entries were never held back
                if held is not None and not commit and (entries := held.entries()):
                    released.append((name, entries))
        self._hand_over()
        for name, ordinals in released:
            subscription = self._subscriptions.get(name)
            if subscription is not None:
                _send_again(subscription, ordinals)
        for name, pending in list(self.beside.now.items()):
            if not pending:
                del self.beside.now[name]
                if name in self._subscriptions:
                    self._unguard(self._subscriptions[name])
        if ended:
            self._subscriptions.dispatch_filter_changed()

    def _hand_over(self) -> None:
        """Give committed acknowledgements to their cursors, and note that with them in one block."""
        for (name, txn), held in list(self.beside.settled.owed.items()):
            if (name, txn) in self._owing:
                continue
            self._owing.add((name, txn))
            subscription = self._subscriptions.get(name)
            if subscription is not None:
                subscription.transactional().commit(held.whole, held.parts.values(), held.until)
            self.beside.note(["d", name, txn.most, txn.least])
            self._feature_state.touch()
        self._owing.intersection_update(self.beside.settled.owed)

    # upkeep ------------------------------------------------------------------------------------------------------

    @override
    def subscription_gone(self, name: str) -> None:
        """Forget what transactions held of it."""
        self._guards.pop(name, None)
        if self.beside.now.pop(name, None) is not None:
            self.beside.note(["x", name])
            self._feature_state.touch()

    @override
    def trimmed(self, first: int) -> None:
        """Nothing below ``first`` exists any more."""
        if self.buffer.next_hidden(0, first) < first:
            self.beside.note(["t", first])
            self._feature_state.touch()


def _send_again(subscription: Subscription, ordinals: Sequence[int]) -> None:
    """After an abort; who gets everything in order gets everything again (rule 5.8.2)."""
    if subscription.active_consumer is not None:
        subscription.redeliver(subscription.active_consumer, None)
    else:
        subscription.let_through(subscription.transactional().given_back(ordinals))
