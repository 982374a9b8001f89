"""Producers: opening, sending, receipts, closing (rules of group 3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from magnetar.model.errors import ServerError
from magnetar.protocol.commands.ids import KeyValues, MessageIdData, TxnId
from magnetar.protocol.commands.schemas import Schema


class ProducerAccessMode(IntEnum):
    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class ResourceType(IntEnum):
    Producer = 0
    Consumer = 1


@dataclass(frozen=True, slots=True)
class CommandProducer:
    topic: str
    producer_id: int
    request_id: int
    producer_name: str | None = None
    encrypted: bool = False
    metadata: KeyValues = ()
    schema: Schema | None = None
    epoch: int = 0
    user_provided_producer_name: bool = True
    producer_access_mode: ProducerAccessMode = ProducerAccessMode.Shared
    topic_epoch: int | None = None
    txn_enabled: bool = False
    initial_subscription_name: str | None = None


@dataclass(frozen=True, slots=True)
class CommandProducerSuccess:
    """``schema_version``, empty without a schema, and ``producer_ready`` are always on the wire (rule 3.1.4)."""

    request_id: int
    producer_name: str
    last_sequence_id: int
    schema_version: bytes
    producer_ready: bool
    topic_epoch: int | None = None


class CommandSend(NamedTuple):
    """One entry from a producer.

    ``entry`` always begins with magic and checksum; the decoder added them if the client did not send any (rule
    1.1.4). ``checksum_ok`` false asks for a SEND_ERROR (rule 1.1.5); encoding ignores it.
    """

    producer_id: int
    sequence_id: int
    num_messages: int
    highest_sequence_id: int | None
    is_chunk: bool
    txn: TxnId | None
    marker: bool
    message_id: MessageIdData | None
    entry: bytes
    checksum_ok: bool = True


class CommandSendReceipt(NamedTuple):
    producer_id: int
    sequence_id: int
    message_id: MessageIdData | None
    highest_sequence_id: int


@dataclass(frozen=True, slots=True)
class CommandSendError:
    producer_id: int
    sequence_id: int
    error: ServerError
    message: str


@dataclass(frozen=True, slots=True)
class CommandCloseProducer:
    """Closes a producer; from the broker (request id -1): make it anew, perhaps at the given address (rule 1.3.9)."""

    producer_id: int
    request_id: int
    assigned_broker_service_url: str | None = None
    assigned_broker_service_url_tls: str | None = None


@dataclass(frozen=True, slots=True)
class CommandTopicMigrated:
    resource_id: int
    resource_type: ResourceType
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
