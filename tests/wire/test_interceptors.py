"""Interceptors of producers, consumers and readers, and tracing that stands on them (rule 6.1.5, PIP-446)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tools.servers.process import Server
from typing_extensions import override

from magnetar import aio
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError


class Notes(aio.ProducerInterceptor):
    """Adds a property and notes what it hears."""

    def __init__(self, name: str) -> None:
        self.name, self.heard = name, list[Any]()

    @override
    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        return replace(message, properties=(*message.properties, (self.name, "seen")))

    @override
    def on_send_acknowledgement(
        self, producer: Producer, message: OutgoingMessage, message_id: aio.MessageId | None, error: object
    ) -> None:
        self.heard.append((message.payload, message_id, type(error).__name__))

    @override
    def close(self) -> None:
        self.heard.append("closed")


class Fails(aio.ProducerInterceptor):
    """Does everything wrong."""

    @override
    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        if message.payload == b"0":
            raise OSError("no")
        return None  # type: ignore[return-value]  # what is forgotten first

    @override
    def on_send_acknowledgement(self, *_: object) -> None:
        raise OSError("no")

    @override
    def close(self) -> None:
        raise OSError("no")


class Heard(aio.ConsumerInterceptor):
    """Notes what it hears; the first message it lets pass only after an error."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    @override
    def before_consume(self, consumer: Consumer, message: aio.Message) -> aio.Message:
        self.heard.append(("before", message.data()))
        if message.data() == b"0":
            raise OSError("no")
        return message

    @override
    def on_acknowledge(self, consumer: Consumer, message_id: aio.MessageId, error: object) -> None:
        self.heard.append(("acknowledged", message_id, type(error).__name__))

    @override
    def on_acknowledge_cumulative(self, consumer: Consumer, message_id: aio.MessageId, error: object) -> None:
        self.heard.append(("cumulative", message_id, type(error).__name__))

    @override
    def on_negative_acks_send(self, consumer: Consumer, message_ids: set[aio.MessageId]) -> None:
        self.heard.append(("again", {one.entry_id() for one in message_ids}))

    @override
    def close(self) -> None:
        self.heard.append("closed")


def test_messages_pass_interceptors_in_order_whatever_these_do(
    server: Server, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every way to send and receive passes them once; what one raises or forgets loses and changes nothing."""

    async def all_of_it() -> None:
        first, second, heard = Notes("first"), Notes("second"), Heard()
        async with aio.Client(server.broker_url) as client:
            consumer = await client.subscribe(
                topic, "s", aio.ConsumerType.Shared, interceptors=[heard], negative_ack_redelivery_delay_ms=100
            )
            async with await client.create_producer(topic, interceptors=[first, Fails(), second]) as producer:
                ids = [await producer.send(b"0"), await producer.send_nowait(b"1")]
                ids += [await one for one in producer.send_many_nowait([b"2"])]
                token: asyncio.Future[aio.MessageId] = asyncio.get_running_loop().create_future()
                producer.send_with(producer.message(b"3", {"own": "x"}), token)
                ids.append(await token)
                given_up = producer.send_nowait(b"4")
                given_up.cancel()
                await producer.flush()
                with pytest.raises(aio.MessageTooLargeError):
                    await producer.send(bytes(2 << 20))
            assert [one[:2] for one in first.heard[:4]] == [(b"%d" % n, one) for n, one in enumerate(ids)]
            assert first.heard[4][0] == b"4" and first.heard[4][1] is not None
            assert first.heard[5][1:] == (None, "MessageTooLargeError") and first.heard[6:] == ["closed"]
            assert first.heard == second.heard
            got = [await consumer.receive(10_000) for _ in range(2)] + await consumer.batch_receive(3, 10_000)
            assert [one.data() for one in got] == [b"0", b"1", b"2", b"3", b"4"]
            assert got[3].properties() == {"own": "x", "first": "seen", "second": "seen"}
            assert heard.heard == [("before", b"%d" % number) for number in range(5)]
            heard.heard.clear()
            await consumer.negative_acknowledge(got[4])
            for one in got[:4]:
                await consumer.acknowledge(one)
            again = await consumer.receive(10_000)
            await consumer.acknowledge(again)
            await consumer.close()
            assert heard.heard == [
                *(("acknowledged", one, "NoneType") for one in ids),
                ("again", {again.message_id().entry_id()}),
                ("before", b"4"), ("acknowledged", again.message_id(), "NoneType"), "closed",
            ]  # fmt: skip
            with pytest.raises(aio.AlreadyClosedError):
                await consumer.acknowledge(again)
            assert heard.heard[-1][2] == "AlreadyClosedError"
            for absurd in (None, 5, [None]):
                with pytest.raises(InvalidValueError, match="acknowledge: message: a message that was received"):
                    await consumer.acknowledge(absurd)  # type: ignore[arg-type]
                with pytest.raises(InvalidValueError, match="a message that was received"):
                    await consumer.acknowledge_cumulative(absurd)  # type: ignore[arg-type]
            assert heard.heard[-1][2] == "AlreadyClosedError", "an interceptor hears of messages alone"
            reads = Heard()
            reader = await client.create_reader(topic, aio.MessageId.earliest, interceptors=[reads])
            assert (await reader.read_next(10_000)).data() == b"0" and reads.heard == [("before", b"0")]
            with pytest.raises(InvalidValueError, match="subclasses of ProducerInterceptor; this is a Heard"):
                await client.create_producer(topic, interceptors=[heard])  # type: ignore[list-item]

    asyncio.run(all_of_it())
    assert "Fails.before_send failed" in caplog.text and "returned NoneType and no message" in caplog.text


def test_a_trace_goes_on_from_producer_to_consumer(server: Server, topic: str) -> None:
    """The span of processing is a child of the span of sending, by the property ``traceparent`` of W3C."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = aio.TracingProducerInterceptor(provider), aio.TracingConsumerInterceptor(provider)

    async def all_of_it() -> dict[str, str]:
        async with aio.Client(server.broker_url) as client:
            consumer = await client.subscribe(topic, "s", interceptors=[tracing[1]])
            producer = await client.create_producer(topic, interceptors=[tracing[0]], batching_enabled=True)
            await asyncio.gather(*(producer.send(b"%d" % number, partition_key="k") for number in range(2)))
            got = [await consumer.receive(10_000) for _ in range(2)]
            assert len(exporter.get_finished_spans()) == 2
            await consumer.acknowledge_cumulative(got[1])
            return got[0].properties()

    properties = asyncio.run(all_of_it())
    spans = exporter.get_finished_spans()
    sent, processed = spans[:2], spans[2:]
    full = f"persistent://public/default/{topic}"
    assert [one.name for one in spans] == [f"send {full}"] * 2 + [f"process {full}"] * 2
    assert [one.parent and one.parent.span_id for one in processed] == [one.context.span_id for one in sent]
    assert f"{sent[0].context.trace_id:032x}" in properties["traceparent"]
    attributes = processed[0].attributes or {}
    assert attributes["messaging.system"] == "pulsar" and attributes["messaging.destination.name"] == full
    assert (sent[0].attributes or {})["messaging.message.id"] == attributes["messaging.message.id"]
