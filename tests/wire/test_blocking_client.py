"""The blocking client against a broker: what threads publish, receive, read, and how they wait."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tools.servers.process import Server

import magnetar
from magnetar.client.errors import AlreadyClosedError, BlockedLoopError, ClientTimeoutError, RefusedError
from magnetar.client.refusals import Result

PATIENCE_MS = 10_000


@pytest.fixture
def native(server: Server) -> Iterator[magnetar.Client]:
    with magnetar.Client(server.broker_url) as opened:
        yield opened


def test_send_receive_read(native: magnetar.Client, topic: str) -> None:
    with (
        native.subscribe(topic, "s", magnetar.ConsumerType.Shared) as consumer,
        native.create_producer(topic) as producer,
    ):
        sent = [producer.send(str(number).encode(), {"n": str(number)}) for number in range(3)]
        got = [consumer.receive(PATIENCE_MS) for _ in range(3)]
        assert [message.message_id() for message in got] == sent
        assert got[2].properties() == {"n": "2"}
        consumer.acknowledge(got[0])
        consumer.acknowledge([got[1], got[2].message_id()])
        with pytest.raises(ClientTimeoutError):
            consumer.receive(1)
        with native.create_reader(topic, magnetar.MessageId.earliest) as reader:
            assert [reader.read_next(PATIENCE_MS).data() for _ in range(3)] == [b"0", b"1", b"2"]
            assert not reader.has_message_available()
    with pytest.raises(AlreadyClosedError):
        consumer.receive(1)


def test_a_thread_that_waits_for_its_receipt_does_not_wait_for_company(native: magnetar.Client, topic: str) -> None:
    """As in the official client; several threads share batches without waiting for their delay either."""
    with native.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=60_000, send_timeout_millis=PATIENCE_MS
    ) as producer:
        threads = [
            threading.Thread(target=lambda: [producer.send(b"x") for _ in range(20)], daemon=True) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert producer.last_sequence_id() == 59
        assert producer.stats().num_send_failed == 0


@pytest.mark.parametrize("batching", [True, False])
def test_what_no_callback_hears_keeps_its_place(native: magnetar.Client, topic: str, batching: bool) -> None:
    """Messages without a callback cross to the loop many at once, between those that have one, or a key."""
    rng, heard = random.Random(7), list[int]()
    with native.create_producer(
        topic, batching_enabled=batching, batching_max_messages=50, max_pending_messages=100, block_if_queue_full=True
    ) as producer:
        wanted = 0
        for number in range(600):
            kind = rng.random()
            content = str(number).encode()
            if kind < 0.8:
                producer.send_async(content, None)
            elif kind < 0.9:
                wanted += 1
                producer.send_async(content, lambda result, _, number=number: heard.append(number))  # type: ignore[misc]
            else:
                producer.send_async(content, None, partition_key="k")
        producer.flush()
        assert heard == sorted(heard) and len(heard) == wanted
        assert producer.last_sequence_id() == 599
        with native.create_reader(topic, magnetar.MessageId.earliest) as reader:
            assert [int(reader.read_next(PATIENCE_MS).data()) for _ in range(600)] == list(range(600))


def test_what_was_not_acknowledged_comes_again(native: magnetar.Client, topic: str) -> None:
    consumer = native.subscribe(topic, "s", magnetar.ConsumerType.Shared)
    producer = native.create_producer(topic)
    for number in range(4):
        producer.send(str(number).encode())
    for message in [consumer.receive(PATIENCE_MS) for _ in range(4)]:
        if message.data() in (b"0", b"3"):
            consumer.acknowledge(message)
    consumer.close()
    with native.subscribe(topic, "s", magnetar.ConsumerType.Shared) as again:
        assert {again.receive(PATIENCE_MS).data() for _ in range(2)} == {b"1", b"2"}
        with pytest.raises(ClientTimeoutError):
            again.receive(100)


def test_a_refusal_is_raised_in_the_thread(native: magnetar.Client, server: Server, topic: str) -> None:
    with (
        native.subscribe(topic, "s"),
        magnetar.Client(server.broker_url, operation_timeout_seconds=3) as hasty,
        pytest.raises(RefusedError, match="ConsumerBusy"),
    ):
        hasty.subscribe(topic, "s")


def test_a_closed_client_closes_its_handles(server: Server, topic: str) -> None:
    client = magnetar.Client(server.broker_url)
    producer = client.create_producer(topic)
    client.close()
    client.close()
    producer.close()
    assert not producer.is_connected()
    with pytest.raises(AlreadyClosedError):
        producer.send(b"late")
    with pytest.raises(AlreadyClosedError):
        client.create_producer(topic)


def test_a_table_view_and_its_listeners(native: magnetar.Client, topic: str) -> None:
    """A listener runs on a thread of its own, and may call the client."""
    producer = native.create_producer(topic)
    producer.send(b"1", partition_key="a")
    heard: list[tuple[str, object]] = []
    enough = threading.Event()
    with native.create_table_view(topic) as view:

        def listener(key: str, value: object) -> None:
            heard.append((key, native.create_producer(topic).topic() and value))
            if len(heard) == 3:
                enough.set()

        def fails(key: str, value: object) -> None:
            raise OSError(key)

        view.for_each_and_listen(listener)
        with pytest.raises(OSError, match="a"):
            view.for_each_and_listen(fails)
        producer.send(b"2", partition_key="a")
        producer.send(None, partition_key="a")
        view.refresh()
        assert (len(view), "a" in view, dict(view)) == (0, False, {})
        assert enough.wait(10)
    assert heard == [("a", b"1"), ("a", b"2"), ("a", b"")]
    with pytest.raises(AlreadyClosedError):
        len(view)


def test_a_listener_gets_messages_in_order_and_keeps_what_fails(native: magnetar.Client, topic: str) -> None:
    """It goes on after an error, and after a pause (rule 6.1.3)."""
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listener(consumer: magnetar.Consumer, message: magnetar.Message) -> None:
        heard.put(message.data())
        if message.data() == b"2":
            raise RuntimeError("not this one")
        consumer.acknowledge(message)

    native.subscribe(topic, "s", magnetar.ConsumerType.Shared, message_listener=listener)
    producer = native.create_producer(topic)
    for number in range(5):
        producer.send(str(number).encode())
    assert [heard.get(timeout=10) for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    consumer = next(iter(native._listeners.kept))._handle
    assert isinstance(consumer, magnetar.Consumer)
    consumer.pause_message_listener()
    with pytest.raises(ValueError, match="exclude each other"):
        consumer.receive(1)
    producer.send(b"5")
    consumer.resume_message_listener()
    assert heard.get(timeout=10) == b"5"
    consumer.close()
    with native.subscribe(topic, "s", magnetar.ConsumerType.Shared) as again:
        assert again.receive(PATIENCE_MS).data() == b"2"


def test_callbacks_in_order_and_none_may_wait(native: magnetar.Client, topic: str) -> None:
    fates: list[tuple[Result, magnetar.MessageId]] = []
    waited: list[str] = []
    producer = native.create_producer(topic, batching_enabled=True)

    def hear(result: Result, message_id: magnetar.MessageId) -> None:
        fates.append((result, message_id))
        if len(fates) == 1:
            try:
                producer.send(b"would wait for itself")
            except BlockedLoopError as error:
                waited.append(str(error))

    for number in range(100):
        producer.send_async(str(number).encode(), hear)
    producer.flush()
    assert [result for result, _ in fates] == [Result.Ok] * 100
    assert [one for _, one in fates] == sorted(one for _, one in fates)
    assert len(waited) == 1
    producer.send_async(b"x" * (2 << 20), hear)
    producer.flush()
    assert fates[-1][0] is Result.MessageTooBig


def test_a_full_queue_is_said_or_waited_for(native: magnetar.Client, topic: str) -> None:
    fates: list[Result] = []
    failing = native.create_producer(topic, max_pending_messages=5, batching_enabled=True)
    for _ in range(50):
        failing.send_async(b"x", lambda result, _: fates.append(result))
    failing.flush()
    assert len(fates) == 50
    assert Result.ProducerQueueIsFull in fates
    blocking = native.create_producer(topic, max_pending_messages=5, batching_enabled=True, block_if_queue_full=True)
    fates.clear()
    for _ in range(50):
        blocking.send_async(b"x", lambda result, _: fates.append(result))
    blocking.flush()
    assert fates == [Result.Ok] * 50


def test_ways_of_receiving_share_what_is_lent(native: magnetar.Client, topic: str) -> None:
    """A thread that receives one message, some, and a table in turn gets each message of two topics once, and all."""
    topics = [topic, topic + "-other"]
    consumer = native.subscribe(
        topics, "s", magnetar.ConsumerType.Shared, receiver_queue_size=10,
        initial_position=magnetar.InitialPosition.Earliest,
    )  # fmt: skip
    sent = [str(number).encode() for number in range(600)]
    for one, part in zip(topics, (sent[::2], sent[1::2]), strict=True):
        with native.create_producer(one, batching_enabled=True, batching_max_messages=7) as producer:
            for content in part:
                producer.send_async(content, None)
    got: list[bytes] = []
    rng = random.Random(1)
    while len(got) < len(sent):
        way = rng.randrange(6)
        if way < 3:
            got.append(consumer.receive(PATIENCE_MS).data())
        elif way < 5:
            got += [message.data() for message in consumer.batch_receive(rng.randint(1, 5), PATIENCE_MS)]
        else:
            got += consumer.receive_table(rng.randint(1, 5), 0.1).column("value").to_pylist()
    assert sorted(got) == sorted(sent)


@pytest.mark.parametrize("size", [0, 1])
def test_a_prefetch_of_none_or_one_over_topics(native: magnetar.Client, topic: str, size: int) -> None:
    """A listener that is at a message has that one, and one more with 1; threads get all the others."""
    topics = [f"{topic}-{number}" for number in range(3)]
    at_it, go_on, got = threading.Event(), threading.Event(), list[bytes]()

    def listener(consumer: magnetar.Consumer[bytes], message: magnetar.Message[bytes]) -> None:
        got.append(message.data())
        at_it.set()
        assert go_on.wait(60)
        consumer.acknowledge(message)

    options: dict[str, Any] = {
        "consumer_type": magnetar.ConsumerType.Shared, "initial_position": magnetar.InitialPosition.Earliest,
        "receiver_queue_size": size,
    }  # fmt: skip
    slow = native.subscribe(topics, "s", message_listener=listener, **options)
    producers = [native.create_producer(one) for one in topics]
    producers[0].send(b"first")
    assert at_it.wait(60)
    sent = [b"%d" % number for number in range(12)]
    quick = native.subscribe(topics, "s", **options)
    for number, content in enumerate(sent):
        producers[number % 3].send(content)
    others = [quick.receive(PATIENCE_MS) for _ in range(len(sent) - size)]
    if not size:
        with pytest.raises(magnetar.Timeout):
            quick.receive(50)
    for message in others:
        quick.acknowledge(message)
    go_on.set()
    assert {one.data() for one in others} <= set(sent) and len(others) == len(sent) - size
    quick.close()
    slow.close()
    assert got[:1] == [b"first"] and len(got) <= 1 + size
