"""The raw client speaks real frames: against a few lines of broker, in the simulator and over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from typing_extensions import override

from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from magnetar.testing.network import Network
from magnetar.testing.processes import SimulationError
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError, make_entry, payload_of
from magnetar.testing.simloop import SimLoop, run

TOPIC = "persistent://public/default/raw"
BUSY = "persistent://public/default/busy"
TWICE = "persistent://public/default/twice"


class MiniBroker(asyncio.Protocol):
    """Just enough of a broker: one topic in a list, one consumer, no disk."""

    def __init__(self) -> None:
        self.heard: list[c.Command] = []
        self.entries: list[bytes] = []
        self.sent = 0
        self._decoder = Decoder()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        for command in self._decoder.feed(data):
            self.heard.append(command)
            for answer in self.answers(command):
                self.transport.write(codec.encode(answer))

    def answers(self, command: c.Command) -> list[c.Command]:
        match command:
            case c.CommandConnect(client_version="stranger"):
                return [c.CommandError(-1, ServerError.AuthenticationError, "who are you?")]
            case c.CommandConnect():
                return [c.CommandPing(), c.CommandConnected("mini", 21)]
            case c.CommandProducer(topic=topic) if topic == BUSY:
                return [c.CommandError(command.request_id, ServerError.ProducerBusy, "taken")]
            case c.CommandProducer():
                return [c.CommandProducerSuccess(command.request_id, command.producer_name or "given", -1, b"", True)]
            case c.CommandSend(checksum_ok=False):
                return [
                    c.CommandSendError(command.producer_id, command.sequence_id, ServerError.ChecksumError, "damaged")
                ]
            case c.CommandSend():
                self.entries.append(command.entry)
                position = c.MessageIdData(0, len(self.entries) - 1)
                return [c.CommandSendReceipt(command.producer_id, command.sequence_id, position, 0)]
            case c.CommandFlow():
                return self.deliver(command)
            case c.CommandRedeliverUnacknowledgedMessages():
                self.sent = 0
                return []
            case c.CommandAck(request_id=None):
                return []
            case c.CommandAck():
                refused = ServerError.NotAllowedError if not command.message_ids else None
                text = "nothing named" if refused else None
                return [c.CommandAckResponse(command.consumer_id, None, refused, text, command.request_id)]
            case c.CommandGetLastMessageId():
                return [
                    c.CommandGetLastMessageIdResponse(c.MessageIdData(0, len(self.entries) - 1), command.request_id)
                ]
            case c.CommandLookupTopic():
                return [c.CommandLookupTopicResponse(command.request_id, c.LookupType.Connect, "pulsar://here:6650")]
            case c.CommandPartitionedTopicMetadata(topic=topic) if topic == TWICE:
                return [c.CommandPartitionedTopicMetadataResponse(command.request_id, c.MetadataType.Success, 0)] * 2
            case c.CommandPartitionedTopicMetadata():
                return [c.CommandPartitionedTopicMetadataResponse(command.request_id, c.MetadataType.Success, 0)]
            case (
                c.CommandSubscribe()
                | c.CommandCloseProducer()
                | c.CommandCloseConsumer()
                | c.CommandUnsubscribe()
                | c.CommandSeek()
            ):
                return [c.CommandSuccess(command.request_id)]
            case _:
                return []

    def deliver(self, flow: c.CommandFlow) -> list[c.Command]:
        first, self.sent = self.sent, min(len(self.entries), self.sent + flow.permits)
        return [
            c.CommandMessage(flow.consumer_id, c.MessageIdData(0, entry), 0, (), None, None, self.entries[entry])
            for entry in range(first, self.sent)
        ]


Scenario = Callable[[RawClient, MiniBroker], Awaitable[None]]


async def _play(scenario: Scenario, host: str, port: int) -> None:
    brokers: list[MiniBroker] = []

    def accept() -> MiniBroker:
        brokers.append(MiniBroker())
        return brokers[-1]

    loop = asyncio.get_running_loop()
    server = await loop.create_server(accept, host, port)
    if not isinstance(loop, SimLoop):
        port = server.sockets[0].getsockname()[1]
    client = await RawClient.open(host, port, patience_s=5)
    await client.connect()
    try:
        await scenario(client, brokers[0])
    finally:
        client.transport.close()
        server.close()


def play(scenario: Scenario, seeds: int = 20) -> None:
    """Play the scenario in the simulator over several seeds, then over a socket of this machine."""

    async def simulated() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        Network(loop)
        await _play(scenario, "broker", 6650)

    for seed in range(seeds):
        run(seed, simulated())
    asyncio.run(_play(scenario, "127.0.0.1", 0))


def test_publish_receive_and_ack() -> None:
    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        assert client.pings == 1
        assert (await client.lookup(TOPIC)).broker_service_url == "pulsar://here:6650"
        assert (await client.partitions(TOPIC)).partitions == 0
        producer = await client.producer(TOPIC)
        assert producer.name == "given"
        assert await producer.publish(b"one", key="k") == c.MessageIdData(0, 0)
        numbers = [producer.send(payload) for payload in (b"two", bytes(300_000))]
        assert numbers == [1, 2]
        assert [(await producer.receipt()).sequence_id for _ in numbers] == numbers
        consumer = await client.subscribe(TOPIC, "s", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        messages = [await consumer.receive() for _ in range(3)]
        assert [payload_of(message.entry) for message in messages] == [b"one", b"two", bytes(300_000)]
        assert all(message.checksum_ok for message in messages)
        await consumer.ack(*(message.message_id for message in messages))
        consumer.ack_unconfirmed(messages[-1].message_id, cumulative=True)
        consumer.redeliver()
        consumer.flow(1)
        assert (await consumer.receive()).message_id == messages[0].message_id
        assert (await consumer.last_message_id()).last_message_id == c.MessageIdData(0, 2)
        await consumer.seek(messages[0].message_id)
        await consumer.unsubscribe()
        await consumer.close()
        await producer.close()
        assert c.CommandPong() in broker.heard
        acks = [command for command in broker.heard if isinstance(command, c.CommandAck)]
        assert [(len(ack.message_ids), ack.ack_type) for ack in acks] == [
            (3, c.AckType.Individual),
            (1, c.AckType.Cumulative),
        ]

    play(scenario)


def test_refusals_are_errors_with_their_code() -> None:
    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        with pytest.raises(RawClientError, match="ProducerBusy: taken"):
            await client.producer(BUSY)
        producer = await client.producer(TOPIC, "mine")
        damaged = make_entry(b"x", producer="mine", sequence_id=0)[:-1] + b"y"
        with pytest.raises(RawClientError, match="ChecksumError"):
            await producer.receipt(producer.send(b"", entry=damaged))
        consumer = await client.subscribe(TOPIC, "s")
        with pytest.raises(RawClientError, match="NotAllowedError: nothing named"):
            await consumer.ack()
        with pytest.raises(RawClientError) as caught:
            await client.connect("stranger")
        assert caught.value.code is ServerError.AuthenticationError

    play(scenario)


def test_waiting_ends_with_the_connection() -> None:
    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        consumer = await client.subscribe(TOPIC, "s")
        broker.transport.close()
        with pytest.raises(DisconnectedError):
            await consumer.receive()
        with pytest.raises(DisconnectedError):
            await consumer.receive()
        await client.close()

    play(scenario)


def test_waiting_ends_when_patience_does() -> None:
    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        client.patience_s = 0.2
        consumer = await client.subscribe(TOPIC, "s")
        with pytest.raises(TimeoutError):
            await consumer.receive()

    play(scenario)


def test_everything_heard_is_told_in_order_and_kept_until_taken() -> None:
    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        received: list[c.Command] = []
        client.on_command = received.append
        client.answer_pings = False
        for frame in (c.CommandActiveConsumerChange(7, True), c.CommandPing(), c.CommandCloseConsumer(7, -1)):
            broker.transport.write(codec.encode(frame))
        assert await client.hear(c.CommandCloseConsumer) == c.CommandCloseConsumer(7, -1)
        assert received == [c.CommandActiveConsumerChange(7, True), c.CommandPing(), c.CommandCloseConsumer(7, -1)]
        assert client.heard(c.CommandActiveConsumerChange) == [c.CommandActiveConsumerChange(7, True)]
        assert client.heard(c.CommandCloseConsumer) == []
        assert client.pings == 2
        client.say_bytes(codec.encode(c.CommandLookupTopic(TOPIC, 99)))
        await client.hear(c.CommandLookupTopicResponse)
        assert broker.heard.count(c.CommandPong()) == 1

    play(scenario)


def test_a_second_answer_to_a_request_fails_the_simulation() -> None:
    """Whoever asks it: so every simulation looks for answers that come twice."""

    async def scenario(client: RawClient, broker: MiniBroker) -> None:
        await client.partitions(TOPIC)
        client.say(c.CommandPartitionedTopicMetadata(TOPIC, 900))
        client.say(c.CommandPartitionedTopicMetadata(TOPIC, 900))
        await asyncio.sleep(1)
        assert len(client.heard(c.CommandPartitionedTopicMetadataResponse)) == 2, "an id may be used again"
        client.say(c.CommandPartitionedTopicMetadata(TWICE, 901))
        await asyncio.sleep(1)

    async def simulated() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        Network(loop)
        await _play(scenario, "broker", 6650)

    with pytest.raises(SimulationError) as found:
        run(1, simulated())
    assert "another answer to request 901" in str(found.value.__cause__)
