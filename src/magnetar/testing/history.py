"""What clients saw, written down, and whether a correct broker could have shown it. No product code is used here.

A simulation appends one event for everything its clients do or see, in the order of the simulation's one clock; then
:func:`check` returns every broken promise as a line of text. The model is small: a topic (one partition) is a
growing map from place to value; a subscription has a start and a set of confirmed acks.

Promises checked:

* *durable before receipt*: at ``Drained`` every receipted value after the subscription's start was delivered or acked;
* *positions*: no two values share a place, one value has two only if a retry was allowed, a place never changes its
  value, and whatever was receipted before a send began stands before it, hence order per producer and across producers;
* *no invention*: what is delivered was sent;
* *order* (by rule): first deliveries of a subscription ascend per topic, or per key; between two causes for redelivery
  a consumer sees ascending places;
* *one owner per key* (rule ``KEY``, rule 5.6.15): no consumer gets a key while another holds unacked ones;
* *acked stays acked*: after ``AckConfirmed`` the entry is not delivered again, unless the rules excuse it;
* *duplicates only with a cause*: an entry is delivered again to a subscription only after something that allows it: its
  consumer left or asked for redelivery, a crash, a seek.

The caller must write ``Receipted``/``Delivered``/``AckConfirmed`` when the frame reaches the client and ``Sent``,
``Acked`` and ``RedeliveryAsked`` before the frame leaves it: then what is missing was lost by the broker or the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class MessagePosition(NamedTuple):
    """Where a message is: ledger, entry, and its index in the batch (-1: not in a batch, or the whole entry)."""

    ledger: int
    entry: int
    batch_index: int = -1

    def end(self) -> MessagePosition:
        """The last place that an ack of this one covers."""
        return self if self.batch_index >= 0 else MessagePosition(self.ledger, self.entry, 1 << 31)


BEGINNING = MessagePosition(-1, -1)


@dataclass(frozen=True, slots=True)
class Sent:
    topic: str
    producer: str
    value: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Receipted:
    topic: str
    producer: str
    value: str
    place: MessagePosition


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription exists; everything after ``start`` belongs to it."""

    topic: str
    subscription: str
    start: MessagePosition = BEGINNING


@dataclass(frozen=True, slots=True)
class ConsumerOpened:
    topic: str
    subscription: str
    consumer: str


@dataclass(frozen=True, slots=True)
class ConsumerLeft:
    """Closed, disconnected, or its broker crashed."""

    topic: str
    subscription: str
    consumer: str


@dataclass(frozen=True, slots=True)
class RedeliveryAsked:
    """``places`` empty: everything this consumer has not acked."""

    topic: str
    subscription: str
    consumer: str
    places: frozenset[MessagePosition] = frozenset()


@dataclass(frozen=True, slots=True)
class ActiveChanged:
    """Failover: another consumer is the active one and gets everything unacked (rule 5.4.6)."""

    topic: str
    subscription: str
    consumer: str


@dataclass(frozen=True, slots=True)
class Delivered:
    topic: str
    subscription: str
    consumer: str
    place: MessagePosition
    value: str
    redelivery: int = 0


@dataclass(frozen=True, slots=True)
class Acked:
    """The client sent the ack; whether it arrived is not known."""

    topic: str
    subscription: str
    consumer: str
    place: MessagePosition
    cumulative: bool = False


@dataclass(frozen=True, slots=True)
class AckConfirmed:
    """The broker answered the ack."""

    topic: str
    subscription: str
    place: MessagePosition
    cumulative: bool = False


@dataclass(frozen=True, slots=True)
class Sought:
    """The cursor was moved: delivery starts again after ``before``, acks are forgotten (rule 5.9.4)."""

    topic: str
    subscription: str
    before: MessagePosition = BEGINNING


@dataclass(frozen=True, slots=True)
class Crashed:
    """The broker was killed and started again."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The subscription's consumers have waited long enough: whatever was going to come has come."""

    topic: str
    subscription: str


Event: TypeAlias = (
    Sent
    | Receipted
    | Subscribed
    | ConsumerOpened
    | ConsumerLeft
    | RedeliveryAsked
    | ActiveChanged
    | Delivered
    | Acked
    | AckConfirmed
    | Sought
    | Crashed
    | Drained
)
