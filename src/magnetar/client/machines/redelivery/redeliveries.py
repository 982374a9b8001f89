"""What of one consumer's messages comes again, and when; and what does not any more.

refused by the application  --delay-->    due  -->  asked for again
had for too long            --timeout-->  due  -->  asked for again
                                           |
                                at its last delivery: dead
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery.ack_timeouts import AckTimeoutLimits, AckTimeouts
from magnetar.client.machines.redelivery.due_entries import Place
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage, DeathCause, LastDeliveries
from magnetar.client.machines.redelivery.negative_acks import NegativeAcknowledgements


@dataclass(frozen=True, slots=True, kw_only=True)
class RedeliveryLimits:
    """The limits of coming again: when, and how often."""

    negative_ack_delay: float = 60.0
    """Seconds."""
    negative_ack_backoff: Callable[[int], float] | None = None
    """Seconds by the redelivery count, instead."""
    ack_timeout: AckTimeoutLimits | None = None
    max_redeliver_count: int | None = None
    """After so many redeliveries a message is dead when it is refused."""


class Redeliveries:
    """The decisions of one consumer on one topic; the caller owns time."""

    def __init__(self, limits: RedeliveryLimits) -> None:
        self.negative = NegativeAcknowledgements(limits.negative_ack_delay, limits.negative_ack_backoff)
        self.timeouts = None if limits.ack_timeout is None else AckTimeouts(limits.ack_timeout)
        self.last = None if limits.max_redeliver_count is None else LastDeliveries(limits.max_redeliver_count)
        self.dead: list[DeadMessage] = []
        """What is to be copied to a dead letter topic, by the consumer that takes it from here."""
        self.done: Callable[[Place], None] = self._done
        """To be called with an entry that is acknowledged."""
        if self.timeouts is None and self.last is None:
            self.done = self.negative.drop

    def _done(self, place: Place) -> None:
        self.negative.drop(place)
        if self.timeouts is not None:
            self.timeouts.drop(place)
        if self.last is not None:
            self.last.done(place)

    def done_until(self, place: Place) -> None:
        """Note that an entry and all before it are acknowledged."""
        self.negative.drop_until(place)
        if self.timeouts is not None:
            self.timeouts.drop_until(place)

    def handed_out(self, message: Message[Any], now: float) -> None:
        """Begin the time of a message that the application gets, where there is a time-out."""
        if self.timeouts is None:
            return
        one = message.envelope
        place = one.ledger, one.entry
        for each in one.chunks or (place,):
            self.timeouts.received(each, one.redelivery_count, now)
        if self.last is not None:
            self.last.handed_out(place, message.index_in_batch)

    def handed_out_entries(self, envelopes: Iterable[Envelope], now: float) -> None:
        """Begin the time of entries that the application gets as a whole, where there is a time-out."""
        if self.timeouts is not None:
            for one in envelopes:
                for each in one.chunks or ((one.ledger, one.entry),):
                    self.timeouts.received(each, one.redelivery_count, now)

    def refuse(
        self,
        message_id: MessageId,
        now: float,
        delay: float | None = None,
        redelivery_count: int = 0,
        error: BaseException | str | None = None,
    ) -> None:
        """Ask for a message again after ``delay`` seconds, by default after that of its redelivery count.

        Raises what an application's backoff raises, and then nothing is asked.
        """
        place = message_id.ledger_id(), message_id.entry_id()
        if delay is None:
            delay = self.negative.delay_of(redelivery_count)
        places = message_id.chunks or (place,)
        self.negative.add(places, now, delay)
        if self.last is not None and self.last.refused(place, message_id.batch_index(), error):
            return  # the time of others of its batch goes on, since they do not come again with it
        if self.timeouts is not None:
            for each in places:
                self.timeouts.drop(each)

    def bring_again(self, message_id: MessageId, now: float, delay: float) -> None:
        """Ask for an entry again after ``delay`` seconds, whether or not this was its last delivery."""
        place = message_id.ledger_id(), message_id.entry_id()
        if self.last is not None:
            self.last.done(place)
        self.negative.add(message_id.chunks or (place,), now, delay)

    def in_transaction(self, message_id: MessageId, *, cumulative: bool) -> None:
        """Note that a transaction acknowledges a message: until it ends, the broker keeps it."""
        place = message_id.ledger_id(), message_id.entry_id()
        if cumulative:
            self.done_until(place)
            return
        for each in message_id.chunks or (place,):
            self.negative.drop(each)
            if self.timeouts is not None:
                self.timeouts.drop(each)

    @property
    def next_due(self) -> float:
        """When the first one is due; `due_entries.NEVER` if none waits."""
        due = self.negative.next_due
        return due if self.timeouts is None else min(due, self.timeouts.next_due)

    def take_due(self, now: float) -> tuple[list[Place], list[Place]]:
        """Return the entries to ask for now, those that were refused and those that the application had for too long;
        what is dead among them is in `dead` instead."""
        refused = self._of_last(self.negative.take_due(now), DeathCause.NEGATIVE_ACK)
        if self.timeouts is None:
            return refused, []
        return refused, self._of_last(self.timeouts.take_due(now), DeathCause.ACK_TIMEOUT)

    def _of_last(self, places: list[Place], cause: DeathCause) -> list[Place]:
        if self.last is None or not places:
            return places
        dead, places = self.last.split(places, cause)
        self.dead += dead
        return places

    def arrived(self, place: Place, redelivery_count: int, messages: Iterable[Message[Any]]) -> None:
        """Note the messages of an entry that was redelivered as often as it may, or more often and is dead."""
        assert self.last is not None
        self.dead += self.last.arrived(place, redelivery_count, messages)

    def take_dead(self) -> list[DeadMessage]:
        """Return what is to be copied to a dead letter topic, and begin anew."""
        found, self.dead = self.dead, []
        return found

    def clear(self) -> None:
        """Forget all: everything comes again."""
        self.negative.clear()
        if self.timeouts is not None:
            self.timeouts.clear()
        if self.last is not None:
            self.last.clear()
