"""The part of a client that reads topics without a subscription that stays: readers and table views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.client_life import ClientLife
from magnetar.client.aio.connections.internal_topics import internal_topics
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.reader import Reader
from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.intercepted_consumer import InterceptedConsumer
from magnetar.client.aio.open_handles import OpenHandles
from magnetar.client.aio.options import message_unsealer, reader_options, topic_names
from magnetar.client.aio.parameters import check_opening, checked
from magnetar.client.aio.schema_choice import GivenSchema, T
from magnetar.client.aio.services.client_connections import ClientConnections
from magnetar.client.aio.views.table_view import TableView
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import KeySource
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol import commands as c

GROWTH_PERIOD: Final = 60.0
"""Seconds between two questions whether a topic has gained partitions (rule 6.8.4)."""


class ReaderClient(ClientLife):
    """A client that opens readers and table views."""

    def __init__(self, connections: ClientConnections, handles: OpenHandles, environment: Environment) -> None:
        super().__init__(connections, handles, environment.clock, environment.home)
        self._environment = environment
        self._lookup = environment.lookup
        self._rng = environment.rng

    async def _internal(self, names: Sequence[str], *, create: bool = True) -> list[str]:
        self._begin()
        return await internal_topics(self._lookup, names, create=create)

    async def create_reader(
        self,
        topic: str | Sequence[str],
        start_message_id: MessageId,
        schema: GivenSchema[T] = None,
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
        """Open a reader on a topic or several, on all their partitions. Raises as `create_producer`.

        On several topics ``start_message_id`` is the earliest or the latest.
        """
        check_opening("create_reader", locals())
        names = topic_names(topic)
        if len(names) > 1 and start_message_id not in (MessageId.earliest, MessageId.latest):
            raise ArgumentError("a reader of several topics begins at MessageId.earliest or MessageId.latest")
        prefix = "reader" if subscription_role_prefix is None else f"{subscription_role_prefix}-reader"
        subscription_name = subscription_name or f"{prefix}-{self._rng.getrandbits(40):010x}"
        options = reader_options(
            start_message_id=start_message_id, schema=schema, receiver_queue_size=receiver_queue_size,
            reader_name=reader_name, subscription_name=subscription_name,
            is_read_compacted=is_read_compacted, start_message_id_inclusive=start_message_id_inclusive,
            unsealer=message_unsealer(crypto_key_reader, crypto_failure_action),
        )  # fmt: skip
        made: Callable[..., Consumer[Any]] = Consumer if not interceptors else InterceptedConsumer.of(interceptors)
        consumer = made(",".join(names), self._environment, options)
        topics = await self._internal(names)
        await consumer.add(topics)
        reader = Reader[T](consumer, start_message_id)
        await self._open.keep(consumer)
        if topics != names:

            async def grow() -> None:
                now = await self._internal(names, create=False)
                await consumer.add([one for one in now if one not in consumer.topics], MessageId.earliest)

            self._open.watch(consumer, grow, GROWTH_PERIOD)
        if start_message_id == MessageId.latest and start_message_id_inclusive:
            for last in await consumer.get_last_message_ids():
                if last.entry_id() >= 0:
                    await reader.seek(last)
        return reader

    async def create_table_view(
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
        checked("create_table_view", **locals())
        reader = await self.create_reader(
            topic, MessageId.earliest, schema, is_read_compacted=True, subscription_name=subscription_name,
            crypto_key_reader=crypto_key_reader, crypto_failure_action=crypto_failure_action,
        )  # fmt: skip
        view = TableView(reader, self._environment.timeout)
        try:
            await view.opened()
        except BaseException:
            await reader.close()
            raise
        return view
