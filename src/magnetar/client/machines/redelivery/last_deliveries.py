"""Entries that do not come again: what is refused of them goes to the dead letter topic (rules 6.5.2 and 6.5.3).

    redelivery count < max    nothing is kept
                     = max    the application gets it for the last time; what it refuses is dead
                     > max    dead on arrival: it was refused before, and could not be copied, or its consumer went

Only messages that the application refused, or had for too long, are dead: others of their batch stay with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from magnetar.client.machines.message import Message
from magnetar.client.machines.redelivery.due_entries import Place

ENTRIES_MAX: Final = 10_000
"""Last deliveries that are kept; one that is forgotten comes again once more, and is dead on arrival."""


class DeathCause(Enum):
    """Why a message is dead."""

    NEGATIVE_ACK = "negative acknowledgement"
    ACK_TIMEOUT = "acknowledgement timeout"
    DELIVERIES = "deliveries"
    RETRIES = "retries"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message, why it is dead, and what the application said about it."""

    message: Message[Any]
    cause: DeathCause
    error: BaseException | str | None = None
    reason: str = ""
    """Why the application rejected it."""


@dataclass(slots=True)
class _LastDelivery:
    messages: dict[int, Message[Any]]
    """By index in the batch."""
    refused: dict[int, BaseException | str | None] = field(default_factory=dict)
    handed_out: dict[int, BaseException | str | None] = field(default_factory=dict)


def _acknowledged(message: Message[Any]) -> bool:
    left, index = message.envelope.left, message.index_in_batch
    return left is not None and 0 <= index < len(left.flags) and not left.flags[index]


class LastDeliveries:
    """The entries of one consumer that were redelivered as often as they may."""

    def __init__(self, max_redeliver_count: int) -> None:
        self.max_redeliver_count = max_redeliver_count
        self._entries: dict[Place, _LastDelivery] = {}

    def arrived(self, place: Place, redelivery_count: int, messages: Iterable[Message[Any]]) -> list[DeadMessage]:
        """Note an entry that was redelivered often enough; returns its messages if it is dead on arrival."""
        if redelivery_count > self.max_redeliver_count:
            self._entries.pop(place, None)
            return [DeadMessage(message, DeathCause.DELIVERIES) for message in messages]
        # What is cut anew of an entry, because it was put back, leaves alone what was said about the rest of it.
        known = self._entries.pop(place, None) or _LastDelivery({})
        known.messages.update((message.index_in_batch, message) for message in messages)
        self._entries[place] = known
        if len(self._entries) > ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]
        return []

    def refused(self, place: Place, index: int, error: BaseException | str | None) -> bool:
        """Note which message of an entry was refused, and what was said about it; returns whether this was its last
        delivery."""
        entry = self._entries.get(place)
        if entry is None:
            return False
        entry.refused[index] = error
        entry.handed_out.pop(index, None)
        return True

    def handed_out(self, place: Place, index: int) -> None:
        """Note which message of an entry the application got, so that it may have it for too long."""
        entry = self._entries.get(place)
        if entry is not None:
            entry.handed_out[index] = None

    def split(self, places: Sequence[Place], cause: DeathCause) -> tuple[list[DeadMessage], list[Place]]:
        """Return the messages that are dead among entries that are due, and the entries that are to come again."""
        dead: list[DeadMessage] = []
        kept: set[Place] = set()
        for place in places:
            entry = self._entries.get(place)
            if entry is None:
                continue
            kept.add(place)
            chosen = entry.handed_out if cause is DeathCause.ACK_TIMEOUT else entry.refused
            for index, error in chosen.items():
                # An id may name a whole entry of several messages.
                found = [index] if index in entry.messages else list(entry.messages) if index < 0 else []
                for one in found:
                    message = entry.messages.pop(one)
                    kept.update(message.envelope.chunks)
                    if not _acknowledged(message):
                        dead.append(DeadMessage(message, cause, error))
            chosen.clear()
        return dead, [place for place in places if place not in kept]

    def done(self, place: Place) -> None:
        """Forget an entry that is acknowledged."""
        self._entries.pop(place, None)

    def clear(self) -> None:
        """Forget all: everything comes again."""
        self._entries.clear()
