"""Which Python types the parameters of a client are of: what is given otherwise is an error before anything is done."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from datetime import timedelta
from types import NoneType
from typing import Any, Final

from magnetar.client.aio.not_built import refuse_unknown
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.message_id import MessageId

_TEXT: Final = (str,), "a text"
_TEXT_OR_NONE: Final = (str, NoneType), "a text or None"
_NUMBER: Final = (int, float), "a number"
_NUMBER_OR_NONE: Final = (int, float, NoneType), "a number or None"
_WHOLE: Final = (int,), "a whole number"
_WHOLE_OR_NONE: Final = (int, NoneType), "a whole number or None"
_YES: Final = (bool,), "True or False"
_PAIRS: Final = (Mapping, NoneType), "a dict of texts or None"

_CLIENT: Final = {
    **dict.fromkeys(("operation_timeout_seconds", "connection_timeout_ms", "stats_interval_in_seconds"), _NUMBER),
    **dict.fromkeys(("keep_alive_interval_seconds", "initial_backoff_interval_ms", "max_backoff_interval_ms"), _NUMBER),
    **dict.fromkeys(("io_threads", "message_listener_threads", "concurrent_lookup_requests"), _WHOLE),
    **dict.fromkeys(("use_tls", "tls_allow_insecure_connection", "tls_validate_hostname"), _YES),
    **dict.fromkeys(("listener_name", "log_conf_file_path", "tls_trust_certs_file_path"), _TEXT_OR_NONE),
    **dict.fromkeys(("tls_private_key_file_path", "tls_certificate_file_path"), _TEXT_OR_NONE),
    "connections_per_broker": _WHOLE,
}
_PRODUCER: Final = {
    "topic": _TEXT,
    **dict.fromkeys(("producer_name", "initial_subscription_name", "encryption_key"), _TEXT_OR_NONE),
    "initial_sequence_id": _WHOLE_OR_NONE,
    **dict.fromkeys(("send_timeout_millis", "batching_max_publish_delay_ms"), _NUMBER),
    "compression_type": ((int,), "a CompressionType"),
    **dict.fromkeys(("max_pending_messages", "batching_max_messages", "batching_max_allowed_size_in_bytes"), _WHOLE),
    **dict.fromkeys(
        ("block_if_queue_full", "batching_enabled", "chunking_enabled", "key_based_batching", "txn_enabled"), _YES
    ),
    "properties": _PAIRS,
}
_TOPICS: Final = "a text or a list of texts"
_CONSUMER: Final = {
    "topic": ((str, Sequence, re.Pattern), f"{_TOPICS}, or a compiled pattern"),
    "subscription_name": _TEXT,
    "consumer_type": ((int,), "a ConsumerType"),
    **dict.fromkeys(("receiver_queue_size", "max_total_receiver_queue_size_across_partitions"), _WHOLE),
    **dict.fromkeys(("max_pending_chunked_message", "broker_consumer_stats_cache_time_ms"), _WHOLE),
    "consumer_name": _TEXT_OR_NONE,
    "unacked_messages_timeout_ms": _NUMBER_OR_NONE,
    **dict.fromkeys(("negative_ack_redelivery_delay_ms", "pattern_auto_discovery_period"), _NUMBER),
    **dict.fromkeys(("is_read_compacted", "batch_index_ack_enabled", "durable", "start_message_id_inclusive"), _YES),
    **dict.fromkeys(("properties", "subscription_properties"), _PAIRS),
}
_READER: Final = {
    "topic": ((str, Sequence), _TOPICS),
    "start_message_id": ((MessageId,), "a MessageId"),
    "receiver_queue_size": _WHOLE,
    **dict.fromkeys(("reader_name", "subscription_role_prefix", "subscription_name"), _TEXT_OR_NONE),
    **dict.fromkeys(("is_read_compacted", "start_message_id_inclusive"), _YES),
}
_MESSAGE: Final = {
    "properties": _PAIRS,
    **dict.fromkeys(("partition_key", "ordering_key"), ((str, bytes, NoneType), "a text, bytes or None")),
    **dict.fromkeys(("sequence_id", "event_timestamp", "deliver_at"), _WHOLE_OR_NONE),
    "replication_clusters": ((list, tuple, NoneType), "a list of texts or None"),
    "disable_replication": ((bool, NoneType), "True, False or None"),
    "deliver_after": ((timedelta, NoneType), "a timedelta or None"),
}

TYPES: Final[Mapping[str, Mapping[str, tuple[tuple[type, ...], str]]]] = {
    "Client": _CLIENT,
    "create_producer": _PRODUCER,
    "subscribe": _CONSUMER,
    "create_reader": _READER,
    "send": _MESSAGE,
}
"""By the call and its parameters: the types, and what they are called in errors."""


def check_arguments(call: str, given: Mapping[str, Any], known: Container[str] = ()) -> None:
    """Raise ArgumentError about types, NotBuiltError or TypeError about ``other`` parameters that are not ``known``."""
    check_types(call, given)
    refuse_unknown(given["other"], call, known)


def check_types(call: str, given: Mapping[str, Any]) -> None:
    """Raise ArgumentError about the first parameter of another type; ``given`` may have ``other`` ones in a dict."""
    found = {**given, **given.get("other", {})}
    for name, (types, said) in TYPES[call].items():
        if name in found and not isinstance(found[name], types):
            raise ArgumentError(f"{call}: {name} is {said}, and not {type(found[name]).__name__}")
