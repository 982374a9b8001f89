"""The asyncio client, with the names and parameters of the official Python client."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from magnetar.client.aio.client_environment import UNBOUNDED, ClientBounds, Environment
from magnetar.client.aio.client_transaction import ClientTransaction, CoordinatorSession
from magnetar.client.aio.connection_pool import ConnectionPool, Dial
from magnetar.client.aio.consumer import Consumer
from magnetar.client.aio.not_built import refuse_unknown
from magnetar.client.aio.producer import Producer
from magnetar.client.aio.reader import Reader
from magnetar.client.aio.topic_consumer import ConsumerOptions
from magnetar.client.aio.topic_lookup import TopicLookup
from magnetar.client.aio.topic_pattern import PatternTopics, WantedTopics, mode_of
from magnetar.client.aio.topic_producer import ProducerOptions
from magnetar.client.errors import AlreadyClosedError, ClientError
from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.client.machines.consumption import ConsumptionLimits
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.partition_router import (
    HashingScheme,
    MessageRouter,
    PartitionRouter,
    PartitionsRoutingMode,
)
from magnetar.client.machines.publication import PublicationLimits
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.runtime.clock import Clock, SystemClock

GROWTH_PERIOD: Final = 60.0
"""Seconds between two questions whether a topic has gained partitions (rule 6.8.4)."""
_NACK_DELAY_MIN_MS: Final = 100


class Client:
    """A client of one cluster; use it as an asynchronous context manager, within one event loop."""

    def __init__(
        self,
        service_url: str,
        authentication: ClientLogin = UNKNOWN,
        operation_timeout_seconds: float = 30,
        *,
        connection_timeout_ms: int = 10_000,
        listener_name: str | None = None,
        connections_per_broker: int = 1,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        dial: Dial | None = None,
        opening_timeout_seconds: float | None = None,
        bounds: ClientBounds = UNBOUNDED,
    ) -> None:
        """``authentication`` holds credentials and TLS. ``clock`` and ``rng`` are for simulations.

        ``dial`` connects to a broker of this process. ``opening_timeout_seconds``: how long what is refused for the
        moment (a name or subscription in use) is tried again when it is opened, if not as long as any operation.

        Nothing is connected before something is opened. Raises InvalidValueError.
        """
        if connections_per_broker < 1 or operation_timeout_seconds <= 0 or connection_timeout_ms <= 0:
            raise InvalidValueError("connections_per_broker and the time-outs are above 0")
        self._again = (service_url, authentication, operation_timeout_seconds)
        self._more = (connection_timeout_ms, listener_name, connections_per_broker)
        self._rng = rng or random.Random()
        self._pool = ConnectionPool(
            service_url,
            authentication.credentials,
            authentication.tls,
            timeout=operation_timeout_seconds,
            connect_timeout=connection_timeout_ms / 1000,
            per_broker=connections_per_broker,
            dial=dial,
        )
        self._lookup = TopicLookup(self._pool, self._rng, operation_timeout_seconds, listener_name)
        opening = opening_timeout_seconds or operation_timeout_seconds
        self._environment = Environment(self._lookup, clock or SystemClock(), self._rng, opening, bounds)
        self._coordinator = CoordinatorSession(self._lookup)
        self._handles: dict[int, Producer | Consumer] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._closed = False

    def twin(self) -> Client:
        """Return another client of the same cluster, with connections of its own."""
        timeout, listener, connections = self._more
        return Client(
            *self._again, connection_timeout_ms=timeout, listener_name=listener, connections_per_broker=connections
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create_producer(
        self,
        topic: str,
        producer_name: str | None = None,
        schema: c.Schema | None = None,
        initial_sequence_id: int | None = None,
        send_timeout_millis: int = 30_000,
        compression_type: int = CompressionType.NONE,
        max_pending_messages: int = 1_000,
        block_if_queue_full: bool = False,
        batching_enabled: bool = False,
        batching_max_messages: int = 1_000,
        batching_max_allowed_size_in_bytes: int = 128 << 10,
        batching_max_publish_delay_ms: float = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        properties: Mapping[str, str] | None = None,
        access_mode: c.ProducerAccessMode = c.ProducerAccessMode.Shared,
        message_router: MessageRouter | None = None,
        *,
        key_based_batching: bool = False,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
        txn_enabled: bool = False,
        **other: Any,
    ) -> Producer:
        """Open a producer on a topic, on all its partitions if it has some.

        ``schema`` is registered as it is; messages stay bytes. Raises RefusedError, ConnectionLostError and
        ClientTimeoutError once operation_timeout_seconds are over, NotBuiltError, InvalidValueError.
        """
        refuse_unknown(other, "create_producer")
        if chunking_enabled and batching_enabled:
            raise InvalidValueError("chunking_enabled and batching_enabled exclude each other")
        if min(send_timeout_millis, max_pending_messages, batching_max_publish_delay_ms) < 0:
            raise InvalidValueError("time-outs and limits are not below 0")
        limits = PublicationLimits(
            pending_messages=max_pending_messages,
            send_timeout=send_timeout_millis / 1000,
            batching=batching_enabled,
            batch_messages=batching_max_messages,
            batch_bytes=batching_max_allowed_size_in_bytes,
            batch_delay=batching_max_publish_delay_ms / 1000,
            batch_by_key=key_based_batching,
            chunking=chunking_enabled,
        )
        options = ProducerOptions(
            name=producer_name,
            limits=limits,
            compression=CompressionType(compression_type),
            schema=schema,
            properties=tuple((properties or {}).items()),
            access_mode=access_mode,
            initial_sequence_id=initial_sequence_id,
            txn_enabled=txn_enabled,
            block_if_queue_full=block_if_queue_full,
        )
        name = TopicName.parse(topic).fqn
        partitions = await self._partitions(name)
        router = PartitionRouter(
            message_routing_mode, hashing_scheme, self._rng.random(), limits.routing, router=message_router
        )
        producer = Producer(name, partitions, self._environment, options, router)
        await producer.opened()
        await self._keep(producer)
        if partitions:
            self._watch(producer, lambda: self._grow(producer, name), GROWTH_PERIOD)
        return producer

    async def _grow(self, producer: Producer, topic: str) -> None:
        count = await self._lookup.partition_count(topic, create=False)
        if count:
            await producer.grow(count)

    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: int = SubType.Exclusive,
        schema: c.Schema | None = None,
        receiver_queue_size: int = 1_000,
        max_total_receiver_queue_size_across_partitions: int = 50_000,
        consumer_name: str | None = None,
        negative_ack_redelivery_delay_ms: int = 60_000,
        is_read_compacted: bool = False,
        properties: Mapping[str, str] | None = None,
        pattern_auto_discovery_period: float = 60,
        initial_position: c.InitialPosition = c.InitialPosition.Latest,
        replicate_subscription_state_enabled: bool = False,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        key_shared_policy: KeySharedMeta | None = None,
        batch_index_ack_enabled: bool = False,
        regex_subscription_mode: str = "PersistentOnly",
        *,
        priority_level: int | None = None,
        subscription_properties: Mapping[str, str] | None = None,
        durable: bool = True,
        **other: Any,
    ) -> Consumer:
        """Subscribe to a topic with all its partitions, to several topics, or to those that a pattern matches.

        ``receiver_queue_size`` 0 fetches a message when it is asked for. Raises as `create_producer`.
        """
        refuse_unknown(other, "subscribe")
        if receiver_queue_size < 0 or negative_ack_redelivery_delay_ms < _NACK_DELAY_MIN_MS:
            raise InvalidValueError(
                f"receiver_queue_size is not below 0, negative_ack_redelivery_delay_ms not below {_NACK_DELAY_MIN_MS}"
            )
        if not subscription_name:
            raise InvalidValueError("a subscription has a name")
        options = ConsumerOptions(
            subscription=subscription_name,
            sub_type=SubType(consumer_type),
            name=consumer_name,
            limits=ConsumptionLimits(
                queue_size=receiver_queue_size,
                batch_index_ack=batch_index_ack_enabled,
                negative_ack_delay=negative_ack_redelivery_delay_ms / 1000,
                pending_chunked_messages=max_pending_chunked_message,
                acknowledge_oldest_chunked=auto_ack_oldest_chunked_message_on_queue_full,
            ),
            initial_position=initial_position,
            priority_level=priority_level,
            properties=tuple((properties or {}).items()),
            subscription_properties=tuple((subscription_properties or {}).items()),
            read_compacted=is_read_compacted,
            replicate_subscription_state=True if replicate_subscription_state_enabled else None,
            key_shared=key_shared_policy,
            schema=schema,
            durable=durable,
        )
        across = max_total_receiver_queue_size_across_partitions
        if isinstance(topic, re.Pattern):
            period = max(pattern_auto_discovery_period, 1.0)
            return await self._subscribe_pattern(
                topic.pattern, options, across, mode_of(regex_subscription_mode), period
            )
        names = [TopicName.parse(one).fqn for one in ([topic] if isinstance(topic, str) else topic)]
        if not names:
            raise InvalidValueError("subscribe to one topic at least")
        return await self._consumer(",".join(names), options, across, lambda: self._internal(names), None)

    async def _subscribe_pattern(
        self, text: str, options: ConsumerOptions, across: int, mode: c.NamespaceMode, period: float
    ) -> Consumer:
        wanted, bound = WantedTopics.parse(text), PatternTopics(text, self._environment.bounds.topics)

        async def find() -> list[str]:
            return bound.choose(wanted.matching(await self._lookup.topics_of(wanted.namespace, mode)))

        return await self._consumer(text, options, across, find, period)

    async def _internal(self, names: Sequence[str], *, create: bool = True) -> list[str]:
        counts = await asyncio.gather(*(self._partitions(name, create=create) for name in names))
        found: list[str] = []
        for name, count in zip(names, counts, strict=True):
            found += [one.fqn for one in TopicName.parse(name).partitions(count)] if count else [name]
        return list(dict.fromkeys(found))

    async def _partitions(self, topic: str, *, create: bool = True) -> int:
        if self._closed:
            raise AlreadyClosedError("the client is closed")
        if TopicName.parse(topic).is_partition:
            return 0
        return await self._lookup.partition_count(topic, create=create)

    async def _consumer(
        self,
        topic: str,
        options: ConsumerOptions,
        across: int,
        find: Callable[[], Awaitable[list[str]]],
        period: float | None,
    ) -> Consumer:
        """Subscribe to what ``find`` finds now and later; with a ``period`` also leave what it finds no more."""
        topics = await find()
        if options.limits.queue_size and len(topics) > 1 and across > 0:
            size = max(min(options.limits.queue_size, across // len(topics)), 1)
            options = replace(options, limits=replace(options.limits, queue_size=size))
        consumer = Consumer(topic, self._environment, options)
        await consumer.add(topics)
        await self._keep(consumer)

        async def discover() -> None:
            now = await find()
            known = set(consumer.topics)
            for one in now:
                if one not in known:
                    with suppress(ClientError):  # another one may be open to us; this one is tried again
                        await consumer.add([one])
            if period is not None:
                await consumer.drop(known.difference(now))

        self._watch(consumer, discover, period or GROWTH_PERIOD)
        return consumer

    async def create_reader(
        self,
        topic: str,
        start_message_id: MessageId,
        schema: c.Schema | None = None,
        receiver_queue_size: int = 1_000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        start_message_id_inclusive: bool = False,
        *,
        subscription_name: str | None = None,
        **other: Any,
    ) -> Reader:
        """Open a reader on a topic, on all its partitions if it has some. Raises as `create_producer`."""
        refuse_unknown(other, "create_reader")
        if receiver_queue_size < 0:
            raise InvalidValueError("receiver_queue_size is not below 0")
        name = TopicName.parse(topic).fqn
        prefix = "reader" if subscription_role_prefix is None else f"{subscription_role_prefix}-reader"
        latest = start_message_id == MessageId.latest
        options = ConsumerOptions(
            subscription=subscription_name or f"{prefix}-{self._rng.getrandbits(40):010x}",
            name=reader_name,
            limits=ConsumptionLimits(queue_size=receiver_queue_size),
            initial_position=c.InitialPosition.Latest if latest else c.InitialPosition.Earliest,
            read_compacted=is_read_compacted,
            schema=schema,
            durable=False,
            start=start_message_id,
            start_inclusive=start_message_id_inclusive and not latest,
        )
        consumer = Consumer(name, self._environment, options)
        await consumer.add(await self._internal([name]))
        reader = Reader(consumer, start_message_id)
        await self._keep(consumer)
        if latest and start_message_id_inclusive:
            last = await consumer.get_last_message_ids()
            if len(last) == 1 and last[0].entry_id() >= 0:
                await reader.seek(last[0])
        return reader

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the internal topics: the partitions, or the topic itself."""
        return await self._internal([TopicName.parse(topic).fqn])

    async def new_transaction(self, timeout_seconds: float = 60) -> ClientTransaction:
        """Begin a transaction, which is aborted after that time. Raises RefusedError where there are none."""
        return await self._coordinator.begin(timeout_seconds)

    async def _keep(self, handle: Producer | Consumer) -> None:
        if self._closed:
            await handle.close()
            raise AlreadyClosedError("the client is closed")
        self._handles[id(handle)] = handle
        handle.at_close.append(lambda: self._handles.pop(id(handle), None))

    def _watch(self, handle: Producer | Consumer, look: Callable[[], Awaitable[None]], period: float) -> None:
        """Look again and again whether there are other topics; what fails is tried again the next time."""

        async def run() -> None:
            while not self._closed:
                await asyncio.sleep(period)
                try:
                    await look()
                except AlreadyClosedError:
                    return
                except (ClientError, OSError):
                    continue

        task = asyncio.get_running_loop().create_task(run(), name=f"topics of {handle.topic()}")
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
        handle.at_close.append(task.cancel)

    async def close(self) -> None:
        """Close all producers, which send what they have first, all consumers and readers, and the connections."""
        if self._closed:
            return
        self._closed = True
        for task in list(self._watchers):
            task.cancel()
        try:
            handles = list(self._handles.values())
            await asyncio.gather(*(handle.close() for handle in handles), return_exceptions=True)
        finally:
            self._pool.close()

    def shutdown(self) -> None:
        """Close the connections at once, without waiting for anything (rule 6.1.8)."""
        self._closed = True
        for task in list(self._watchers):
            task.cancel()
        self._pool.close()
