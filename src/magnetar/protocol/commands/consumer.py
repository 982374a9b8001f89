"""Consumers: subscribing, permits, messages, acknowledgement, seek, statistics (rules of group 5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from magnetar.model.errors import ServerError
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol.commands.ids import KeyLongValues, KeyValues, MessageIdData, TxnId
from magnetar.protocol.commands.schemas import Schema


class InitialPosition(IntEnum):
    Latest = 0
    Earliest = 1


class AckType(IntEnum):
    Individual = 0
    Cumulative = 1


class ValidationError(IntEnum):
    UncompressedSizeCorruption = 0
    DecompressionError = 1
    ChecksumMismatch = 2
    BatchDeSerializeError = 3
    DecryptionError = 4


@dataclass(frozen=True, slots=True)
class CommandSubscribe:
    topic: str
    subscription: str
    sub_type: SubType
    consumer_id: int
    request_id: int
    consumer_name: str | None = None
    priority_level: int | None = None
    durable: bool = True
    start_message_id: MessageIdData | None = None
    metadata: KeyValues = ()
    read_compacted: bool = False
    schema: Schema | None = None
    initial_position: InitialPosition = InitialPosition.Latest
    replicate_subscription_state: bool | None = None
    force_topic_creation: bool = True
    start_message_rollback_duration_sec: int = 0
    key_shared_meta: KeySharedMeta | None = None
    subscription_properties: KeyValues = ()
    consumer_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class BrokerEntryMetadata:
    """What the broker adds to an entry on request (rule 1.1.6)."""

    broker_timestamp: int | None = None
    index: int | None = None


class CommandMessage(NamedTuple):
    """One entry to a consumer; ``entry`` and ``checksum_ok`` mean the same as in `CommandSend`."""

    consumer_id: int
    message_id: MessageIdData
    redelivery_count: int
    ack_set: tuple[int, ...]
    consumer_epoch: int | None
    broker_metadata: BrokerEntryMetadata | None
    entry: bytes
    checksum_ok: bool = True


class CommandAck(NamedTuple):
    """``request_id`` asks for a ``CommandAckResponse`` (rule 1.3.5)."""

    consumer_id: int
    ack_type: AckType
    message_ids: tuple[MessageIdData, ...]
    validation_error: ValidationError | None = None
    properties: KeyLongValues = ()
    txn: TxnId | None = None
    request_id: int | None = None


@dataclass(frozen=True, slots=True)
class CommandAckResponse:
    consumer_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None
    request_id: int | None = None


@dataclass(frozen=True, slots=True)
class CommandActiveConsumerChange:
    consumer_id: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class CommandFlow:
    consumer_id: int
    permits: int


@dataclass(frozen=True, slots=True)
class CommandUnsubscribe:
    consumer_id: int
    request_id: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class CommandSeek:
    """Moves a subscription to a message id or to a publish time in milliseconds."""

    consumer_id: int
    request_id: int
    message_id: MessageIdData | None = None
    message_publish_time: int | None = None


@dataclass(frozen=True, slots=True)
class CommandReachedEndOfTopic:
    consumer_id: int


@dataclass(frozen=True, slots=True)
class CommandCloseConsumer:
    """Closes a consumer; from the broker (request id -1): subscribe anew, perhaps at the given address (rule 1.3.9)."""

    consumer_id: int
    request_id: int
    assigned_broker_service_url: str | None = None
    assigned_broker_service_url_tls: str | None = None


@dataclass(frozen=True, slots=True)
class CommandRedeliverUnacknowledgedMessages:
    """Asks for messages again; without ids for everything (rules of 5.8)."""

    consumer_id: int
    message_ids: tuple[MessageIdData, ...] = ()
    consumer_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CommandConsumerStats:
    request_id: int
    consumer_id: int


@dataclass(frozen=True, slots=True)
class CommandConsumerStatsResponse:
    """Statistics of a consumer; rates are per second (rule 1.3.12)."""

    request_id: int
    error: ServerError | None = None
    message: str | None = None
    msg_rate_out: float | None = None
    msg_throughput_out: float | None = None
    msg_rate_redeliver: float | None = None
    consumer_name: str | None = None
    available_permits: int | None = None
    unacked_messages: int | None = None
    blocked_consumer_on_unacked_msgs: bool | None = None
    address: str | None = None
    connected_since: str | None = None
    type: str | None = None
    msg_rate_expired: float | None = None
    msg_backlog: int | None = None
    message_ack_rate: float | None = None


@dataclass(frozen=True, slots=True)
class CommandGetLastMessageId:
    consumer_id: int
    request_id: int


@dataclass(frozen=True, slots=True)
class CommandGetLastMessageIdResponse:
    last_message_id: MessageIdData
    request_id: int
    consumer_mark_delete_position: MessageIdData | None = None
