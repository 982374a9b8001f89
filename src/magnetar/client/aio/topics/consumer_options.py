"""What a consumer subscribes with."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from typing import Any, Final

from magnetar.client.aio.topics.delivery_options import DeliveryOptions
from magnetar.client.encryption.message_unsealer import MessageUnsealer
from magnetar.client.machines.consumption_limits import ConsumptionLimits
from magnetar.client.machines.message_id import MessageId
from magnetar.client.values.value_schema import ValueSchema
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c

_ALPHABET: Final = string.ascii_letters + string.digits
_CHARACTERS: Final = 5
"""Of a name by chance, as Java has it."""


def name_by_chance(rng: random.Random) -> str:
    """Return what makes the names of consumers differ, and those of their producers (rules 0.7, 5.1.8)."""
    return "".join(rng.choices(_ALPHABET, k=_CHARACTERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """What a consumer subscribes with."""

    subscription: str
    limits: ConsumptionLimits
    sub_type: SubType = SubType.Exclusive
    name: str | None = None
    initial_position: c.InitialPosition = c.InitialPosition.Latest
    priority_level: int | None = None
    properties: c.KeyValues = ()
    subscription_properties: c.KeyValues = ()
    read_compacted: bool = False
    replicate_subscription_state: bool | None = None
    key_shared: KeySharedMeta | None = None
    schema: c.Schema | None = None
    values: ValueSchema[Any] | None = None
    """How values are read; None: they are bytes."""
    durable: bool = True
    delivery: DeliveryOptions = field(default_factory=DeliveryOptions)
    start: MessageId | None = None
    """Of a reader: where it begins."""
    start_inclusive: bool = False
    """Whether the message is included at which a reader begins, or which a seek names."""
    unsealer: MessageUnsealer | None = None
    """Decrypts; None: what is encrypted is not delivered."""
    sealed_stay: bool = True
    """Whether the consumer passes over what no key opens, with FAIL; otherwise it fails there."""

    def command(
        self, topic: str, consumer_id: int, request_id: int, start: c.MessageIdData | None, epoch: int | None
    ) -> c.CommandSubscribe:
        """Return the command; ``start`` is where a reader begins or goes on."""
        return c.CommandSubscribe(
            topic,
            self.subscription,
            self.sub_type,
            consumer_id,
            request_id,
            consumer_name=self.name,
            priority_level=self.priority_level,
            durable=self.durable,
            start_message_id=start,
            metadata=self.properties,
            read_compacted=self.read_compacted,
            schema=self.schema,
            initial_position=self.initial_position,
            replicate_subscription_state=self.replicate_subscription_state,
            key_shared_meta=self.key_shared,
            subscription_properties=self.subscription_properties,
            consumer_epoch=epoch,
        )


def left_out(start: MessageId | None, *, inclusive: bool) -> MessageId | None:
    """Return the last message that is left out of the entry that begins at ``start``; None: there is none."""
    if start is None or not inclusive:
        return start
    if start.batch_index() <= 0:
        return None
    return MessageId(start.partition(), start.ledger_id(), start.entry_id(), start.batch_index() - 1)


def start_data(start: MessageId, *, inclusive: bool) -> c.MessageIdData:
    """Return where a reader begins, as the command says it."""
    if start == MessageId.latest or start == MessageId.earliest:
        return start.data()
    place = start.chunks[0] if start.chunks and inclusive else (start.ledger_id(), start.entry_id())
    # With a batch index a broker begins with the entry, without one after it (rule 4.3.6).
    index = max(start.batch_index(), 0) if inclusive else start.batch_index()
    return c.MessageIdData(*place, batch_index=index)
