"""Trims topics that were not used since the start, mostly without loading them.

A pass looks at some of all the topics that the store knows, and the next one continues after them. What is decided by
the table of ledgers, the durable cursors and the policies is done without loading the topic and without reading an
entry: whole ledgers go from the front, by the same rules as of a loaded topic
(:mod:`magnetar.broker.topic.cleanup.retention`). What needs more (messages older than their time to live, transactions,
a first compaction, ledgers that are to be offloaded or released) loads the topic; then it is one that is used.
"""

from __future__ import annotations

from typing import Final

from magnetar.broker.offloader import due_ledgers
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.cleanup.retention import RetentionRule
from magnetar.model.names import TopicName
from magnetar.model.policies import Retention
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.tasks import in_turns
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.transactions.feature_state import TRANSACTIONS

_TOPICS: Final = "persistent://"
_LOST: Final = "persistent://lost/found/"
"""The prefix of topics that recovery could not name: only an administrator removes them."""
_NO_RETENTION: Final = Retention(0, 0)
_LOOKED_AT: Final = 5000
"""Topics per pass."""
_LOADED: Final = 20
"""Topics that a pass loads at most."""


class UnloadedTopics:
    """Remembers how far the passes came; called by upkeep."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._started_ms = service.clock.now_ms()
        self._left: list[str] = []
        """The topics that this round has still to look at."""

    async def look(self) -> int:
        """Do one pass; returns how many ledgers were dropped."""
        if not self._left:
            self._left = self._service.store.names()
            self._left.reverse()
        names, self._left = self._left[: -_LOOKED_AT - 1 : -1], self._left[:-_LOOKED_AT]
        dropped = loaded = 0
        async for name in in_turns(names):
            managed = self._service.store.find_log(name)
            if managed is None or name in self._service.topics or not _may_go(managed):
                continue
            topic = TopicName.stored(name)
            policies = self._service.policies.of(topic)
            now = self._service.clock.now_ms()
            if _needs_loading(managed, policies, now) or self._offloading_waits(managed, policies, now):
                if loaded < _LOADED:
                    self._service.find(topic)
                    loaded += 1
                continue
            dropped += self._trim(managed, policies.retention)
        return dropped

    def _offloading_waits(self, managed: ManagedLedger, policies: TopicPolicies, now_ms: int) -> bool:
        """Whether ledgers are to be copied, or released after their lag, of a topic that is not deleted once loaded."""
        inactive = policies.inactive_topics
        kept = any(cursor.backlog() or not inactive.caught_up_is_enough for cursor in managed.cursors.values())
        if inactive.delete and not kept:
            return False
        lag = policies.offload_deletion_lag_ms
        copies = [ledger.offload for ledger in managed.table.ledgers if ledger.offload is not None]
        if lag >= 0 and any(not copy.released and now_ms >= copy.recorded_ms + lag for copy in copies):
            return True
        return bool(self._service.offloader.url and due_ledgers(managed, policies, now_ms))

    def _trim(self, managed: ManagedLedger, retention: Retention) -> int:
        rule = RetentionRule.of(retention, self._service.clock.now_ms()) if retention != _NO_RETENTION else None
        if rule == (None, None):
            return 0
        ends = releasable(managed, rule, self._started_ms)
        if not ends:
            return 0
        if ends == managed.end and managed.table.ledgers[-1].entries:
            # a ledger of an earlier run takes no more entries: it is closed, and the next one may record that
            managed.open_ledger()
        return managed.trim(ends)


def _may_go(managed: ManagedLedger) -> bool:
    """Whether it is a topic that holds any entry, checked cheaply since most hold none."""
    name = managed.name
    return name.startswith(_TOPICS) and not name.startswith(_LOST) and managed.first < managed.end


def _needs_loading(managed: ManagedLedger, policies: TopicPolicies, now_ms: int) -> bool:
    if TRANSACTIONS in managed.feature_states:
        return True
    if policies.compaction_threshold > 0 and COMPACTION_SUBSCRIPTION not in managed.cursors:
        return True
    if not policies.message_ttl_s:
        return False
    before = now_ms - policies.message_ttl_s * 1000
    waiting = [c.mark_delete + 1 for c in managed.cursors.values() if c.backlog() and c.name != COMPACTION_SUBSCRIPTION]
    return bool(waiting) and managed.table.holding(max(min(waiting), managed.first)).opened_ms < before


def releasable(managed: ManagedLedger, rule: RetentionRule | None, started_ms: int) -> int:
    """The ordinal up to which whole ledgers may go; 0: none.

    ``rule``: of retention, None if there is none. The last ledger goes only if a subscription has consumed it or
    a retention is set: without either a topic keeps it, as one that is loaded does. It also has
    to be of an earlier run of the broker: entries may still be on their way into any other.
    """
    consumed = min((cursor.mark_delete + 1 for cursor in managed.cursors.values()), default=managed.end)
    left = managed.retained_bytes()
    ends = 0
    ledgers = managed.table.ledgers
    for ledger in ledgers:
        left -= ledger.bytes
        if ledger.end > consumed:
            break
        if ledger is ledgers[-1] and (ledger.opened_ms >= started_ms or (rule is None and not managed.cursors)):
            break
        # what was written in an earlier run is older than this one
        if rule is not None and ledger.entries and not rule.lets_go(ledger.closed_ms or started_ms, left):
            break
        ends = ledger.end
    return ends
