"""The blocking client, with the names and parameters of the official Python client (``magnetar.Client``)."""

from __future__ import annotations

import logging
import random
import re
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Never, Unpack

from magnetar.client.aio.authentication import Authentication
from magnetar.client.aio.client import Client as AioClient
from magnetar.client.aio.connections.wire_connection import KEEP_ALIVE
from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.producer_interceptor import ProducerInterceptor
from magnetar.client.aio.parameters import checked
from magnetar.client.aio.schema_choice import GivenSchema, T
from magnetar.client.aio.services.service_info import ServiceInfo
from magnetar.client.aio.services.service_switch import GivenService
from magnetar.client.aio.topics.delivery_options import DeliveryParameters
from magnetar.client.blocking.consumer import Consumer
from magnetar.client.blocking.listener_pool import Listener, ListenerPool
from magnetar.client.blocking.loggers import ClientLogger, attach
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.blocking.producer import Producer
from magnetar.client.blocking.reader import Reader
from magnetar.client.blocking.table_view import TableView
from magnetar.client.blocking.transaction import ClientTransaction
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction, ProducerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import KeySource
from magnetar.client.errors import ArgumentError
from magnetar.client.login import ClientLogin
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.batching_type import BatchingType
from magnetar.client.machines.outgoing.partition_router import HashingScheme, MessageRouter, PartitionsRoutingMode
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.machines.subscription_choices import ConsumerKeySharedPolicy, RegexSubscriptionMode
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.runtime.clock import Clock
from magnetar.security.credentials.method import ClientCredentials

_LOG: Final = logging.getLogger(__name__)
_OF_THREADS: Final = frozenset(
    {
        "io_threads", "message_listener_threads", "concurrent_lookup_requests", "log_conf_file_path",
        "use_tls", "logger",
    }
)  # fmt: skip
_LISTENERS: Final = frozenset({"message_listener", "reader_listener"})
"""Parameters that have a meaning for threads only."""


class Client:
    """A client of one cluster for threads; use it as a context manager. All its work is done on one thread of its own.

    Methods have the parameters of `magnetar.aio.Client`, and hand every one of them on.
    """

    def __init__(
        self,
        service_url: GivenService,
        authentication: ClientLogin | Authentication | ClientCredentials | None = None,
        operation_timeout_seconds: float = 30,
        io_threads: int = 1,
        message_listener_threads: int = 1,
        concurrent_lookup_requests: int = 50_000,
        log_conf_file_path: str | None = None,
        stats_interval_in_seconds: float = 0,
        use_tls: bool = False,
        tls_trust_certs_file_path: str | None = None,
        tls_allow_insecure_connection: bool = False,
        tls_validate_hostname: bool = True,
        logger: ClientLogger | None = None,
        connection_timeout_ms: int = 10_000,
        listener_name: str | None = None,
        tls_private_key_file_path: str | None = None,
        tls_certificate_file_path: str | None = None,
        *,
        connections_per_broker: int = 1,
        keep_alive_interval_seconds: float = KEEP_ALIVE,
        initial_backoff_interval_ms: float = 100,
        max_backoff_interval_ms: float = 60_000,
        memory_limit_bytes: int = 64 << 20,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """``service_url`` and what is about connections: as for `magnetar.aio.Client`. ``authentication`` holds
        credentials, and as a `ClientLogin` TLS, too. ``message_listener_threads`` call the listeners. ``clock`` and
        ``rng`` are for tests. Messages that wait for their receipts may use ``memory_limit_bytes`` of all producers
        together; 0 is no limit. Nothing is connected before something is opened.

        One thread does all I/O, whatever ``io_threads`` says; ``log_conf_file_path`` has
        no effect, since Python's logging is configured by the program. ``use_tls`` goes with a URL of pulsar+ssl.

        Raises ArgumentError, OSError about the file of ``logger``.
        """
        checked("Client", **locals())
        if use_tls and not str(service_url).startswith(("pulsar+ssl://", "https://")):
            raise ArgumentError("use_tls goes with a service_url of pulsar+ssl:// or https://, which alone decides")
        given = _given(locals(), leaving_out=_OF_THREADS)
        self._detach = weakref.finalize(self, attach(logger))
        self._detach.atexit = False
        for name, value, usual in (("io_threads", io_threads, 1), ("log_conf_file_path", log_conf_file_path, None)):
            if value != usual:
                _LOG.info("%s=%r changes nothing: docs/client.md says why", name, value)
        self._thread = LoopThread(f"magnetar client of {service_url}")
        self._listeners = ListenerPool(message_listener_threads, self._thread.name)

        async def make() -> AioClient:
            return AioClient(**given, for_threads=True)

        try:
            self.twin = self._thread.run(make())
        except BaseException:
            self._thread.stop()
            raise
        self._thread.leaves_with(partial(_leave, self.twin))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_producer(
        self,
        topic: str,
        producer_name: str | None = None,
        schema: GivenSchema[T] = None,
        initial_sequence_id: int | None = None,
        send_timeout_millis: int = 30_000,
        compression_type: int = CompressionType.NONE,
        max_pending_messages: int = 1_000,
        max_pending_messages_across_partitions: int = 50_000,
        block_if_queue_full: bool = False,
        batching_enabled: bool = False,
        batching_max_messages: int = 1_000,
        batching_max_allowed_size_in_bytes: int = 128 << 10,
        batching_max_publish_delay_ms: float = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        lazy_start_partitioned_producers: bool = False,
        properties: Mapping[str, str] | None = None,
        batching_type: BatchingType = BatchingType.Default,
        encryption_key: str | None = None,
        crypto_key_reader: KeySource | None = None,
        access_mode: c.ProducerAccessMode = c.ProducerAccessMode.Shared,
        message_router: MessageRouter | None = None,
        *,
        key_based_batching: bool = False,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
        txn_enabled: bool = False,
        initial_subscription_name: str | None = None,
        encryption_keys: Sequence[str] = (),
        crypto_failure_action: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL,
        interceptors: Sequence[ProducerInterceptor] = (),
        **other: Any,
    ) -> Producer[T]:
        """Open a producer on a topic, on all its partitions if it has some.

        Raises RefusedError, ConnectionLostError and ClientTimeoutError once operation_timeout_seconds are over,
        NotBuiltError, InvalidValueError.
        """
        opening = self.twin.create_producer(**_given(locals()))
        return Producer(self._thread, self._thread.run(opening, self._thread.closing))

    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: int = SubType.Exclusive,
        schema: GivenSchema[T] = None,
        message_listener: Listener | None = None,
        receiver_queue_size: int = 1_000,
        max_total_receiver_queue_size_across_partitions: int = 50_000,
        consumer_name: str | None = None,
        unacked_messages_timeout_ms: float | None = None,
        broker_consumer_stats_cache_time_ms: int = 30_000,
        negative_ack_redelivery_delay_ms: float = 60_000,
        is_read_compacted: bool = False,
        properties: Mapping[str, str] | None = None,
        pattern_auto_discovery_period: float = 60,
        initial_position: c.InitialPosition = c.InitialPosition.Latest,
        crypto_key_reader: KeySource | None = None,
        replicate_subscription_state_enabled: bool = False,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        start_message_id_inclusive: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy | None = None,
        key_shared_policy: ConsumerKeySharedPolicy | KeySharedMeta | None = None,
        batch_index_ack_enabled: bool = False,
        regex_subscription_mode: str = RegexSubscriptionMode.PersistentOnly,
        dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        *,
        priority_level: int | None = None,
        subscription_properties: Mapping[str, str] | None = None,
        durable: bool = True,
        is_pattern_topic: bool = False,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **other: Unpack[DeliveryParameters],
    ) -> Consumer[T]:
        """Subscribe to a topic with all its partitions, to several topics, or to those that a pattern matches.

        ``receiver_queue_size`` 0 fetches a message when it is asked for; ``start_message_id_inclusive``: a seek goes on
        with the message it names; ``is_pattern_topic``: a text is a pattern. Raises as `create_producer`.
        """
        checked("subscribe", message_listener=message_listener)
        opening = self.twin.subscribe(**_given(locals(), leaving_out=_LISTENERS))
        twin = self._thread.run(opening, self._thread.closing)
        return Consumer(self._thread, twin, message_listener, self._listeners)

    def create_reader(
        self,
        topic: str | Sequence[str],
        start_message_id: MessageId,
        schema: GivenSchema[T] = None,
        reader_listener: Listener | None = None,
        receiver_queue_size: int = 1_000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        crypto_key_reader: KeySource | None = None,
        start_message_id_inclusive: bool = False,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        *,
        subscription_name: str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **other: Any,
    ) -> Reader[T]:
        """Open a reader on a topic, on all its partitions if it has some. Raises as `create_producer`."""
        checked("create_reader", reader_listener=reader_listener)
        opening = self.twin.create_reader(**_given(locals(), leaving_out=_LISTENERS))
        return Reader(self._thread, self._thread.run(opening, self._thread.closing), reader_listener, self._listeners)

    def create_table_view(
        self,
        topic: str,
        subscription_name: str | None = None,
        schema: c.Schema | None = None,
        *,
        crypto_key_reader: KeySource | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> TableView:
        """Open a view of the last value of each key, once it has everything that is stored.

        It needs memory for all keys and values. Raises as `create_reader`.
        """
        opening = self.twin.create_table_view(**_given(locals()))
        return TableView(self._thread, self._thread.run(opening, self._thread.closing))

    def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the internal topics: the partitions, or the topic itself."""
        return self._thread.run(self.twin.get_topic_partitions(topic))

    def get_service_info(self) -> ServiceInfo:
        """Return the cluster that is used now."""

        async def ask() -> ServiceInfo:
            return self.twin.get_service_info()

        return self._thread.run(ask())

    def update_service_url(self, service_url: str) -> None:
        """Move to another URL, with the same credentials: connections are closed, and all that is open comes there.

        Raises ArgumentError, also where an `AutoClusterFailover` or `ServiceInfoProvider` decides.
        """

        async def move() -> None:
            self.twin.update_service_url(service_url)

        self._thread.run(move())

    def new_transaction(self, timeout_seconds: float = 60) -> ClientTransaction:
        """Begin a transaction, which is aborted after that time. Raises RefusedError where there are none."""
        return ClientTransaction(self._thread, self._thread.run(self.twin.new_transaction(timeout_seconds)))

    def close(self) -> None:
        """Close all producers, which send what they have first, all consumers and readers, and the connections.

        Closing twice is no error, and neither is closing in a process that was forked off: it does nothing there.
        Raises BlockedLoopError in a callback, and then nothing is closed.
        """
        self._thread.may_wait()
        try:
            self._thread.end(self.twin.close)
        finally:
            self.shutdown()

    def shutdown(self) -> None:
        """Close the connections at once, without waiting for anything (rule 6.1.8); what waits for an answer fails."""
        self._thread.stop()
        self._listeners.stop()
        self._detach()

    def __reduce__(self) -> Never:
        raise TypeError("a client cannot be sent to another process: make one there")


async def _leave(twin: AioClient) -> None:
    """Close what was left open."""
    twin.shutdown()
    await twin.wait_closed()


def _given(local: dict[str, Any], leaving_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return what a method was called with, as keyword arguments for its asyncio twin."""
    given = {name: value for name, value in local.items() if name not in ("self", "other", *leaving_out)}
    given.update(local.get("other", {}))
    return given
