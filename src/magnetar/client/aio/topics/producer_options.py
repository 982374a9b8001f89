"""What a producer is opened with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from magnetar.client.encryption.message_sealer import MessageSealer
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.client.values.value_schema import ValueSchema
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """What a producer is opened with."""

    limits: PublicationLimits
    name: str | None = None
    compression: CompressionType = CompressionType.NONE
    schema: c.Schema | None = None
    values: ValueSchema[Any] | None = None
    """How values become bytes; None: they are bytes."""
    properties: c.KeyValues = ()
    access_mode: c.ProducerAccessMode = c.ProducerAccessMode.Shared
    initial_sequence_id: int | None = None
    txn_enabled: bool = False
    block_if_queue_full: bool = False
    pending_across: int = 0
    """Messages that wait on all partitions together at most; 0: no such bound."""
    initial_subscription: str | None = None
    """A subscription that is made with the topic, at its beginning."""
    lazy: bool = False
    """Whether a partition is opened when it gets its first message."""
    sealer: MessageSealer | None = None
    """Encrypts; None: messages go out in clear."""

    def over(self, partitions: int) -> ProducerOptions:
        """Return options by which so many partitions keep the bound that they have in common, each a share of it."""
        most = self.limits.pending_messages
        if partitions < 2 or not self.pending_across or not most:
            return self
        share = max(min(most, self.pending_across // partitions), 1)
        return replace(self, limits=replace(self.limits, pending_messages=share))

    def command(
        self, topic: str, producer_id: int, request_id: int, name: str, epoch: int, topic_epoch: int | None
    ) -> c.CommandProducer:
        """Return what asks the broker for it; ``name`` is empty until it has one."""
        return c.CommandProducer(
            topic,
            producer_id,
            request_id,
            name or None,
            encrypted=self.sealer is not None,
            metadata=self.properties,
            schema=self.schema,
            epoch=epoch,
            user_provided_producer_name=self.name is not None,
            producer_access_mode=self.access_mode,
            topic_epoch=topic_epoch,
            txn_enabled=self.txn_enabled,
            initial_subscription_name=self.initial_subscription,
        )
