"""The transaction coordinator of this broker: its durable state, its timer, and how an end reaches the topics.

The pure decisions are in :mod:`magnetar.transactions.coordinator`. Here they are written as feature state
of the log ``internal://transaction-log/0``, and answered when that is durable. An end is noted at the
coordinator and at every topic that took part in one turn of the loop, so in one block (docs/decisions/007). A topic
that is gone by then counts as ended (rule 9.15).

A transaction without an end is aborted when its time is over, by the injected clock, also if that was while the broker
was down.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from magnetar.broker.activity import TransactionActivity
from magnetar.broker.topic.topic import Topic
from magnetar.broker.topic.transactions.topic_transactions import TopicTransactions
from magnetar.model.errors import MagnetarError, TransactionCoordinatorNotFoundError
from magnetar.model.names import TopicName
from magnetar.protocol.commands.ids import TxnId
from magnetar.runtime.clock import Clock
from magnetar.runtime.log import RateLimitedLog
from magnetar.storage.ledgers.feature_state import FeatureState
from magnetar.storage.store import LedgerStore
from magnetar.transactions.coordinator import Coordinator, OpenTransactions, Transaction, txn_text
from magnetar.transactions.operation_log import OperationLog
from magnetar.transactions.operations import Op, parse_snapshot, replay

log = logging.getLogger(__name__)

TC_ID: Final = 0
"""The only coordinator, as in Pulsar's standalone (rule 9.2)."""
LOG: Final = "internal://transaction-log/0"
"""The name of the log, which is no topic's: no client can open or delete it."""
_FEATURE: Final = "transactions"
_WAIT_MAX_S: Final = 3600.0
_CARRY_AGAIN_S: Final = 1.0
_CARRY_AGAIN_MAX_S: Final = 60.0
"""A topic may never be loaded again until it is deleted: the pause doubles up to this."""
ASKED_AGAIN_MAX: Final = 100
"""Those who ask once more for an end that a topic cannot take, and are answered with it; the latest of each
transaction."""
_TELL_S: Final = 60.0
"""Seconds from one log line about transactions that timed out to the next."""

Done = Callable[[], None]


class _OnDisk(OperationLog[OpenTransactions]):
    """The coordinator's state: what is durable, and the current one that is ahead of it."""

    def __init__(self, snapshot: bytes | None, changes: Sequence[bytes]) -> None:
        super().__init__(OpenTransactions(TC_ID), lambda op: op)
        value = parse_snapshot(snapshot)
        if value is not None:
            self.settled.decode(value)
        replay(self.settled, changes)
        self.living = OpenTransactions(TC_ID)
        self.living.decode(self.settled.encode())


class TransactionCoordinator:
    """The coordinator of one broker; lives on the event loop. ``find`` gives the loaded topic of a name, or None."""

    def __init__(
        self, store: LedgerStore, clock: Clock, find: Callable[[TopicName], Topic | None], active_max: int,
        activity: TransactionActivity | None = None,
    ) -> None:  # fmt: skip
        self.activity = activity or TransactionActivity()
        self._store = store
        self._clock = clock
        self._find = find
        self._active_max = active_max
        self._feature_state: FeatureState
        self._on_disk: _OnDisk
        self.decisions: Coordinator
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = 0
        self._late = 0
        """Transactions that timed out and are not logged yet."""
        self._telling: asyncio.TimerHandle | None = None
        self._carried_again: dict[TxnId, deque[Done]] = {}
        """Ends that a topic could not take yet, and who asked for the same end meanwhile."""
        self._closed = False
        self._complaints = RateLimitedLog(log, clock=clock)
        self.recovered_ms = (0, 0)
        """When recovery began and ended."""
        self.running = False

    def start(self, *, enabled: bool) -> None:
        """Recover open transactions, also if new ones are disabled; needs a running loop."""
        if not enabled and LOG not in self._store:
            return
        began = self._clock.now_ms()
        home = self._store.open_log(LOG)
        home.trim(home.end)
        self._feature_state = home.feature_state(_FEATURE)
        self._on_disk = self._feature_state.open(_OnDisk)
        self.decisions = Coordinator(self._on_disk.living, self._active_max)
        self._on_disk.on_durable = self._durable
        self.recovered_ms = (began, self._clock.now_ms())
        if self._on_disk.living.all:
            log.info("%d transactions were open when the broker stopped", len(self._on_disk.living.all))
        self.running = True
        self._set_timer()

    def close(self) -> None:
        """Stop the timers; ends that no topic has taken are timed out after the next start."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._telling is not None:
            self._telling.cancel()
            self._tell()
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None

    @property
    def open(self) -> list[Transaction]:
        """The transactions that have not ended, oldest first."""
        return list(self._on_disk.living.all.values())

    @property
    def last_id(self) -> int:
        """Least significant bits of the last id that was given, -1 before the first."""
        return self._on_disk.living.next - 1

    # requests ----------------------------------------------------------------------------------------------------

    def require(self, tc_id: int) -> None:
        """Raise TransactionCoordinatorNotFoundError for the id of another coordinator (rules 9.2, 9.6)."""
        if tc_id != TC_ID:
            raise TransactionCoordinatorNotFoundError(f"Transaction coordinator with id {tc_id} not found!")

    def begin(self, tc_id: int, ttl_ms: int, owner: str, done: Callable[[TxnId], None]) -> bool:
        """Open a transaction and call ``done`` with its id; False at the limit, where there is no answer (rule 9.4)."""
        self.require(tc_id)
        begun = self.decisions.begin(self._clock.now_ms(), ttl_ms, owner)
        if begun is None:
            return False
        txn, op = begun
        self.activity.created += 1
        self._note(op, lambda: done(txn))
        self._set_timer()
        return True

    def add_partitions(self, txn: TxnId, topics: Sequence[str], owner: str | None, done: Done) -> None:
        """Call ``done`` when it is durable that the transaction sends to these topics (rule 9.5)."""
        self.require(txn.most)
        names = [TopicName.parse(topic).fqn for topic in topics]
        self._note_if(self.decisions.add_partitions(txn, names, owner), done)

    def add_subscriptions(
        self, txn: TxnId, subscriptions: Sequence[tuple[str, str]], owner: str | None, done: Done
    ) -> None:
        """Call ``done`` when it is durable that the transaction acknowledges on these subscriptions (rule 9.5)."""
        self.require(txn.most)
        names = [(TopicName.parse(topic).fqn, name) for topic, name in subscriptions]
        self._note_if(self.decisions.add_subscriptions(txn, names, owner), done)

    def sends(self, txn: TxnId, topic: str, owner: str | None) -> None:
        """An entry is about to be appended: its topic takes part from the same block on. Raises if the transaction is
        not open, or another's."""
        self.require(txn.most)
        op = self.decisions.add_partitions(txn, [topic], owner)
        if op is not None:
            self._note(op)

    def acknowledges(self, txn: TxnId, topic: str, subscription: str, owner: str | None) -> None:
        """An acknowledgement is about to be reserved: its subscription takes part. Raises as :meth:`sends` does."""
        self.require(txn.most)
        op = self.decisions.add_subscriptions(txn, [(topic, subscription)], owner)
        if op is not None:
            self._note(op)

    def end(self, txn: TxnId, *, commit: bool, owner: str | None, done: Done) -> None:
        """Commit or abort; calls ``done`` when that is durable everywhere. Nothing of it is visible before (rules 9.6,
        9.10)."""
        self.require(txn.most)
        found = self.decisions.get(txn, owner)
        op = self.decisions.end(txn, commit=commit, owner=owner)
        if op is None:
            carried = self._carried_again.get(txn)
            if carried is None:
                self._feature_state.touch(done)
            else:
                carried.append(done)
            return
        done = partial(self._ended, found, done, commit=commit)
        names = deque(dict.fromkeys([*found.partitions, *(topic for topic, _ in found.subscriptions)]))
        self._carry(found, names, op, done, _CARRY_AGAIN_S, commit=commit)

    def _ended(self, found: Transaction, done: Done, *, commit: bool) -> None:
        activity = self.activity
        if commit:
            activity.committed += 1
            activity.durations.add(max(0, self._clock.now_ms() - found.opened_ms))
        else:
            activity.aborted += 1
        done()

    def _carry(
        self, found: Transaction, names: deque[str], op: Op, done: Done, again_s: float, *, commit: bool
    ) -> None:
        """Bring the end to all topics, then note it here: one block. While a topic cannot take it, no topic gets it."""
        if self._closed:
            return
        name = ""
        try:
            parts: list[TopicTransactions | None] = []
            for name in names:
                topic = self._topic(name)
                parts.append(None if topic is None else topic.transacting())
            for part in parts:
                name = names[0]
                if part is not None:
                    part.end(found.id, commit=commit, sent=name in found.partitions)
                names.popleft()
        except Exception as error:
            self._complaints.warning(
                "carry", "the end of transaction %s is carried to %s again in %.0f s: %r", txn_text(found.id), name,
                again_s, error, extra={"topic": name},
            )  # fmt: skip
            self._carried_again.setdefault(found.id, deque(maxlen=ASKED_AGAIN_MAX))
            longer_s = min(2 * again_s, _CARRY_AGAIN_MAX_S)
            again = partial(self._carry, found, names, op, done, longer_s, commit=commit)
            asyncio.get_running_loop().call_later(again_s, again)
            return
        self._on_disk.note(op)
        self.activity.appended += 1
        self._write(done)
        for asked_again in self._carried_again.pop(found.id, ()):
            self._write(asked_again)

    def _write(self, done: Done) -> None:
        if self._closed:
            return
        try:
            self._feature_state.touch(done)
        except Exception:
            log.exception("the end of a transaction is written in %.0f s", _CARRY_AGAIN_S)
            asyncio.get_running_loop().call_later(_CARRY_AGAIN_S, self._write, done)

    def _topic(self, name: str) -> Topic | None:
        try:
            return self._find(TopicName.parse(name))
        except MagnetarError as error:
            text = "a transaction ended without %s, which cannot be loaded: %s"
            self._complaints.warning("load", text, name, error, extra={"topic": name})
            return None

    def is_open(self, txn: TxnId) -> bool:
        """Whether the transaction is open."""
        return self.running and txn.most == TC_ID and txn in self._on_disk.living.all

    def loaded(self, topic: Topic) -> None:
        """A topic was loaded: abort its transactions that the coordinator does not know, or they would stay open for
        ever."""
        if topic.transactions is None:
            return
        state = topic.transactions.beside.settled
        for txn in state.open_ones():
            if not self.is_open(txn):
                self._complaints.warning(
                    "unknown", "%s: transaction %s is unknown here and aborted", topic.name.fqn, txn_text(txn),
                    extra={"topic": topic.name.fqn},
                )  # fmt: skip
                topic.transactions.end(txn, commit=False, sent=txn in state.buffer.open)

    # the disk ----------------------------------------------------------------------------------------------------

    def _note(self, op: Op, done: Done | None = None) -> None:
        self.activity.appended += 1
        self._on_disk.note(op)
        self._feature_state.touch(done)

    def _note_if(self, op: Op | None, done: Done) -> None:
        if op is None:
            self._feature_state.touch(done)
        else:
            self._note(op, done)

    def _durable(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if op[0] == "e":
                self.decisions.ended(op[1])

    # time --------------------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        deadline = self.decisions.next_deadline()
        if self._timer is not None:
            if deadline is not None and self._timer_for <= deadline:
                return
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            wait_s = min(max(deadline - self._clock.now_ms(), 0) / 1000, _WAIT_MAX_S)
            self._timer_for = deadline
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        due = self.decisions.due(self._clock.now_ms())
        for txn in due:
            try:
                self.end(txn, commit=False, owner=None, done=_nothing)
            except MagnetarError as error:
                self._complaints.warning("abort", "transaction %s could not be aborted: %s", txn_text(txn), error)
        self._late += len(due)
        self.activity.timed_out += len(due)
        if due and self._telling is None:
            self._tell()
        self._set_timer()

    def _tell(self) -> None:
        """Log one line at once, and all that follow within a while in the next."""
        self._telling = None
        late, self._late = self._late, 0
        if late:
            log.info("%d transactions are aborted: they were not ended in time", late)
            self._telling = asyncio.get_running_loop().call_later(_TELL_S, self._tell)


def _nothing() -> None: ...
