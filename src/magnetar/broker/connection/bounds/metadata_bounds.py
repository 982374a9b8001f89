"""Bounds of the names, metadata and properties that a client gives and the broker keeps as long as it stays.

Refusals that only magnetar knows are NotAllowedError: official clients report that to the program at once, with its
reason, while they repeat a request that was answered with MetadataError until their operation timeout, and report only
the timeout.
"""

from __future__ import annotations

from typing import Final

from magnetar.model.errors import MetadataError, NotAllowedError
from magnetar.model.own_properties import OF_SUBSCRIPTIONS, refusal
from magnetar.protocol import commands as c

NAME_MAX: Final = 4096
"""Characters of a subscription's, consumer's or producer's name."""
PROPERTIES_MAX: Final = 64 << 10
"""Characters of a producer's metadata, and of a subscription's properties."""

_Pairs = tuple[tuple[str, str], ...]


def check_subscribe(command: c.CommandSubscribe, metadata_max: int) -> None:
    """Check a SUBSCRIBE. Raises NotAllowedError, or MetadataError above ``metadata_max`` (maxConsumerMetadataSize)."""
    _check_name("subscription", command.subscription)
    _check_name("consumer", command.consumer_name)
    if metadata_max and _size(command.metadata) > metadata_max:
        # the text is Apache Pulsar's
        raise MetadataError(f"metadata has a max size of {metadata_max // 1024 or 1} Kb")
    _check_size("subscription properties", command.subscription_properties)
    if refused := refusal((name for name, _ in command.subscription_properties), OF_SUBSCRIPTIONS):
        raise NotAllowedError(refused)


def check_producer(command: c.CommandProducer) -> None:
    """Check a PRODUCER. Raises NotAllowedError."""
    _check_name("producer", command.producer_name)
    _check_name("initial subscription", command.initial_subscription_name)
    _check_size("producer metadata", command.metadata)


def _check_name(what: str, name: str | None) -> None:
    if name is not None and len(name) > NAME_MAX:
        raise NotAllowedError(f"the {what} name has {len(name)} characters, at most {NAME_MAX} are allowed")


def _check_size(what: str, pairs: _Pairs) -> None:
    size = _size(pairs)
    if size > PROPERTIES_MAX:
        raise NotAllowedError(f"the {what} have {size} characters, at most {PROPERTIES_MAX} are allowed")


def _size(pairs: _Pairs) -> int:
    return sum(len(key) + len(value) for key, value in pairs)
