"""The asyncio client, with the names and parameters of the official Python client."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Unpack

from magnetar.client.aio.authentication import Authentication
from magnetar.client.aio.client_environment import UNBOUNDED, ClientBounds, Environment
from magnetar.client.aio.client_transaction import ClientTransaction, CoordinatorSession
from magnetar.client.aio.connections.connection_pool import Dial
from magnetar.client.aio.connections.internal_topics import partitions_of
from magnetar.client.aio.connections.wire_connection import KEEP_ALIVE
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.letter_producer import LetterAddress
from magnetar.client.aio.consumers.letter_topics import with_letter_topics, with_retries
from magnetar.client.aio.consumers.topic_discovery import Find, follow, topics_by_pattern, with_shared_queue
from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.intercepted_consumer import InterceptedConsumer
from magnetar.client.aio.interceptors.intercepted_producer import InterceptedProducer
from magnetar.client.aio.interceptors.producer_interceptor import ProducerInterceptor
from magnetar.client.aio.not_built import refuse_stats_cache
from magnetar.client.aio.open_handles import OpenHandles
from magnetar.client.aio.options import (
    compiled,
    consumer_options,
    message_sealer,
    message_unsealer,
    producer_options,
    topic_names,
)
from magnetar.client.aio.parameters import check_opening, checked
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.reader_client import GROWTH_PERIOD, ReaderClient
from magnetar.client.aio.schema_choice import GivenSchema, T, schema_of_producer
from magnetar.client.aio.services.client_connections import ClientConnections
from magnetar.client.aio.services.service_info import TlsChoices
from magnetar.client.aio.services.service_switch import GivenService, ServiceSwitch
from magnetar.client.aio.topics.consumer_options import ConsumerOptions, name_by_chance
from magnetar.client.aio.topics.delivery_options import DeliveryParameters, delivery_options
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction, ProducerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import KeySource
from magnetar.client.encryption.message_sealer import RETRY, MessageSealer
from magnetar.client.login import ClientLogin
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.outgoing.batching_type import BatchingType
from magnetar.client.machines.outgoing.partition_router import (
    HashingScheme,
    MessageRouter,
    PartitionRouter,
    PartitionsRoutingMode,
)
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.machines.subscription_choices import ConsumerKeySharedPolicy, RegexSubscriptionMode
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.runtime.clock import Clock, SystemClock
from magnetar.security.credentials.method import ClientCredentials

_OF_ONE_CLIENT: Final = frozenset(
    {"self", "__class__", "clock", "rng", "dial", "opening_timeout_seconds", "bounds", "for_threads"}
)
"""Parameters that a twin does not get; ``__class__`` is a local where ``super`` is called."""


class Client(ReaderClient):
    """A client of one cluster; use it as an asynchronous context manager, within one event loop."""

    def __init__(
        self,
        service_url: GivenService,
        authentication: ClientLogin | Authentication | ClientCredentials | None = None,
        operation_timeout_seconds: float = 30,
        *,
        connection_timeout_ms: int = 10_000,
        listener_name: str | None = None,
        connections_per_broker: int = 1,
        stats_interval_in_seconds: float = 0,
        tls_trust_certs_file_path: str | None = None,
        tls_allow_insecure_connection: bool = False,
        tls_validate_hostname: bool = True,
        tls_private_key_file_path: str | None = None,
        tls_certificate_file_path: str | None = None,
        keep_alive_interval_seconds: float = KEEP_ALIVE,
        initial_backoff_interval_ms: float = 100,
        max_backoff_interval_ms: float = 60_000,
        memory_limit_bytes: int = 64 << 20,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        dial: Dial | None = None,
        opening_timeout_seconds: float | None = None,
        bounds: ClientBounds = UNBOUNDED,
        for_threads: bool = False,
    ) -> None:
        """``service_url``: pulsar://host:port[,host:port...], with TLS pulsar+ssl://; http:// or https:// for lookups
        by REST; or an `AutoClusterFailover` or `ServiceInfoProvider`. ``authentication`` holds credentials, and as a
        `ClientLogin` TLS, too. ``clock`` and ``rng`` are for simulations.

        A broker silent for ``keep_alive_interval_seconds`` is asked for a sign, and after as long again taken for lost.
        ``initial_backoff_interval_ms`` doubles to ``max_backoff_interval_ms`` between attempts to connect again.

        Messages that wait for their receipts may use ``memory_limit_bytes`` of all producers together; 0 is no limit.

        ``dial`` connects to a broker of this process. ``opening_timeout_seconds``: how long what is refused for the
        moment (a name or subscription in use) is tried again when it is opened, if not as long as any operation.
        Nothing is connected before something is opened. Raises ArgumentError.
        """
        given = dict(locals())
        self._twin = partial(Client, **{name: one for name, one in given.items() if name not in _OF_ONE_CLIENT})
        checked("Client", **given)
        tls = TlsChoices(
            tls_allow_insecure_connection, tls_validate_hostname, tls_private_key_file_path, tls_certificate_file_path
        )
        switch = ServiceSwitch(service_url, authentication, tls_trust_certs_file_path, tls)
        chance = rng or random.Random()
        connections = ClientConnections(
            switch, chance, timeout=operation_timeout_seconds, connect_timeout_ms=connection_timeout_ms,
            keep_alive=keep_alive_interval_seconds, per_broker=connections_per_broker, listener=listener_name,
            backoff_ms=(initial_backoff_interval_ms, max_backoff_interval_ms), dial=dial,
        )  # fmt: skip
        opening = opening_timeout_seconds or operation_timeout_seconds
        memory = PendingBytes(memory_limit_bytes, threads=for_threads)
        environment = Environment(connections.lookup, clock or SystemClock(), chance, opening, bounds, memory)
        super().__init__(connections, OpenHandles(stats_interval_in_seconds), environment)
        self._coordinator = CoordinatorSession(self._lookup)

    def twin(self) -> Client:
        """Return another client of the same cluster, with connections of its own."""
        return self._twin()

    async def create_producer(
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

        ``schema`` is registered, and makes bytes of values. ``lazy_start_partitioned_producers``: one partition is
        opened at once, each other one when it gets its first message (not with an exclusive access mode). Raises
        RefusedError, ConnectionLostError and ClientTimeoutError once operation_timeout_seconds are over,
        InvalidValueError.
        """
        check_opening("create_producer", locals())
        name = TopicName.parse(topic).fqn
        self._begin()
        chosen = await schema_of_producer(schema, name, self._lookup)
        sealer = message_sealer(encryption_key, encryption_keys, crypto_key_reader, crypto_failure_action)
        options = producer_options(
            producer_name=producer_name, schema=chosen, initial_sequence_id=initial_sequence_id,
            send_timeout_millis=send_timeout_millis, compression_type=compression_type,
            max_pending_messages=max_pending_messages,
            max_pending_messages_across_partitions=max_pending_messages_across_partitions,
            batching_type=batching_type, block_if_queue_full=block_if_queue_full, batching_enabled=batching_enabled,
            batching_max_messages=batching_max_messages,
            batching_max_allowed_size_in_bytes=batching_max_allowed_size_in_bytes,
            batching_max_publish_delay_ms=batching_max_publish_delay_ms, chunking_enabled=chunking_enabled,
            chunks_kept=TopicName.parse(topic).persistent,
            properties=properties, access_mode=access_mode, sealer=sealer, key_based_batching=key_based_batching,
            txn_enabled=txn_enabled, initial_subscription_name=initial_subscription_name,
            lazy_start_partitioned_producers=lazy_start_partitioned_producers,
        )  # fmt: skip
        partitions = await partitions_of(self._lookup, name)
        router = PartitionRouter(
            message_routing_mode, hashing_scheme, self._rng.random(), options.limits.routing, router=message_router
        )
        made: Callable[..., Producer[Any]] = Producer if not interceptors else InterceptedProducer.of(interceptors)
        return await self._opened(made, name, partitions, options, router)

    async def _opened(
        self,
        made: Callable[..., Producer[Any]],
        name: str,
        partitions: int,
        options: ProducerOptions,
        router: PartitionRouter,
    ) -> Producer[Any]:
        sealer = options.sealer
        if sealer is not None:
            await self._renew(sealer)
        producer = made(name, partitions, self._environment, options.over(partitions), router)
        await producer.opened()
        await self._open.keep(producer)
        if sealer is not None:
            self._open.watch(producer, lambda: self._renew(sealer), RETRY)
        if partitions:
            self._open.watch(producer, lambda: self._grow(producer, name), GROWTH_PERIOD)
        return producer

    async def _renew(self, sealer: MessageSealer) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sealer.renew, loop.time())

    async def _grow(self, producer: Producer[Any], topic: str) -> None:
        count = await self._lookup.partition_count(topic, create=False)
        if count:
            await producer.grow(count)

    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: int = SubType.Exclusive,
        schema: GivenSchema[T] = None,
        receiver_queue_size: int = 1_000,
        max_total_receiver_queue_size_across_partitions: int = 50_000,
        consumer_name: str | None = None,
        unacked_messages_timeout_ms: float | None = None,
        broker_consumer_stats_cache_time_ms: int = 30_000,
        negative_ack_redelivery_delay_ms: float = 60_000,
        is_read_compacted: bool = False,
        properties: Mapping[str, str] | None = None,
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
        is_pattern_topic: bool = False,
        *,
        pattern_auto_discovery_period: float = 60,
        priority_level: int | None = None,
        subscription_properties: Mapping[str, str] | None = None,
        durable: bool = True,
        interceptors: Sequence[ConsumerInterceptor] = (),
        **other: Unpack[DeliveryParameters],
    ) -> Consumer[T]:
        """Subscribe to a topic with all its partitions, to several topics, or to those that a pattern matches.

        ``receiver_queue_size`` 0 fetches a message when it is asked for; ``start_message_id_inclusive``: a seek goes on
        with the message it names; ``is_pattern_topic``: a text is a pattern. Raises as `create_producer`.
        """
        topic = compiled(topic) if is_pattern_topic is True else topic
        check_opening("subscribe", locals(), DeliveryParameters.__annotations__)
        refuse_stats_cache(broker_consumer_stats_cache_time_ms)
        options = consumer_options(
            subscription_name=subscription_name, consumer_type=consumer_type, schema=schema,
            receiver_queue_size=receiver_queue_size, consumer_name=consumer_name or name_by_chance(self._rng),
            delivery=delivery_options(
                SubType(consumer_type), self._rng, negative_ack_redelivery_delay_ms=negative_ack_redelivery_delay_ms,
                unacked_messages_timeout_ms=unacked_messages_timeout_ms, dead_letter_policy=dead_letter_policy,
                batch_receive_policy=batch_receive_policy, **other,
            ),
            is_read_compacted=is_read_compacted, properties=properties, initial_position=initial_position,
            replicate_subscription_state_enabled=replicate_subscription_state_enabled,
            max_pending_chunked_message=max_pending_chunked_message,
            auto_ack_oldest_chunked_message_on_queue_full=auto_ack_oldest_chunked_message_on_queue_full,
            key_shared_policy=key_shared_policy, batch_index_ack_enabled=batch_index_ack_enabled,
            priority_level=priority_level, subscription_properties=subscription_properties, durable=durable,
            start_message_id_inclusive=start_message_id_inclusive,
            unsealer=message_unsealer(crypto_key_reader, crypto_failure_action),
        )  # fmt: skip
        made: Callable[..., Consumer[Any]] = Consumer if not interceptors else InterceptedConsumer.of(interceptors)
        found = await self._found(topic, options, pattern_auto_discovery_period, regex_subscription_mode)
        name, find, period, options = found
        topics = await find()
        options = with_shared_queue(options, len(topics), max_total_receiver_queue_size_across_partitions)
        consumer = made(name, self._environment, options, self._open_outlet)
        await consumer.add(topics)
        await self._open.keep(consumer)
        self._open.watch(consumer, lambda: follow(consumer, find, leave=isinstance(topic, re.Pattern)), period)
        return consumer

    async def _found(
        self, topic: str | Sequence[str] | re.Pattern[str], options: ConsumerOptions, pattern_period: float, mode: str
    ) -> tuple[str, Find, float, ConsumerOptions]:
        """Return a name for what is subscribed to, how its topics are found and how often, and the options for it."""
        self._begin()
        if isinstance(topic, re.Pattern):
            matching = topics_by_pattern(self._lookup, topic.pattern, mode, self._environment.bounds.topics)
            find = with_retries(options, matching, self._internal)
            return topic.pattern, find, max(pattern_period, 1.0), options
        names = topic_names(topic)
        options = await with_letter_topics(options, names[0], self._lookup.exists)
        every = [*names, *options.delivery.retry_topics]
        return ",".join(names), lambda: self._internal(every), GROWTH_PERIOD, options

    async def _open_outlet(self, address: LetterAddress) -> Producer:
        """Open the producer of a consumer's letters, with which it is closed."""
        parameters = {"chunking_enabled": True, "block_if_queue_full": True} | dict(address.parameters)
        producer = await self.create_producer(
            address.topic, address.producer_name, address.schema,
            initial_subscription_name=address.initial_subscription, **parameters,
        )  # fmt: skip
        self._open.release(producer)
        return producer

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the internal topics: the partitions, or the topic itself."""
        checked("get_topic_partitions", topic=topic)
        return await self._internal([TopicName.parse(topic).fqn])

    async def new_transaction(self, timeout_seconds: float = 60) -> ClientTransaction:
        """Begin a transaction, which is aborted after that time. Raises RefusedError where there are none."""
        checked("new_transaction", timeout_seconds=timeout_seconds)
        self._begin()
        return await self._coordinator.begin(timeout_seconds)
