"""What a topic's policies ask of every message: encryption, size, deduplication, and a rate.

A producer of a topic that asks for nothing keeps its plain ``publish``; one callable stands in its place otherwise,
and is exchanged when a policy changes (decision 006, point 4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from typing_extensions import override

from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.publish.deduplication import DEDUPLICATION, Deduplication, DeduplicationSettings
from magnetar.broker.topic.publish.producer import Producer, Publish
from magnetar.broker.topic.publish.producers import ProducerLimits, Producers
from magnetar.broker.topic.publish.publish_rate import PublishLimit
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.model.errors import MetadataError, NotAllowedError, ProtocolError
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.commands import CommandSend
from magnetar.protocol.entries import metadata_of
from magnetar.runtime.clock import Clock
from magnetar.storage.ledgers.managed_ledger import ManagedLedger


class PublishSettings(NamedTuple):
    """The part of the settings that no policy overrides."""

    deduplication: DeduplicationSettings = DeduplicationSettings()
    same_address_max: int = 0
    """maxSameAddressProducersPerTopic; 0 without limit."""


class PublishChecks(TopicFeature):
    """What one topic's policies ask of every message."""

    def __init__(
        self, topic: str, producers: Producers, policies: TopicPolicies, clock: Clock, settings: PublishSettings,
        log: ManagedLedger | None = None, shared: SharedLimits | None = None,
    ) -> None:  # fmt: skip
        """Without ``log`` nothing is deduplicated (rule 3.1.5)."""
        self._topic = topic
        self._log = log
        self._producers = producers
        self._policies = policies
        self._clock = clock
        self._settings = settings
        self._shared = shared or SharedLimits()
        self._own_limit: RateLimit | None = None
        self.limit: PublishLimit | None = None
        """None: no rate limit."""
        self._switch_limit()
        self.deduplication: Deduplication | None = None
        self._switch_deduplication()

    def limits(self) -> ProducerLimits:
        """How many producers there may be."""
        return ProducerLimits(self._policies.max_producers, self._settings.same_address_max)

    def admit(self, producer: Producer) -> None:
        """Choose the producer's way in. Raises MetadataError if it has to encrypt and does not (rule 3.1.7)."""
        if self._policies.encryption_required and not producer.info.encrypted:
            raise MetadataError(f"Encryption is required in {self._topic}")
        self._equip(producer)

    def _equip(self, producer: Producer) -> None:
        policies = self._policies
        publish = producer.store if self.deduplication is None else self.deduplication.way_in(producer)
        if policies.max_message_size > 0 or policies.encryption_required:
            publish = partial(self._checked, producer, publish)
        if self.limit is not None:
            publish = self.limit.way_in(producer, publish)
        producer.publish = publish

    def _checked(self, producer: Producer, publish: Publish, message: CommandSend) -> None:
        policies = self._policies
        if policies.encryption_required and not _encrypted(message.entry):
            raise MetadataError("Messages must be encrypted")
        if 0 < policies.max_message_size < len(message.entry) and not message.is_chunk:
            raise NotAllowedError("Exceed maximum message size")
        publish(message)

    @override
    def policies_changed(self, before: TopicPolicies, now: TopicPolicies) -> None:
        self.set_policies(now)

    def set_policies(self, now: TopicPolicies) -> None:
        """Ask this of the producers that are connected already, and of those to come."""
        self._policies = now
        self._switch_limit()
        self._switch_deduplication()
        for producer in self._producers:
            if now.encryption_required and not producer.info.encrypted:
                self._producers.close(producer)
        for producer in self._producers.with_waiting():
            self._equip(producer)

    def _switch_limit(self) -> None:
        amounts, own = RateAmounts(*self._policies.publish_rate), self._own_limit
        if own is None or own.amounts != amounts:
            self._own_limit = RateLimit(LimitLevel.TOPIC, "publishRate", amounts) if amounts.limited else None
        limits: tuple[RateLimit, ...] = () if self._own_limit is None else (self._own_limit,)
        limits += self._shared.publish(self._policies.resource_group)
        if not limits:
            self.limit = None
        elif self.limit is None or self.limit.limits != limits:
            self.limit = PublishLimit(limits)
        if own is not None and own is not self._own_limit:
            own.close()

    def _switch_deduplication(self) -> None:
        if self._log is None:
            return
        if self._policies.deduplication_enabled:
            if self.deduplication is None:
                self.deduplication = Deduplication(
                    self._log, self._settings.deduplication, self._producers.connected, self._clock.now_ms()
                )
            return
        if self.deduplication is not None:
            self.deduplication.remove()
            self.deduplication = None
        elif (kept := self._log.feature_states.get(DEDUPLICATION)) is not None and kept.exists:
            kept.remove()  # it was switched off while the topic was not loaded

    def when_settled(self, name: str, go_on: Callable[[], None]) -> None:
        """Go on when nothing of an earlier life of that producer is in flight: at once without deduplication."""
        if self._log is None or self.deduplication is None or self.deduplication.settled(name):
            go_on()
        else:
            self._log.barrier(go_on, lambda error: go_on())

    def last_sequence_id(self, name: str) -> int:
        """Highest durable sequence id of a producer, -1 if unknown or without deduplication (rule 3.1.5)."""
        return -1 if self.deduplication is None else self.deduplication.last_sequence_id(name)

    def tidy(self) -> None:
        """Now and then."""
        if self.deduplication is not None:
            self.deduplication.tidy(self._clock.now_ms())


def _encrypted(entry: bytes) -> bool:
    try:
        return bool(metadata_of(entry).encryption_keys)
    except ProtocolError:
        return False
