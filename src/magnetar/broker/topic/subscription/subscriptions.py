"""All subscriptions of one topic, and what happens to each of them.

With the topic come only the cursors that are stored; a subscription is loaded from its cursor when it is first asked
for. A topic may have fifty thousand of them and its load has the loop for itself, so it must not make each. What only
concerns consumers, and what was counted since the load, is an affair of the loaded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from magnetar.broker.throttling.passes import Passes
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.ports import Done, SentTotals
from magnetar.broker.topic.publish.chunk_record import chunk
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscription_stats import sent_by
from magnetar.model.errors import NotAllowedError
from magnetar.model.own_properties import REPLICATED, is_replicated
from magnetar.protocol.sticky_key import sticky_keys
from magnetar.runtime.clock import Clock
from magnetar.runtime.teardown import call_all
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger


class Subscriptions(Mapping[str, Subscription]):
    """The subscriptions by name, in the order in which they were made."""

    __slots__ = (
        "_again", "_chunks", "_clock", "_closed", "_cursors", "_ended_before", "_loaded", "_log", "_passes",
        "_passing", "_sent_before", "_settings", "_topic", "added", "ended", "rules", "terminated",
    )  # fmt: skip

    def __init__(
        self, topic: TopicIdentity, log: ManagedLedger, settings: DispatchSettings, clock: Clock, passes: Passes
    ) -> None:
        """``passes``: those of all topics of the broker."""
        self._topic = topic
        self._passes = passes
        self._passing = self._again = False
        self._log = log
        self._settings = settings
        self._clock = clock
        self._closed = False
        self._cursors: dict[str, Cursor] = {}
        self._loaded: dict[str, Subscription] = {}
        self._chunks = False
        self.rules: tuple[DispatchRule, ...] = ()
        """What every subscription asks before it sends; see :mod:`magnetar.broker.topic.dispatch.dispatch_filter`."""
        self.added: Callable[[Subscription], None] | None = None
        """Called with each subscription that is made or loaded."""
        self.terminated = False
        """Whether nothing more is published to the topic."""
        self.ended = False
        """Whether that is durable, so that consumers may be told."""
        self._ended_before = False
        self._sent_before = SentTotals(0, 0)
        """What subscriptions that are gone had sent."""

    @override
    def __getitem__(self, name: str) -> Subscription:
        found = self._loaded.get(name)
        return self._load(self._cursors[name]) if found is None else found

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._cursors)

    @override
    def __len__(self) -> int:
        return len(self._cursors)

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._cursors

    def loaded(self) -> list[Subscription]:
        """Those that anything has asked for since the topic was loaded; others have no consumers, and sent nothing."""
        return list(self._loaded.values())

    def each(self) -> Iterator[Subscription]:
        """All that there are now, each loaded when it is reached; what is deleted meanwhile is left out."""
        for name in list(self._cursors):
            if name in self._cursors:
                yield self[name]

    def cursors(self) -> list[Cursor]:
        """Those of all subscriptions, which need not be loaded for it."""
        return list(self._cursors.values())

    # coming and going --------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take the cursors that the log has."""
        self._cursors.update(self._log.cursors)
        self._ended_before = self.ended

    def open(
        self, name: str, *, durable: bool, ordinal: Callable[[], int], properties: Mapping[str, Any], done: Done
    ) -> Subscription:
        """The subscription of that name, made at ``ordinal()`` if missing; ``done`` when it is durable.

        Raises NotAllowedError if it exists with the other durability (rule 0.12).
        """
        found = self.get(name)
        if found is None:
            cursor = self._log.open_cursor(name, ordinal(), durable=durable, properties=dict(properties), done=done)
            self._cursors[name] = cursor
            return self._add(cursor, durable=durable, created=True, terminated=self.ended)
        if found.durable != durable:
            kind = "Durable" if found.durable else "NonDurable"
            raise NotAllowedError(f"{kind} subscription with the same name already exists.")
        if durable:
            stored = self._log.cursors.get(name)
            if stored is not None and is_replicated(properties) and not is_replicated(stored.properties):
                stored.set_properties({**stored.properties, **REPLICATED}, done)
            elif stored is not None and stored.recorded:
                self._log.barrier(done, lambda error: done())  # reading needs no disk that takes writes
            else:
                self._log.barrier(done)
        else:
            done()
        return found

    def _load(self, cursor: Cursor) -> Subscription:
        subscription = self._add(cursor, durable=True, created=False, terminated=self._ended_before)
        if self.ended and not self._ended_before:
            subscription.topic_terminated()
        return subscription

    def _add(self, cursor: Cursor, *, durable: bool, created: bool, terminated: bool) -> Subscription:
        subscription = Subscription(
            self._topic, cursor.name, self._log, cursor, self._settings, self._clock, sticky_keys,
            durable=durable, created=created, terminated=terminated,
        )  # fmt: skip
        for rule in self.rules:
            subscription.add_dispatch_rule(rule)
        if self._chunks:
            subscription.has_chunks(chunk)
        self._loaded[cursor.name] = subscription
        if self.added is not None:
            self.added(subscription)
        return subscription

    def remove(self, name: str) -> Subscription:
        """Forget a subscription and disconnect its consumers; its cursor is the caller's affair."""
        subscription = self[name]
        del self._cursors[name], self._loaded[name]
        subscription.close()
        if not subscription.durable:
            self._log.cached_runs.went(subscription.cursor)
        gone, before = subscription.counters(), self._sent_before
        self._sent_before = SentTotals(before.messages + gone.messages_out, before.bytes + gone.bytes_out)
        return subscription

    def close(self) -> None:
        """Disconnect every consumer and forget the subscriptions; their cursors stay with the log."""
        call_all(self._topic.name, [subscription.close for subscription in self._loaded.values()])
        self._log.cached_runs.all_went()
        self._cursors.clear()
        self._loaded.clear()
        self._closed = True
        self.rules = ()

    # what concerns all of them -----------------------------------------------------------------------------------

    def entries_appended(self) -> None:
        """A group of entries is durable: each subscription sends what it can, many of them in turns of the loop."""
        loaded = self._loaded
        if len(loaded) == 1:
            for subscription in loaded.values():
                subscription.entries_appended()
        elif self._passing:
            self._again = True
        elif loaded:
            self._pass()

    def _pass(self) -> None:
        self._passing, self._again = True, False
        self._passes.start(self.loaded(), Subscription.entries_appended, self._passed)

    def _passed(self) -> None:
        self._passing = False
        if self._again:
            self._pass()

    def set_settings(self, settings: DispatchSettings) -> None:
        """A policy changed a limit."""
        self._settings = settings
        for subscription in self.loaded():
            subscription.set_settings(settings)

    def has_chunks(self) -> None:
        """The topic has chunked messages, or may have from now on (rule 3.6)."""
        self._chunks = True
        for subscription in self._loaded.values():
            subscription.has_chunks(chunk)

    def add_dispatch_rule(self, rule: DispatchRule) -> None:
        """All subscriptions, those to come included, ask ``rule`` before they read."""
        self.rules += (rule,)
        for subscription in self._loaded.values():
            subscription.add_dispatch_rule(rule)

    def remove_dispatch_rule(self, rule: DispatchRule) -> None:
        """Call :meth:`Subscription.remove_dispatch_rule` of all of them."""
        self.rules = tuple(other for other in self.rules if other is not rule)
        for subscription in self._loaded.values():
            subscription.remove_dispatch_rule(rule)

    def dispatch_filter_changed(self) -> None:
        """More may be read, or entries became dead."""
        self.entries_appended()

    def let_through(self, ordinals: Sequence[int], rule: DispatchRule | None = None) -> None:
        """Call :meth:`Subscription.let_through` of all of them: these entries are open now."""
        for subscription in self.loaded():
            subscription.let_through(ordinals, rule)

    def trimmed(self) -> None:
        """The log lost its front: non-durable cursors there go on after it, and count what they lost (rule 4.3.2)."""
        for subscription in self._loaded.values():
            if not subscription.durable:
                subscription.trimmed()

    # what they show ----------------------------------------------------------------------------------------------

    def slowest(self) -> int:
        """The lowest mark-delete of the durable subscriptions.

        Without any everything counts as consumed (rule 4.2.3).
        """
        if self._closed:
            raise RuntimeError(f"{self._topic.name}: the subscriptions of a closed topic say nothing about its cursors")
        marks = [cursor.mark_delete for cursor in self._cursors.values() if cursor.durable]
        return min(marks, default=self._log.end - 1)

    def sent(self) -> SentTotals:
        """What has gone out since the topic was loaded, by subscriptions that are gone too."""
        return sent_by(self._loaded.values(), self._sent_before)

    def consumer_count(self) -> int:
        """Connected consumers of all subscriptions."""
        return sum(len(subscription.consumers) for subscription in self._loaded.values())
