"""What a consumer's queue is made with: how much waits, and what opens what is encrypted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.machines.redelivery.redeliveries import RedeliveryLimits
from magnetar.protocol.entries import EntryMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumptionLimits:
    """How much waits, and how acknowledgements are sent."""

    queue_size: int = 1_000
    """Messages; 0: the broker sends an entry only when it is asked for one (`Permits.ask_one`)."""
    in_all: int | None = None
    """Entries over all topics of a consumer that has no queues (`PrefetchBudget`); None: each topic has a queue."""
    reader: bool = False
    """Whether what was taken may be acknowledged without being asked: the broker remembers nothing of a reader."""
    batch_index_ack: bool = False
    redelivery: RedeliveryLimits = field(default_factory=RedeliveryLimits)
    pending_chunked_messages: int = 10
    acknowledge_oldest_chunked: bool = False
    one_at_hand: bool = False
    """Whether `used_up` is to be called after each message, for those that have to know when one was taken."""


class Unsealer(Protocol):
    """What opens encrypted entries."""

    @property
    def failure(self) -> ConsumerCryptoFailureAction:
        """What becomes of an entry that no key opens."""
        ...

    @property
    def has_keys(self) -> bool:
        """Whether there may be a key; without any, nothing is opened."""
        ...

    def open(self, where: str, metadata: EntryMetadata, payload: bytes) -> bytes | None:
        """Return the plain payload, None if no key opens it."""
        ...
