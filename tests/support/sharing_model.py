"""A small, slow model of Shared and Key_Shared, written without looking at the dispatchers.

It counts permits, parked permits, unacknowledged messages and owners itself, entry by entry, and refuses a delivery
that the rules forbid (rules 5.1.10, 5.2.1, 5.5, 5.6.9 to 5.6.15, 5.8, 5.9.10).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ModelConsumer:
    permits: int = 0
    parked: int = 0
    blocked: bool = False
    writable: bool = True
    out: dict[int, int] = field(default_factory=dict)

    @property
    def unacked(self) -> int:
        return sum(self.out.values())

    @property
    def available(self) -> bool:
        return self.writable and not self.blocked and self.permits > 0


@dataclass
class Model:
    consumer_limit: int
    subscription_limit: int
    messages: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    consumers: dict[str, ModelConsumer] = field(default_factory=dict)
    acked: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    """Entries that the dispatcher has seen and that are out at no consumer."""
    first_sent: set[int] = field(default_factory=set)
    redelivered: dict[int, int] = field(default_factory=dict)
    read_at: int = 0
    blocked: bool = False

    def rewind(self) -> None:
        self.read_at = 0
        self._skip()

    def _skip(self) -> None:
        while self.read_at in self.acked:
            self.read_at += 1

    def _settle(self) -> None:
        """Blocks end at half of the limit."""
        for consumer in self.consumers.values():
            if consumer.blocked and consumer.unacked <= self.consumer_limit // 2:
                consumer.blocked = False
                consumer.permits += consumer.parked
                consumer.parked = 0
        if self.blocked and self.unacked <= self.subscription_limit // 2:
            self.blocked = False

    @property
    def unacked(self) -> int:
        return sum(c.unacked for c in self.consumers.values())

    def leave(self, name: str) -> None:
        gone = self.consumers.pop(name)
        if self.consumers:
            self.waiting |= gone.out.keys()
        else:
            self.waiting.clear()
            self.redelivered.clear()
            self.first_sent.clear()
        self._settle()

    def flow(self, name: str, permits: int) -> None:
        consumer = self.consumers[name]
        if consumer.blocked:
            consumer.parked += permits
        else:
            consumer.permits += permits

    def acknowledge(self, ordinal: int) -> None:
        self.acked.add(ordinal)
        self.waiting.discard(ordinal)
        self.redelivered.pop(ordinal, None)
        for consumer in self.consumers.values():
            consumer.out.pop(ordinal, None)
        self._settle()

    def partly(self, ordinal: int, live: int) -> None:
        for consumer in self.consumers.values():
            if consumer.out.get(ordinal, 0) > live:
                consumer.out[ordinal] = live
        self.messages[ordinal] = min(self.messages[ordinal], live)
        self.redelivered.pop(ordinal, None)
        self._settle()

    def redeliver(self, name: str, ordinals: list[int] | None) -> None:
        consumer = self.consumers[name]
        for ordinal in list(consumer.out) if ordinals is None else ordinals:
            if consumer.out.pop(ordinal, 0):
                self.waiting.add(ordinal)
                self.redelivered[ordinal] = self.redelivered.get(ordinal, 0) + 1
        self._settle()

    def deliver(self, name: str, ordinal: int) -> None:
        """One entry goes to ``name``: is that allowed?"""
        consumer = self.consumers[name]
        assert consumer.available, f"{name} may not take {ordinal}: {consumer}"
        assert not self.blocked, "the subscription is blocked"
        assert ordinal not in self.acked
        assert all(ordinal not in c.out for c in self.consumers.values()), "out twice"
        self.waiting.discard(ordinal)
        self.first_sent.add(ordinal)
        messages = self.messages[ordinal]
        consumer.out[ordinal] = messages
        consumer.permits -= messages
        if consumer.unacked >= self.consumer_limit:
            consumer.blocked = True
        if self.unacked >= self.subscription_limit:
            self.blocked = True

    def holder(self, slot: int) -> str | None:
        """Who has entries of this slot out; at most one (rule 5.6.15)."""
        holders = [n for n, c in self.consumers.items() if any(self.slots[o] == slot for o in c.out)]
        assert len(holders) <= 1, f"slot {slot} is out at {holders}"
        return holders[0] if holders else None
