"""What the clients saw over all rounds, and what must therefore still be true after the next start.

Every message describes itself: ``<producer> <sequence> <size> `` and a filler that follows from them, so any copy
can be judged by itself. Positions are (ledger, entry) as the receipts name them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Position = tuple[int, int]

UNANSWERED_S: Final = 1.0
"""An acknowledgment without an answer that the broker had read so long before a kill must hold (the delay is 20 ms)."""
NEVER: Final = float("inf")


class StatedMessage(NamedTuple):
    """What a message says of itself."""

    producer: str
    sequence: int
    size: int


def message(producer: str, sequence: int, size: int) -> bytes:
    """The payload of one message, ``size`` bytes or a few more."""
    head = f"{producer} {sequence} {size} ".encode()
    return head + _filler(head, size - len(head))


def stated_message(payload: bytes) -> StatedMessage | None:
    """What a payload says of itself; None if a single byte of it is wrong."""
    parts = payload.split(b" ", 3)
    if len(parts) < 4:
        return None
    try:
        found = StatedMessage(parts[0].decode(), int(parts[1]), int(parts[2]))
    except ValueError:
        return None
    return found if message(*found) == payload else None


def _filler(head: bytes, size: int) -> bytes:
    if size <= 0:
        return b""
    block = random.Random(head).randbytes(min(size, 997))
    return (block * (size // len(block) + 1))[:size]


@dataclass
class Subscription:
    """Acknowledgments said and answered on one subscription."""

    said: dict[Position, float] = field(default_factory=dict)
    """When the broker is known to have read it; cumulative ones are noted for every position delivered before."""
    doubtful: set[Position] = field(default_factory=set)
    """Said, and at some kill no one knew whether it was durable."""
    sure: set[Position] = field(default_factory=set)
    """Answered, or implied by an answer, or older than the delay at a kill: must never come back."""


@dataclass
class TopicHistory:
    """One topic, all rounds."""

    receipts: dict[Position, StatedMessage] = field(default_factory=dict)
    attempted: set[tuple[str, int]] = field(default_factory=set)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    retained: dict[Position, StatedMessage] = field(default_factory=dict)
    """What the last look at the whole topic found."""
    ghosts: set[Position] = field(default_factory=set)


class ClientHistory:
    """All topics, and every violation found so far."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicHistory] = {}
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()

    def topic(self, name: str) -> TopicHistory:
        return self.topics.setdefault(name, TopicHistory())

    def subscription(self, topic: str, name: str) -> Subscription:
        return self.topic(topic).subscriptions.setdefault(name, Subscription())

    def violated(self, text: str) -> None:
        self.violations.append(text)

    # while it runs -----------------------------------------------------------------------------------------------

    def receipted(self, topic: str, position: Position, sent: StatedMessage) -> None:
        history = self.topic(topic)
        known = history.receipts.get(position)
        if known is not None:
            self.violated(f"{topic}: position {position} was given to {known} and to {sent}")
        history.receipts[position] = sent
        self.counts["receipted"] += 1

    def delivered(self, topic: str, subscription: str, position: Position, payload: bytes) -> None:
        history = self.topic(topic)
        self.counts["delivered"] += 1
        if position in self.subscription(topic, subscription).sure:
            self.violated(f"{topic} {subscription}: {position} came back although its acknowledgment was durable")
        found = stated_message(payload)
        if found is None:
            self.violated(f"{topic} {subscription}: the content of {position} is damaged: {payload[:60]!r}")
        elif history.receipts.get(position, found) != found:
            self.violated(f"{topic} {subscription}: {position} holds {found}, receipted {history.receipts[position]}")

    def killed(self, now: float, *, clean: bool) -> None:
        """The broker is gone since ``now``: which unanswered acknowledgments must hold."""
        for history in self.topics.values():
            for subscription in history.subscriptions.values():
                for position, at in subscription.said.items():
                    if at < (NEVER if clean else now - UNANSWERED_S):
                        subscription.sure.add(position)
                doubtful = subscription.said.keys() - subscription.sure
                self.counts["acks unanswered at a kill"] += len(doubtful - subscription.doubtful)
                subscription.doubtful |= doubtful
                # what was read too shortly before this kill may be undone now, and no later kill makes it durable
                subscription.said = dict.fromkeys(doubtful, NEVER)

    # after a start -----------------------------------------------------------------------------------------------

    def looked(self, topic: str, found: list[tuple[Position, bytes]], first: Position | None) -> None:
        """Judge everything that the topic holds; ``first`` is where it begins by now."""
        history = self.topic(topic)
        positions = [position for position, _ in found]
        if positions != sorted(set(positions)):
            self.violated(f"{topic}: positions are not strictly ascending")
        last: dict[str, int] = {}
        retained: dict[Position, StatedMessage] = {}
        for position, payload in found:
            one = stated_message(payload)
            if one is None:
                self.violated(f"{topic}: the content of {position} is damaged: {payload[:60]!r}")
                continue
            retained[position] = one
            if one.sequence <= last.get(one.producer, -1):
                self.violated(f"{topic}: {one} at {position} stands behind its sequence {last[one.producer]}")
            last[one.producer] = one.sequence
            if (one.producer, one.sequence) not in history.attempted:
                self.violated(f"{topic}: {one} at {position} was never sent")
            receipt = history.receipts.get(position)
            if receipt is None:
                history.ghosts.add(position)
            elif receipt != one:
                self.violated(f"{topic}: {position} holds {one}, receipted {receipt}")
        self._missing(topic, history, retained, first)
        history.retained = retained

    def _missing(
        self, topic: str, history: TopicHistory, retained: dict[Position, StatedMessage], first: Position | None
    ) -> None:
        for position, receipt in list(history.receipts.items()):
            if position in retained:
                continue
            gone = history.subscriptions and all(
                position in one.sure or position in one.said for one in history.subscriptions.values()
            )
            if gone and (first is None or position < first):
                del history.receipts[position]  # consumed by everybody and trimmed
                self.counts["trimmed"] += 1
            else:
                self.counts["lost"] += 1
                self.violated(f"{topic}: {receipt} at {position} was receipted and is missing (first is {first})")
