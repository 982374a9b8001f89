"""What becomes of a message when a key is missing, with the names of the official clients."""

from __future__ import annotations

from enum import IntEnum


class ProducerCryptoFailureAction(IntEnum):
    """What a producer does whose keys cannot be read when it is opened (rule 6.11.3)."""

    FAIL = 0
    """It is not opened."""
    SEND = 1
    """It sends in clear until they can be read."""


class ConsumerCryptoFailureAction(IntEnum):
    """What a consumer does with a message that no key opens (rule 6.11.2)."""

    FAIL = 0
    """It is not delivered and stays unacknowledged, so that it comes again."""
    DISCARD = 1
    """It is acknowledged and not delivered."""
    CONSUME = 2
    """It is delivered as it is: encrypted, compressed, and a batch as one message."""
