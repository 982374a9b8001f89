"""What programs for the official client rely on: names, types of errors, forms of values."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy
import pytest

import magnetar
import magnetar.exceptions
from magnetar.client.errors import ArgumentError, ClientError, QueueFullError, RefusedError, result_of
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.partition_router import HashingScheme, PartitionRouter, PartitionsRoutingMode
from magnetar.model.errors import InvalidValueError, ServerError
from tests.sim.world import T
from tests.support.delivery_stage import Stage, play

URL = "pulsar://127.0.0.1:1"
HOME = magnetar.ServiceInfo(URL)


def test_each_error_has_the_official_code() -> None:
    assert RefusedError("x", ServerError.TopicNotFound, None).error() is magnetar.Result.TopicNotFound
    assert RefusedError("x", ServerError.TooManyRequests, None).error() is magnetar.Result.TooManyLookupRequestException
    assert QueueFullError().error() is magnetar.Result.ProducerQueueIsFull
    assert magnetar.exceptions.AlreadyClosed().error() is magnetar.Result.AlreadyClosed
    assert ClientError().error() is magnetar.Result.UnknownError
    assert result_of(InvalidValueError()) is magnetar.Result.InvalidMessage
    assert result_of(ValueError()) is magnetar.Result.UnknownError


@pytest.mark.parametrize(
    "made",
    [
        lambda: magnetar.ServiceInfo(None),  # type: ignore[arg-type]
        lambda: magnetar.ServiceInfo(URL, "token"),  # type: ignore[arg-type]
        lambda: magnetar.ServiceInfo("nowhere"),
        lambda: magnetar.AutoClusterFailover("test", [HOME]),  # type: ignore[arg-type]
        lambda: magnetar.AutoClusterFailover(HOME, []),
        lambda: magnetar.AutoClusterFailover(HOME, ["x"]),  # type: ignore[list-item]
        lambda: magnetar.AutoClusterFailover(HOME, [HOME], check_interval_ms=0),
        lambda: magnetar.Client(magnetar.AutoClusterFailover(HOME, [HOME]), magnetar.AuthenticationToken("t")),
        lambda: magnetar.Client(None),  # type: ignore[arg-type]
        lambda: magnetar.Client(URL, operation_timeout_seconds="x"),  # type: ignore[arg-type]
        lambda: magnetar.Client(URL, io_threads="x"),  # type: ignore[arg-type]
        lambda: magnetar.Client(URL, keep_alive_interval_seconds=0),
        lambda: magnetar.Client(URL, initial_backoff_interval_ms=200, max_backoff_interval_ms=100),
        lambda: magnetar.ConsumerDeadLetterPolicy(-1),
    ],
)
def test_what_a_client_is_made_of_is_a_value_error(made: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        made()


def test_a_provider_that_gives_something_else_is_a_value_error() -> None:
    class Wrong(magnetar.ServiceInfoProvider):
        def initial_service_info(self) -> Any:
            return URL

    with pytest.raises(ArgumentError, match="a provider gives a ServiceInfo, and not str"):
        magnetar.Client(Wrong())


def test_messages_of_wrong_types() -> None:
    async def story(stage: Stage) -> None:
        producer = await stage.client.create_producer(T)
        with pytest.raises(TypeError, match="bytes, and not int"):
            await producer.send(5)  # type: ignore[arg-type]
        wrong: list[dict[str, Any]] = [
            {"properties": "x"}, {"partition_key": 5}, {"ordering_key": 5}, {"sequence_id": "x"},
            {"replication_clusters": 5}, {"disable_replication": "x"}, {"event_timestamp": "x"}, {"deliver_at": "x"},
            {"deliver_after": "x"},
        ]  # fmt: skip
        for one in wrong:
            with pytest.raises(ValueError, match=f"send: {next(iter(one))}: .*, and not (5|'x')"):
                await producer.send(b"x", **one)
        await producer.send(b"x", {"a": "b"}, "k", "o", event_timestamp=1, deliver_after=timedelta(0))
        for call, given in (
            (stage.client.create_producer, {"topic": None}),
            (stage.client.create_producer, {"topic": T, "batching_enabled": "x"}),
            (stage.client.subscribe, {"topic": T, "subscription_name": None}),
            (
                stage.client.subscribe,
                {"topic": T, "subscription_name": "s", "broker_consumer_stats_cache_time_ms": "x"},
            ),
            (stage.client.create_reader, {"topic": T, "start_message_id": None}),
        ):
            with pytest.raises(ValueError, match=r": .* expected, and not "):
                await call(**given)

    play(story)


def test_ids_of_several_topics() -> None:
    """An id that was stored as bytes says its topic when it comes back; without one there is no telling."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe([T, f"{T}-2"])
        await stage.send(b"a")
        message = await consumer.receive()
        stored = message.message_id().serialize()
        with pytest.raises(magnetar.exceptions.OperationNotSupported):
            await consumer.acknowledge(magnetar.MessageId.deserialize(stored))
        again = magnetar.MessageId.deserialize(stored, topic=message.topic_name())
        assert magnetar.MessageId.wrap(again) == message.message_id()
        with pytest.raises(magnetar.exceptions.CumulativeAcknowledgementNotAllowedError):
            await consumer.acknowledge_cumulative(again)
        await consumer.acknowledge(again)
        with pytest.raises(ValueError, match="messageid: a MessageId, or milliseconds since 1970"):
            await consumer.seek(1.0)  # type: ignore[arg-type]

    play(story)


def test_redelivery_need_not_be_awaited() -> None:
    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(T)
        await stage.send(b"a")
        first = await consumer.receive()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _ = consumer.redeliver_unacknowledged_messages()
        assert (await consumer.receive()).data() == first.data()
        await consumer.redeliver_unacknowledged_messages()
        assert (await asyncio.wait_for(consumer.receive(), 5.0)).data() == first.data()

    play(story)


def test_a_text_may_be_a_pattern() -> None:
    async def story(stage: Stage) -> None:
        await stage.send(b"a")
        consumer = await stage.client.subscribe(
            f"{T}.*", "p", is_pattern_topic=True, initial_position=magnetar.InitialPosition.Earliest
        )
        assert (await consumer.receive()).topic_name() == T
        for wrong in (["a"], "*"):
            with pytest.raises(ValueError, match=r"one text|no regular expression"):
                await stage.client.subscribe(wrong, "p", is_pattern_topic=True)

    play(story)


def test_a_router_sees_a_message() -> None:
    message = OutgoingMessage(b"v", (("a", "b"),), "k", ordering_key=b"o", event_time=7, sequence_id=9)
    seen: list[object] = []

    def route(one: Any, count: int) -> int:
        seen[:] = [one.value(), one.data(), one.properties(), one.partition_key(), one.ordering_key()]
        seen.extend((one.event_timestamp(), one.sequence_id()))
        return count - 1

    router = PartitionRouter(
        PartitionsRoutingMode.RoundRobinDistribution, HashingScheme.JavaStringHash, 0.0, router=route
    )
    assert router.choose(message, 4, 0.0) == 3
    assert seen == [b"v", b"v", {"a": "b"}, "k", "o", 7, 9]


def test_whole_numbers_are_taken_for_floats() -> None:
    class Measured(magnetar.schema.Record):
        low = magnetar.schema.Float()
        high = magnetar.schema.Double()

    value = Measured(low=3, high=4)
    for schema in (magnetar.schema.AvroSchema(Measured), magnetar.schema.JsonSchema(Measured)):
        assert schema.decode(schema.encode(value)) == Measured(low=3.0, high=4.0)
    with pytest.raises(TypeError, match="too large for a double"):
        Measured(high=10**400)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (("a", 1, 2, 3), "partition is a number, and not str"),
        ((-1, 1 << 70, 2, 3), "ledger_id is a number from -9223372036854775808 to 9223372036854775807, and not 118"),
        ((-1, 1, None, 3), "entry_id is a number, and not NoneType"),
        ((-1, 1, 2, -(1 << 40)), "batch_index is a number from -2147483648 to 2147483647, and not -1"),
        ((1 << 31, 1, 2, 3), "partition is a number from -2147483648 to 2147483647, and not 2147483648"),
    ],
)
def test_an_id_that_none_can_have_is_refused_where_it_is_made(numbers: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=f"^MessageId: {said}"):
        magnetar.MessageId(*numbers)


def test_an_id_is_made_of_the_numbers_of_a_table() -> None:
    numbers: Any = numpy.array([-1, 3, 4, 5], numpy.int64)
    made = magnetar.MessageId(*numbers)
    assert made == magnetar.MessageId(-1, 3, 4, 5)
    assert magnetar.MessageId.deserialize(made.serialize()) == made
