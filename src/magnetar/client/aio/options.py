"""What applications give to open a producer, consumer or reader, checked and put in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from magnetar.client.aio.schema_choice import GivenSchema, SchemaChoice, schema_of_consumer
from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.aio.topics.delivery_options import DeliveryOptions
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.encryption.crypto_failure_action import (
    ConsumerCryptoFailureAction,
    ProducerCryptoFailureAction,
)
from magnetar.client.encryption.crypto_key_reader import KeySource
from magnetar.client.encryption.message_sealer import MessageSealer
from magnetar.client.encryption.message_unsealer import MessageUnsealer
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.consumption_limits import ConsumptionLimits
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.batching_type import BatchingType
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.client.machines.subscription_choices import ConsumerKeySharedPolicy
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType

_QUEUE_MAX: Final = (1 << 31) - 1
"""Permits are 32 bits on the wire."""


def topic_names(given: str | Sequence[str]) -> list[str]:
    """Return the full names of one topic or several, each once. Raises InvalidValueError."""
    names = [TopicName.parse(one).fqn for one in ([given] if isinstance(given, str) else given)]
    if not names:
        raise InvalidValueError("give the name of one topic at least")
    return list(dict.fromkeys(names))


def compiled(topic: object) -> re.Pattern[str]:
    """Return the pattern that a text is. Raises ArgumentError."""
    if isinstance(topic, re.Pattern):
        return topic
    if not isinstance(topic, str):
        raise ArgumentError(f"topic: is_pattern_topic goes with one text, and not with {type(topic).__name__}")
    try:
        return re.compile(topic)
    except re.error as error:
        raise ArgumentError(f"topic {topic!r} is no regular expression: {error}") from None


def producer_options(
    *,
    producer_name: str | None,
    schema: SchemaChoice,
    initial_sequence_id: int | None,
    send_timeout_millis: int,
    compression_type: int,
    max_pending_messages: int,
    max_pending_messages_across_partitions: int,
    block_if_queue_full: bool,
    batching_enabled: bool,
    batching_max_messages: int,
    batching_max_allowed_size_in_bytes: int,
    batching_max_publish_delay_ms: float,
    chunking_enabled: bool,
    chunks_kept: bool,
    properties: Mapping[str, str] | None,
    access_mode: c.ProducerAccessMode,
    key_based_batching: bool,
    batching_type: BatchingType,
    txn_enabled: bool,
    initial_subscription_name: str | None,
    lazy_start_partitioned_producers: bool,
    sealer: MessageSealer | None,
) -> ProducerOptions:
    """Return what a producer is opened with; the parameters are those of `Client.create_producer`.

    ``chunks_kept``: whether the topic keeps all chunks of a message, as a persistent one does (rule 3.6.1).
    Raises InvalidValueError.
    """
    if chunking_enabled and batching_enabled:
        raise InvalidValueError("chunking_enabled and batching_enabled exclude each other")
    across = max_pending_messages_across_partitions
    if min(send_timeout_millis, max_pending_messages, across, batching_max_publish_delay_ms) < 0:
        raise InvalidValueError("time-outs and limits are not below 0")
    by_key = key_based_batching or BatchingType(batching_type) is BatchingType.KeyBased
    limits = PublicationLimits(
        pending_messages=max_pending_messages,
        send_timeout=send_timeout_millis / 1000,
        batching=batching_enabled,
        batch_messages=batching_max_messages,
        batch_bytes=batching_max_allowed_size_in_bytes,
        batch_delay=batching_max_publish_delay_ms / 1000,
        batch_by_key=by_key,
        chunking=chunking_enabled and chunks_kept,
    )
    return ProducerOptions(
        name=producer_name,
        limits=limits,
        compression=CompressionType(compression_type),
        schema=schema.registered,
        values=schema.values,
        properties=tuple((properties or {}).items()),
        access_mode=access_mode,
        initial_sequence_id=initial_sequence_id,
        txn_enabled=txn_enabled,
        block_if_queue_full=block_if_queue_full,
        pending_across=across,
        sealer=sealer,
        initial_subscription=initial_subscription_name,
        lazy=lazy_start_partitioned_producers and access_mode == c.ProducerAccessMode.Shared,
    )


def consumer_options(
    *,
    subscription_name: str,
    consumer_type: int,
    schema: GivenSchema[Any],
    receiver_queue_size: int,
    consumer_name: str | None,
    delivery: DeliveryOptions,
    is_read_compacted: bool,
    properties: Mapping[str, str] | None,
    initial_position: c.InitialPosition,
    replicate_subscription_state_enabled: bool,
    max_pending_chunked_message: int,
    auto_ack_oldest_chunked_message_on_queue_full: bool,
    key_shared_policy: ConsumerKeySharedPolicy | KeySharedMeta | None,
    batch_index_ack_enabled: bool,
    priority_level: int | None,
    subscription_properties: Mapping[str, str] | None,
    durable: bool,
    start_message_id_inclusive: bool,
    unsealer: MessageUnsealer | None,
) -> ConsumerOptions:
    """Return what a consumer subscribes with; the parameters are those of `Client.subscribe`.

    Raises InvalidValueError.
    """
    if not 0 <= receiver_queue_size <= _QUEUE_MAX:
        raise InvalidValueError(f"receiver_queue_size is from 0 to {_QUEUE_MAX}, not {receiver_queue_size}")
    if not subscription_name:
        raise InvalidValueError("a subscription has a name")
    chosen = schema_of_consumer(schema)
    return ConsumerOptions(
        subscription=subscription_name,
        sub_type=SubType(consumer_type),
        name=consumer_name,
        limits=ConsumptionLimits(
            queue_size=receiver_queue_size if receiver_queue_size > 1 else 0,
            in_all=receiver_queue_size if receiver_queue_size <= 1 else None,
            batch_index_ack=batch_index_ack_enabled,
            redelivery=delivery.limits,
            one_at_hand=delivery.limits.ack_timeout is not None,
            pending_chunked_messages=max_pending_chunked_message,
            acknowledge_oldest_chunked=auto_ack_oldest_chunked_message_on_queue_full,
        ),
        initial_position=initial_position,
        priority_level=priority_level,
        properties=tuple((properties or {}).items()),
        subscription_properties=tuple((subscription_properties or {}).items()),
        read_compacted=is_read_compacted,
        replicate_subscription_state=True if replicate_subscription_state_enabled else None,
        key_shared=(
            key_shared_policy.policy() if isinstance(key_shared_policy, ConsumerKeySharedPolicy) else key_shared_policy
        ),
        schema=chosen.registered,
        values=chosen.values,
        durable=durable,
        start_inclusive=start_message_id_inclusive,
        unsealer=unsealer,
        delivery=delivery,
    )


def reader_options(
    *,
    start_message_id: MessageId,
    schema: GivenSchema[Any],
    receiver_queue_size: int,
    reader_name: str | None,
    subscription_name: str,
    is_read_compacted: bool,
    start_message_id_inclusive: bool,
    unsealer: MessageUnsealer | None,
) -> ConsumerOptions:
    """Return what a reader subscribes with; the parameters are those of `Client.create_reader`.

    Raises InvalidValueError.
    """
    if not 0 <= receiver_queue_size <= _QUEUE_MAX:
        raise InvalidValueError(f"receiver_queue_size is from 0 to {_QUEUE_MAX}, not {receiver_queue_size}")
    latest = start_message_id == MessageId.latest
    chosen = schema_of_consumer(schema)
    return ConsumerOptions(
        subscription=subscription_name,
        name=reader_name,
        limits=ConsumptionLimits(
            queue_size=receiver_queue_size if receiver_queue_size > 1 else 0,
            in_all=receiver_queue_size if receiver_queue_size <= 1 else None,
            reader=True,
        ),
        initial_position=c.InitialPosition.Latest if latest else c.InitialPosition.Earliest,
        read_compacted=is_read_compacted,
        schema=chosen.registered,
        values=chosen.values,
        durable=False,
        start=start_message_id,
        start_inclusive=start_message_id_inclusive,
        unsealer=unsealer,
    )


def message_sealer(
    key: str | None, keys: Sequence[str], reader: KeySource | None, failure: ProducerCryptoFailureAction
) -> MessageSealer | None:
    """Return what encrypts for a producer, None if it sends in clear. Raises InvalidValueError."""
    names = [*([] if key is None else [key]), *([keys] if isinstance(keys, str) else keys)]
    if reader is None and not names:
        return None
    if reader is None:
        raise InvalidValueError("encryption_key needs a crypto_key_reader, which reads the public key")
    if not names:
        raise InvalidValueError("crypto_key_reader alone encrypts nothing: name an encryption_key, too")
    return MessageSealer(names, reader, failure)


def message_unsealer(reader: KeySource | None, failure: ConsumerCryptoFailureAction) -> MessageUnsealer:
    """Return what decrypts for a consumer or reader. Raises InvalidValueError."""
    return MessageUnsealer(reader, failure)
