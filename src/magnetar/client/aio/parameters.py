"""What every parameter of the client's public methods takes: the one place where arguments are checked.

A call that opens something, or that is rare, gives all its arguments to `checked` before it does anything. What stands
in the way of every message checks what is there alone (`check_message`, `whole_number`), and a time to wait only when
it has to wait.
The table is complete: a test gives absurd values to every parameter of every public method.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Container, Mapping, Sequence
from datetime import timedelta
from operator import index
from typing import Any, Final

from magnetar.client.address import ServiceUrl
from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.not_built import refuse_unknown
from magnetar.client.aio.services.auto_cluster_failover import AutoClusterFailover
from magnetar.client.aio.services.service_info_provider import ServiceInfoProvider
from magnetar.client.arguments import kinds
from magnetar.client.arguments.expected_argument import ExpectedArgument, check_all
from magnetar.client.arguments.kinds import INT32_MAX, INT64_MAX, SECONDS_MAX, TRUTH
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction, ProducerCryptoFailureAction
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.batching_type import BatchingType
from magnetar.client.machines.outgoing.partition_router import HashingScheme, PartitionsRoutingMode
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.machines.redelivery.redelivery_backoff import RedeliveryBackoff
from magnetar.client.machines.subscription_choices import ConsumerKeySharedPolicy
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import KeySharedMeta, KeySharedMode, SubType
from magnetar.protocol.commands import InitialPosition, ProducerAccessMode
from magnetar.protocol.compression import CompressionType

MILLIS_MAX: Final = SECONDS_MAX * 1_000


def _is_service(given: Any) -> bool:
    """Raises InvalidValueError."""
    if isinstance(given, AutoClusterFailover | ServiceInfoProvider):
        return True
    return isinstance(given, str) and bool(ServiceUrl.parse(given))


def _is_topic(given: Any) -> bool:
    """Raises InvalidTopicNameError."""
    return isinstance(given, str) and bool(TopicName.parse(given))


def _is_id(given: object, least: int = -1) -> bool:
    if not isinstance(given, MessageId):
        return False
    numbers = given.ledger_id(), given.entry_id()
    small = given.partition(), given.batch_index(), given.batch_size
    return (
        all(type(one) is int and least <= one <= INT64_MAX for one in numbers)
        and all(type(one) is int and -1 <= one <= INT32_MAX for one in small)
        and kinds.is_text(given.topic)
        and all(min(place) >= 0 and max(place) <= INT64_MAX for place in given.chunks)
    )


def _is_received(given: object) -> bool:
    return isinstance(given, Message) or _is_id(given, 0)


def _is_key_shared(given: object) -> bool:
    return (
        isinstance(given, KeySharedMeta)
        and type(given.mode) is KeySharedMode
        and given.allow_out_of_order_delivery in (True, False)
        and all(0 <= low <= high <= INT32_MAX for low, high in given.hash_ranges)
    )


def _is_text_or_bytes(given: object) -> bool:
    return isinstance(given, bytes) or kinds.is_text(given)


def _is_plain_function(given: object) -> bool:
    return callable(given) and not inspect.iscoroutinefunction(given)


def _is_name(given: object) -> bool:
    return kinds.is_text(given) and bool(given)


_TOPIC: Final = ExpectedArgument(
    "the name of a topic, such as orders or persistent://tenant/namespace/orders,", _is_topic
)
_TOPICS: Final = ExpectedArgument(
    f"{_TOPIC.what} or a list of at least one of them",
    lambda given: all(map(_is_topic, given)) and len(given) > 0 if kinds.is_sequence(given) else _is_topic(given),
)
_NAME: Final = kinds.text("a name, a text that is not empty, of up to 4,096 characters,")
_MILLIS: Final = kinds.number(0, MILLIS_MAX, "milliseconds")
_MILLIS_OR_NONE: Final = kinds.number(0, MILLIS_MAX, "milliseconds").or_none()
_SECONDS: Final = kinds.number(0, SECONDS_MAX, "seconds")
_COUNT: Final = kinds.whole(0, INT32_MAX)
_ONE_OR_MORE: Final = kinds.whole(1, INT32_MAX)
_MESSAGE: Final = kinds.instance("a message that was received", Message)
_MESSAGE_OR_ID: Final = ExpectedArgument("a message that was received, or the MessageId of one,", _is_received)
_DELAY: Final = ExpectedArgument("a timedelta, or a number of milliseconds, of up to ten years,", kinds.is_duration)
_PROPERTIES: Final = kinds.properties(kinds.PROPERTY_CHARACTERS).or_none()
_CAUSE: Final = kinds.instance("an exception", BaseException)
_BACKOFF: Final = kinds.instance(
    "a MultiplierRedeliveryBackoff, or what has next(redelivery_count),", RedeliveryBackoff
)
_MESSAGE_PROPERTIES: Final = kinds.properties()
_MESSAGE_FUNCTION: Final = ExpectedArgument(
    "a plain function of a consumer and a message, not one to be awaited,", _is_plain_function
)
_CHANGE_FUNCTION: Final = ExpectedArgument(
    "a plain function of a key and its value, not one to be awaited,", _is_plain_function
)

_PATH: Final = ExpectedArgument(
    "the path of a file",
    lambda given: isinstance(given, str | os.PathLike) and kinds.is_text(os.fspath(given)) and "\0" not in str(given),
)

PARAMETERS: Final[Mapping[str, ExpectedArgument]] = {
    # Client
    "service_url": ExpectedArgument(
        "a URL such as pulsar://host:6650, an AutoClusterFailover or a ServiceInfoProvider,", _is_service
    ),
    "update_service_url.service_url": ExpectedArgument(
        "a URL such as pulsar://host:6650", lambda given: isinstance(given, str) and bool(ServiceUrl.parse(given))
    ),
    "operation_timeout_seconds": kinds.number(0, SECONDS_MAX, "seconds", above=True),
    "connection_timeout_ms": kinds.number(0, MILLIS_MAX, "milliseconds", above=True),
    "keep_alive_interval_seconds": kinds.number(0, SECONDS_MAX, "seconds", above=True),
    "initial_backoff_interval_ms": kinds.number(0, MILLIS_MAX, "milliseconds", above=True),
    "max_backoff_interval_ms": kinds.number(0, MILLIS_MAX, "milliseconds", above=True),
    "memory_limit_bytes": kinds.whole(0, 1 << 50),
    "listener_name": _NAME.or_none(),
    "connections_per_broker": kinds.whole(1, 10_000),
    "stats_interval_in_seconds": _SECONDS,
    "tls_trust_certs_file_path": _PATH.or_none(),
    "tls_private_key_file_path": _PATH.or_none(),
    "tls_certificate_file_path": _PATH.or_none(),
    "tls_allow_insecure_connection": TRUTH,
    "tls_validate_hostname": TRUTH,
    "io_threads": kinds.whole(1, 10_000),
    "message_listener_threads": kinds.whole(1, 10_000),
    "concurrent_lookup_requests": _ONE_OR_MORE,
    "log_conf_file_path": _PATH.or_none(),
    "use_tls": TRUTH,
    # what is opened
    "topic": _TOPIC,
    "create_reader.topic": _TOPICS,
    "subscribe.topic": ExpectedArgument(
        f"{_TOPICS.what}, or a compiled pattern of their names,",
        lambda given: isinstance(given.pattern, str) if isinstance(given, re.Pattern) else _TOPICS.fits(given),
    ),
    "producer_name": _NAME.or_none(),
    "initial_sequence_id": kinds.whole(-1, INT64_MAX - 1).or_none(),
    "send_timeout_millis": _MILLIS,
    "compression_type": kinds.one_of(CompressionType, "CompressionType"),
    "max_pending_messages": _COUNT,
    "max_pending_messages_across_partitions": _COUNT,
    "batching_type": kinds.one_of(BatchingType, "BatchingType"),
    "block_if_queue_full": TRUTH,
    "batching_enabled": TRUTH,
    "batching_max_messages": kinds.whole(-INT32_MAX, INT32_MAX),
    "batching_max_allowed_size_in_bytes": kinds.whole(-INT64_MAX, INT64_MAX),
    "batching_max_publish_delay_ms": _MILLIS,
    "chunking_enabled": TRUTH,
    "message_routing_mode": kinds.one_of(PartitionsRoutingMode, "PartitionsRoutingMode"),
    "lazy_start_partitioned_producers": TRUTH,
    "properties": _PROPERTIES,
    "encryption_key": _NAME.or_none(),
    "encryption_keys": ExpectedArgument(
        "a name, or a list of names,",
        lambda given: all(map(_is_name, given)) if kinds.is_sequence(given) else _is_name(given),
    ),
    "crypto_key_reader": ExpectedArgument(
        "a CryptoKeyReader, or what has get_public_key and get_private_key,",
        lambda given: any(callable(getattr(given, f"get_{one}_key", None)) for one in ("public", "private")),
    ).or_none(),
    "access_mode": kinds.one_of(ProducerAccessMode, "ProducerAccessMode"),
    "message_router": kinds.function("a function of a message and the number of partitions").or_none(),
    "key_based_batching": TRUTH,
    "hashing_scheme": kinds.one_of(HashingScheme, "HashingScheme"),
    "txn_enabled": TRUTH,
    "initial_subscription_name": _NAME.or_none(),
    "create_producer.crypto_failure_action": kinds.one_of(ProducerCryptoFailureAction, "ProducerCryptoFailureAction"),
    "crypto_failure_action": kinds.one_of(ConsumerCryptoFailureAction, "ConsumerCryptoFailureAction"),
    "interceptors": ExpectedArgument("a list of interceptors", kinds.is_sequence),
    "is_pattern_topic": TRUTH,
    "broker_consumer_stats_cache_time_ms": _COUNT,
    "subscription_name": _NAME.or_none(),
    "subscribe.subscription_name": _NAME,
    "consumer_type": kinds.one_of(SubType, "ConsumerType"),
    "message_listener": _MESSAGE_FUNCTION.or_none(),
    "reader_listener": _MESSAGE_FUNCTION.or_none(),
    "receiver_queue_size": _COUNT,
    "max_total_receiver_queue_size_across_partitions": _COUNT,
    "consumer_name": _NAME.or_none(),
    "is_read_compacted": TRUTH,
    "pattern_auto_discovery_period": _SECONDS,
    "initial_position": kinds.one_of(InitialPosition, "InitialPosition"),
    "replicate_subscription_state_enabled": TRUTH,
    "max_pending_chunked_message": _COUNT,
    "auto_ack_oldest_chunked_message_on_queue_full": TRUTH,
    "key_shared_policy": ExpectedArgument(
        "a ConsumerKeySharedPolicy, or a KeySharedMeta with its mode and ranges of slots",
        lambda given: isinstance(given, ConsumerKeySharedPolicy) or _is_key_shared(given),
    ).or_none(),
    "batch_index_ack_enabled": TRUTH,
    "regex_subscription_mode": kinds.text("PersistentOnly, NonPersistentOnly or AllTopics"),
    "priority_level": _COUNT.or_none(),
    "subscription_properties": _PROPERTIES,
    "durable": TRUTH,
    "negative_ack_redelivery_delay_ms": kinds.number(100, MILLIS_MAX, "milliseconds"),
    "negative_ack_redelivery_backoff": _BACKOFF.or_none(),
    "unacked_messages_timeout_ms": _MILLIS_OR_NONE,
    "ack_timeout_tick_ms": kinds.number(1, MILLIS_MAX, "milliseconds"),
    "ack_timeout_redelivery_backoff": _BACKOFF.or_none(),
    "retry_enable": TRUTH,
    "dead_letter_policy": kinds.instance("a ConsumerDeadLetterPolicy", ConsumerDeadLetterPolicy).or_none(),
    "batch_receive_policy": kinds.instance("a ConsumerBatchReceivePolicy", ConsumerBatchReceivePolicy).or_none(),
    "ack_group_time_ms": kinds.number(0, 60_000, "milliseconds"),
    "max_ack_group_size": _ONE_OR_MORE,
    "ack_receipt_enabled": TRUTH,
    "start_message_id": ExpectedArgument("a MessageId", _is_id),
    "start_message_id_inclusive": TRUTH,
    "reader_name": _NAME.or_none(),
    "subscription_role_prefix": kinds.text("a text", empty=True).or_none(),
    "timeout_seconds": kinds.number(0, SECONDS_MAX, "seconds", above=True),
    # messages on their way out
    "partition_key": ExpectedArgument("a text or bytes", _is_text_or_bytes).or_none(),
    "ordering_key": ExpectedArgument("a text or bytes", _is_text_or_bytes).or_none(),
    "sequence_id": kinds.whole(0, INT64_MAX - 1).or_none(),
    "replication_clusters": kinds.sequence("a list of the names of clusters", _is_name).or_none(),
    "disable_replication": TRUTH.or_none(),
    "event_timestamp": kinds.whole(0, INT64_MAX, "milliseconds since 1970").or_none(),
    "deliver_at": kinds.whole(0, INT64_MAX, "milliseconds since 1970").or_none(),
    "deliver_after": kinds.instance("a timedelta", timedelta).or_none(),
    "txn": kinds.instance("a transaction of this client", ClientTransaction).or_none(),
    "send_async.callback": kinds.function("a function of a Result and a MessageId").or_none(),
    # messages on their way in
    "timeout_millis": _MILLIS_OR_NONE,
    "max_messages": kinds.whole(1, INT32_MAX).or_none(),
    "max_rows": _ONE_OR_MORE,
    "max_wait": _SECONDS,
    "metadata": kinds.text("a text with names of columns", 65_536, empty=True),
    "cumulative": TRUTH,
    "message": _MESSAGE,
    "acknowledge.message": ExpectedArgument(
        f"{_MESSAGE_OR_ID.what} or a list of these",
        lambda given: all(map(_is_received, given)) if kinds.is_sequence(given) else _is_received(given),
    ),
    "acknowledge_cumulative.message": _MESSAGE_OR_ID,
    "negative_acknowledge.message": _MESSAGE_OR_ID,
    "delay": _DELAY,
    "negative_acknowledge.delay": _DELAY.or_none(),
    "custom_properties": kinds.properties().or_none(),
    "error": ExpectedArgument(
        "an exception, or a text,", lambda given: isinstance(given, BaseException) or kinds.is_text(given)
    ).or_none(),
    "settle.error": _CAUSE.or_none(),
    "reason": kinds.text("a text", 1 << 20, empty=True),
    "cause": _CAUSE.or_none(),
    "messageid": ExpectedArgument(
        "a MessageId, or milliseconds since 1970,",
        lambda given: (
            _is_id(given) or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= INT64_MAX)
        ),
    ),
    "force": TRUTH,
    # handlers
    "handler": kinds.function("a function"),
    "Consumer.run_in_transactions.handler": ExpectedArgument(
        "a plain function of messages and a transaction, not one to be awaited,", _is_plain_function
    ),
    "client": ExpectedArgument("a client", lambda given: callable(given.new_transaction)),
    "concurrency": kinds.whole(1, 10_000),
    "per_key_order": TRUTH,
    "in_hand": _COUNT,
    "attempts": _COUNT,
    "messages": _ONE_OR_MORE,
    "drain_seconds": _SECONDS,
    "transaction_seconds": kinds.number(0, SECONDS_MAX, "seconds", above=True),
    "stop_on_sigterm": TRUTH,
    # table views
    "callback": _CHANGE_FUNCTION,
}
"""By parameter, or by call and parameter where calls differ."""


def checked(where: str, **given: object) -> None:
    """Check the arguments of one call, ``where``. Raises ArgumentError with parameter, what was given and what is
    expected."""
    check_all(PARAMETERS, given, where)


def check_opening(where: str, given: Mapping[str, Any], known: Container[str] = ()) -> None:
    """Check the arguments of a call with ``other`` parameters, of which those are ``known``.

    Raises ArgumentError, NotBuiltError or TypeError about parameters that there are not.
    """
    check_all(PARAMETERS, {**given, **given["other"]}, where)
    refuse_unknown(given["other"], where, known)


def check_message(
    properties: Mapping[str, str] | None,
    ordering_key: str | bytes | None,
    replication_clusters: Sequence[str] | None,
    disable_replication: bool | None,
    deliver_after: timedelta | None,
) -> None:
    """Check what few messages have beside content and key. Raises ArgumentError."""
    if properties is not None and not _are_plain(properties):
        _MESSAGE_PROPERTIES.check("properties", properties, "send")
    if ordering_key is not None and type(ordering_key) is not bytes:
        checked("send", ordering_key=ordering_key)
    if replication_clusters is not None or disable_replication is not None or deliver_after is not None:
        checked(
            "send", replication_clusters=replication_clusters, disable_replication=disable_replication,
            deliver_after=deliver_after,
        )  # fmt: skip


def _are_plain(properties: Mapping[str, str]) -> bool:
    """Whether nothing is to be looked at more closely, as with most."""
    if type(properties) is not dict:
        return False
    for name, value in properties.items():
        if type(name) is not str or type(value) is not str or not name.isascii() or not value.isascii():
            return False
    return True


def whole_number(name: str, given: int) -> int:
    """Return a number of a message as an int, also one of numpy or of another kind with ``__index__``.

    Raises ArgumentError.
    """
    if type(given) is not int:
        try:
            given = index(given)
        except Exception:
            raise PARAMETERS[name].refusal(name, given, "send") from None
    if not 0 <= given < INT64_MAX:
        PARAMETERS[name].check(name, given, "send")
    return given
