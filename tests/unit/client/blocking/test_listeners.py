"""Listeners of the blocking client go on, whatever takes back what was prefetched for them."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import magnetar
from magnetar.client.errors import ClientError, ConnectionLostError
from magnetar.testing import PulsarBroker

PATIENCE = 60.0
"""Seconds after which a listener counts as stopped."""
KINDS = [
    magnetar.ConsumerType.Exclusive, magnetar.ConsumerType.Failover, magnetar.ConsumerType.Shared,
    magnetar.ConsumerType.KeyShared,
]  # fmt: skip
MESSAGES = 40


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(seed=1) as broker:
        yield broker


class Gate:
    """A listener that stops at chosen messages until it is let on, so that others are prefetched meanwhile."""

    def __init__(self, stops: set[int], *, settles: bool = True) -> None:
        """``stops``: after how many calls it stops; ``settles``: whether it acknowledges."""
        self.heard: set[bytes] = set()
        self.stops = stops
        self.settles = settles
        self.refuse = False
        """Whether the message that it stopped at is refused."""
        self.calls = 0
        self._here, self._go_on = threading.Semaphore(0), threading.Semaphore(0)
        self._changed = threading.Condition()

    def __call__(self, handle: Any, message: magnetar.Message) -> None:
        self.calls += 1
        stopped = self.calls in self.stops
        if stopped:
            self._here.release()
            assert self._go_on.acquire(timeout=PATIENCE)
        if stopped and self.refuse:
            self.refuse = False
            handle.negative_acknowledge(message)
            return
        with self._changed:
            self.heard.add(message.data())
            self._changed.notify_all()
        if self.settles:
            handle.acknowledge(message)

    def wait(self) -> None:
        """Wait until it has stopped."""
        assert self._here.acquire(timeout=PATIENCE), f"the listener stopped after {self.calls} calls"

    def go_on(self) -> None:
        self._go_on.release()

    def hears(self, wanted: set[bytes]) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.heard >= wanted, PATIENCE)


def disturb(broker: PulsarBroker, handle: Any, gate: Gate, what: str) -> None:
    """Have what is prefetched taken back."""
    if what == "seek":
        with suppress(ConnectionLostError):  # the trouble before has not ended: all of it comes again anyway
            handle.seek(magnetar.MessageId.earliest)
    elif what == "redeliver":
        handle.redeliver_unacknowledged_messages()
    elif what == "refuse":
        gate.refuse = True
    elif what == "pause":
        handle.pause_message_listener()
        handle.resume_message_listener()
    elif what == "unload":
        for topic in broker.topics():
            broker.admin.topics.unload(topic)
    else:
        broker.faults.cut()


@pytest.mark.parametrize("what", ["seek", "redeliver", "refuse", "unload", "cut"])
@pytest.mark.parametrize("of", ["consumer", "reader"])
def test_a_listener_goes_on_after(broker: PulsarBroker, of: str, what: str) -> None:
    if of == "reader" and what in ("redeliver", "refuse"):
        pytest.skip("a reader has no such call")
    gate = Gate({3}, settles=of == "consumer")
    with broker.client() as client:
        handle: Any
        if of == "consumer":
            handle = client.subscribe("t", "s", message_listener=gate, negative_ack_redelivery_delay_ms=100)
        else:
            handle = client.create_reader("t", magnetar.MessageId.earliest, reader_listener=gate)
        producer = client.create_producer("t")
        sent = {b"%d" % number for number in range(10)}
        for content in sorted(sent):
            producer.send(content)
        gate.wait()
        disturb(broker, handle, gate, what)
        gate.go_on()
        assert gate.hears(sent), sorted(sent - gate.heard)
        producer.send(b"more")
        assert gate.hears({b"more"})


@pytest.mark.parametrize("seed", range(12))
def test_a_listener_hears_everything_whatever_is_taken_back(broker: PulsarBroker, seed: int) -> None:
    """One topic or two, any kind of subscription, any prefetch, and trouble while the listener is at some message."""
    rng = random.Random(seed)
    topics = ["a", "b"][: rng.randint(1, 2)]
    kind, size = rng.choice(KINDS), rng.choice([0, 1, 2, 5, 1_000])
    gate = Gate(set(rng.sample(range(1, MESSAGES), rng.randint(2, 5))))
    whats = [rng.choice(["seek", "redeliver", "refuse", "pause", "unload", "cut"]) for _ in gate.stops]
    with broker.client() as client:
        consumer = client.subscribe(
            topics, "s", kind, message_listener=gate, receiver_queue_size=size, negative_ack_redelivery_delay_ms=100
        )
        producers = [client.create_producer(topic, batching_enabled=rng.random() < 0.5) for topic in topics]
        sent = {b"%d" % number for number in range(MESSAGES)}
        for number in range(MESSAGES):
            rng.choice(producers).send_async(b"%d" % number, None, partition_key=str(number % 7))
        for producer in producers:
            producer.flush()
        for what in whats:
            gate.wait()
            disturb(broker, consumer, gate, what)
            gate.go_on()
        assert gate.hears(sent), (kind, size, whats, sorted(sent - gate.heard))
        for number, producer in enumerate(producers):
            producer.send(b"more %d" % number)
        assert gate.hears({b"more %d" % number for number in range(len(producers))}), (kind, size, whats)


def test_a_listener_hears_other_topics_when_one_can_be_read_no_more(
    broker: PulsarBroker, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate({1})
    with broker.client() as client, caplog.at_level(logging.ERROR):
        consumer = client.subscribe(["a", "b"], "s", message_listener=gate)
        a, b = client.create_producer("a"), client.create_producer("b")
        a.send(b"1")
        gate.wait()

        async def fail() -> None:
            consumer.twin.member_of("persistent://public/default/a").fail(ClientError("it is no more"))

        consumer._thread.run(fail())
        gate.go_on()
        b.send(b"2")
        b.send(b"3")
        assert gate.hears({b"1", b"2", b"3"})
    assert [one for one in caplog.messages if "it is no more" in one] == [
        f"{consumer.topic()}: a topic of this listener can be read no more: it is no more"
    ]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
def test_a_listener_that_raises_ends_no_other_one(
    broker: PulsarBroker, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """Listeners share threads, so an end of the thread would be the end of all of them."""

    def raises(*_: object) -> None:
        raise error("from a listener")

    gate = Gate(set())
    with broker.client(message_listener_threads=1) as client:
        kept: list[Callable[[], object]] = [
            client.subscribe("t", name, message_listener=listener).close
            for name, listener in (("first", raises), ("second", gate))
        ]
        producer = client.create_producer("t")
        for number in range(3):
            producer.send(b"%d" % number)
        assert gate.hears({b"0", b"1", b"2"})
        assert len(kept) == 2
    assert "a listener failed" in caplog.text
