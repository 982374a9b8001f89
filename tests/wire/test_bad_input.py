"""Bad input of clients: the answer or closure that the rules name, a log line with the reason, no other client
affected.

Every case runs beside a bystander on a connection of its own, which publishes and consumes before and after.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.frames import FRAME_PADDING
from magnetar.testing.rawclient import RawClient, RawClientError, make_entry
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
LIMIT = 100_000
Attack = Callable[[Wires, RawClient], Awaitable[None]]


def beside_a_bystander(attack: Attack) -> None:
    async def test(wires: Wires) -> None:
        bystander, offender = await wires.open(), await wires.open()
        consumer = await bystander.subscribe(T, "bystander")
        consumer.flow(10)
        producer = await bystander.producer(T)
        for _ in range(2):
            await producer.publish(b"m")
            await consumer.ack((await consumer.receive()).message_id)
            await attack(wires, offender)
            offender = await wires.open()
        assert not bystander.lost.done()
        assert not bystander.heard(c.CommandCloseConsumer) and not bystander.heard(c.CommandCloseProducer)

    on_broker(test, maxMessageSize=LIMIT)


def command_frame(size: int, body: bytes) -> bytes:
    return size.to_bytes(4, "big") + len(body).to_bytes(4, "big") + body


FROM_THE_BROKER = c.CommandSendReceipt(1, 1, c.MessageIdData(1, 1), 0)
CLOSING: dict[str, tuple[bytes, str]] = {
    "a command that is no protobuf": (command_frame(8, b"\xff\xff\xff\xff"), "protobuf"),
    "an empty command": (command_frame(4, b""), "closing the connection"),
    "a command longer than its frame": (b"\0\0\0\x08\0\0\0\x09\x08\x12\x92\x01", "closing the connection"),
    "a frame one byte too large": (
        (LIMIT + FRAME_PADDING - 3).to_bytes(4, "big") + b"\0\0\0\x04",
        f"larger than the {LIMIT + FRAME_PADDING} allowed",
    ),
    "a frame of two gigabytes": (b"\x7f\xff\xff\xff", f"larger than the {LIMIT + FRAME_PADDING} allowed"),
    "a second CONNECT": (
        codec.encode(c.CommandConnect("again", 21)),
        "Connect from a client while CONNECTED was sent",
    ),
    "a command of brokers": (codec.encode(FROM_THE_BROKER), "SendReceipt from a client"),
    "an AUTH_RESPONSE without a challenge": (codec.encode(c.CommandAuthResponse()), "AuthResponse from a client"),
    "SEND for a producer that is not open": (
        codec.encode(
            c.CommandSend(7, 0, 1, None, False, None, False, None, make_entry(b"m", producer="p", sequence_id=0))
        ),
        "SEND for producer 7",
    ),
    "a namespace that is none": (codec.encode(c.CommandGetTopicsOfNamespace(1, "public")), "Invalid namespace format"),
}


@pytest.mark.parametrize("case", CLOSING)
def test_closes_without_a_reply(case: str, caplog: pytest.LogCaptureFixture) -> None:
    """Broken frames and commands that are not allowed close the connection (rules 1.1.7, 1.2.1, 1.3.19 and 3.3.1)."""
    data, reason = CLOSING[case]

    async def attack(wires: Wires, offender: RawClient) -> None:
        said: list[c.Command] = []
        offender.on_command = said.append
        offender.say_bytes(data)
        await offender.lost
        assert said == []

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert reason in caplog.text


@pytest.mark.parametrize(
    "first",
    [c.CommandProducer(T, 1, 1), c.CommandLookupTopic(T, 1), c.CommandFlow(1, 1), c.CommandAuthResponse()],
    ids=lambda each: type(each).__name__,
)
def test_a_command_before_connect_closes(first: c.Command, caplog: pytest.LogCaptureFixture) -> None:
    """Any command before CONNECT closes the connection without an answer; PING alone is answered (rule 1.2.1)."""

    async def attack(wires: Wires, offender: RawClient) -> None:
        early = await wires.silent()
        early.say(c.CommandPing())
        await early.hear(c.CommandPong)
        said: list[c.Command] = []
        early.on_command = said.append
        early.say(first, c.CommandConnect("late", 21))
        await early.lost
        assert said == []

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert f"{name_of(type(first))} from a client while nothing was said" in caplog.text


def test_no_permits_close_the_connection_of_a_consumer_that_exists(caplog: pytest.LogCaptureFixture) -> None:
    """FLOW with no permits closes the connection of a consumer that exists (rule 5.2.1)."""

    async def attack(wires: Wires, offender: RawClient) -> None:
        consumer = await offender.subscribe(T, "offender")
        consumer.flow(0)
        await offender.lost

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert "FLOW of 0 permits" in caplog.text


def test_commands_for_unknown_consumer_ids_are_ignored() -> None:
    """Commands that have no answer are ignored for unknown consumer ids, even FLOW 0 and an ACK that asks for an answer
    (rules 1.3.5 to 1.3.9 and 5.2.1)."""

    async def attack(wires: Wires, offender: RawClient) -> None:
        place = c.MessageIdData(1, 1)
        said: list[c.Command] = []
        offender.on_command = said.append
        offender.say(
            c.CommandAck(7, c.AckType.Individual, (place,), request_id=9), c.CommandFlow(7, 0), c.CommandFlow(7, 1),
            c.CommandRedeliverUnacknowledgedMessages(7, (place,)), c.CommandPing(),
        )  # fmt: skip
        await offender.hear(c.CommandPong)
        assert [type(each) for each in said] == [c.CommandPong]
        for command in (c.CommandUnsubscribe(7, 1), c.CommandSeek(7, 2, place), c.CommandGetLastMessageId(7, 3)):
            with pytest.raises(RawClientError, match="MetadataError: Consumer not found"):
                await offender.request(command, c.CommandSuccess)
        stats = await offender.request(c.CommandConsumerStats(4, 7), c.CommandConsumerStatsResponse)
        assert stats.error is ServerError.ConsumerNotFound
        await offender.request(c.CommandCloseConsumer(7, 5), c.CommandSuccess)
        await offender.request(c.CommandCloseProducer(7, 6), c.CommandSuccess)

    beside_a_bystander(attack)


def test_a_bad_checksum_is_refused_and_the_producer_stays(caplog: pytest.LogCaptureFixture) -> None:
    """A wrong checksum is answered with SEND_ERROR; the producer and the connection stay open (rule 1.1.5)."""

    async def attack(wires: Wires, offender: RawClient) -> None:
        producer = await offender.producer(T)
        entry = bytearray(make_entry(b"m", producer="p", sequence_id=0))
        entry[-1] ^= 1
        with pytest.raises(RawClientError, match="ChecksumError: Checksum failed on the broker"):
            await producer.receipt(producer.send(b"", entry=bytes(entry)))
        await producer.publish(b"whole")

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert "message 0 refused: Checksum failed on the broker" in caplog.text


@pytest.mark.parametrize("name", ["a/b", "kafka://a/b/c", "persistent://public/default/", "persistent://a/b@d/t"])
def test_invalid_topic_names(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A malformed topic name is refused in the response of LOOKUP and PARTITIONED_METADATA, else as ERROR (rule
    1.3.19)."""

    async def attack(wires: Wires, offender: RawClient) -> None:
        with pytest.raises(RawClientError, match="InvalidTopicName: Invalid topic name: "):
            await offender.producer(name)
        with pytest.raises(RawClientError, match="InvalidTopicName: Invalid topic name: "):
            await offender.subscribe(name, "s")
        for answer in (await offender.lookup(name), await offender.partitions(name)):
            assert answer.error is ServerError.InvalidTopicName

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert caplog.text.count("Invalid topic name") >= 4


def test_what_is_switched_off_is_refused_by_name(caplog: pytest.LogCaptureFixture) -> None:
    async def attack(wires: Wires, offender: RawClient) -> None:
        with pytest.raises(RawClientError, match="NotAllowedError: Transactions are not enabled"):
            await offender.request(c.CommandNewTxn(offender.new_id()), c.CommandSuccess)

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert "refused: NotAllowedError: Transactions are not enabled." in caplog.text


def test_a_flood_of_faults_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def attack(wires: Wires, offender: RawClient) -> None:
        for _ in range(100):
            with pytest.raises(RawClientError):
                await offender.producer("kafka://a/b/" + "x" * 50_000)
        for _ in range(20):
            client = await wires.open()
            client.say(c.CommandConnect("again", 21))
            await client.lost

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert 0 < len(caplog.records) <= 30
    assert max(len(record.getMessage()) for record in caplog.records) < 1000


def test_whole_commands_before_the_bad_bytes_still_count() -> None:
    async def attack(wires: Wires, offender: RawClient) -> None:
        offender.say_bytes(codec.encode(c.CommandLookupTopic(T, 5)) + command_frame(8, b"\xff\xff\xff\xff"))
        assert (await offender.hear(c.CommandLookupTopicResponse)).request_id == 5
        await offender.lost

    beside_a_bystander(attack)


@pytest.mark.parametrize("after", [b"", command_frame(8, b"\xff\xff\xff\xff")], ids=["alone", "with bad bytes"])
def test_a_fault_of_our_own_costs_one_connection(
    after: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that fails unexpectedly is logged with its trace, and only its client is disconnected."""

    def breaks(*_: object) -> None:
        raise RuntimeError("not thought of")

    monkeypatch.setattr("magnetar.broker.service.BrokerService.addresses", breaks)

    async def attack(wires: Wires, offender: RawClient) -> None:
        offender.say_bytes(codec.encode(c.CommandLookupTopic(T, 5)) + after)
        await offender.lost

    with caplog.at_level(logging.WARNING):
        beside_a_bystander(attack)
    assert "a command could not be handled" in caplog.text
    assert "closing the connection: an internal error" in caplog.text


@pytest.mark.parametrize("permits", [0, 1 << 31, (1 << 32) - 1])
def test_permits_that_are_none_end_their_own_connection(permits: int) -> None:
    """Permits from 2^31 on, negative numbers to Apache Pulsar, close the connection (rule 5.2.1)."""

    async def test(wires: Wires) -> None:
        client, other = await wires.open(), await wires.open()
        await other.subscribe(T, "s", c.SubType.Shared)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow((1 << 31) - 1)
        consumer.flow((1 << 31) - 1)
        await client.partitions(T)
        consumer.flow(permits)
        await client.lost
        await other.partitions(T)

    on_broker(test)


def test_what_a_client_cannot_read_is_acknowledged_and_named(caplog: pytest.LogCaptureFixture) -> None:
    """An ACK with a validation_error is logged with its reason and counts as any other (rule 3.7.8)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        await (await client.producer(T)).publish(b"m")
        got = (await consumer.receive()).message_id
        request_id = client.new_id()
        client.say(
            c.CommandAck(
                consumer.consumer_id,
                c.AckType.Individual,
                (got,),
                validation_error=c.ValidationError.DecompressionError,
                request_id=request_id,
            )
        )
        answer = await client.hear(c.CommandAckResponse)
        assert (answer.request_id, answer.error) == (request_id, None)
        consumer.redeliver()
        await client.partitions(T)
        assert not client.heard(c.CommandMessage)

    with caplog.at_level(logging.WARNING):
        on_broker(test)
    assert "could not read" in caplog.text and "DecompressionError" in caplog.text
