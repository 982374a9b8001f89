"""Which command may come when (rule 1.2.1), and which answer belongs to which request (rule 1.1.12)."""

from __future__ import annotations

import pytest

from magnetar.model.errors import ProtocolError, ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.client import ANSWERS, PUSHES, Arrival, ClientConnection
from magnetar.protocol.server import FROM_CLIENT, ServerConnection, ServerState


def opened() -> ServerConnection:
    server = ServerConnection()
    server.admit(c.CommandConnect("test", 21))
    server.accept()
    return server


def test_every_command_has_a_direction() -> None:
    from_broker = PUSHES | set(ANSWERS.values()) | {c.CommandConnected, c.CommandError}
    handshake = {c.CommandConnect, c.CommandAuthResponse, c.CommandPing, c.CommandPong}
    assert (FROM_CLIENT - {c.UnparsedCommand, c.SendRun, c.AckRun}) | handshake | from_broker == set(codec.NUMBERS)
    both = (FROM_CLIENT | handshake) & from_broker
    assert both == {c.CommandPing, c.CommandPong, c.CommandCloseProducer, c.CommandCloseConsumer}


def test_only_connect_and_ping_before_connect() -> None:
    for command in (c.CommandFlow(1, 1), c.CommandLookupTopic("t", 1), c.CommandAuthResponse(), c.CommandSuccess(1)):
        with pytest.raises(ProtocolError):
            ServerConnection().admit(command)
    server = ServerConnection()
    server.admit(c.CommandPing())
    server.admit(c.CommandConnect("test", 21))
    assert server.state is ServerState.GREETED
    with pytest.raises(ProtocolError):
        server.admit(c.CommandFlow(1, 1))


def test_second_connect_and_broker_commands_are_refused() -> None:
    for command in (
        c.CommandConnect("test", 21),
        c.CommandSuccess(1),
        c.CommandSendReceipt(1, 1, None, 0),
        c.CommandAuthResponse(),
    ):
        with pytest.raises(ProtocolError):
            opened().admit(command)
    opened().admit(c.CommandFlow(1, 1))
    with pytest.raises(ProtocolError):
        opened().accept()


def test_one_auth_response_per_challenge() -> None:
    """Each AUTH_CHALLENGE takes one AUTH_RESPONSE, in the handshake and afterwards (rule 1.3.15)."""
    server = ServerConnection()
    server.admit(c.CommandConnect("test", 21))
    server.challenge()
    server.admit(c.CommandAuthResponse())
    with pytest.raises(ProtocolError):
        server.admit(c.CommandAuthResponse())
    server.accept()
    server.challenge()
    server.admit(c.CommandAuthResponse())


def pair() -> tuple[ClientConnection, ServerConnection]:
    """A client and a server joined by bytes, handshake done."""
    client, server = ClientConnection(), ServerConnection()
    for command in server.receive(client.send(c.CommandConnect("test", 21))):
        server.admit(command)
    server.accept()
    (connected,) = client.receive(codec.encode(c.CommandConnected("broker", 21)))
    assert client.match(connected) == Arrival(connected, None)
    assert client.connected
    return client, server


def test_answers_find_their_requests_in_any_order() -> None:
    client, server = pair()
    lookup = c.CommandLookupTopic("t", client.new_request_id())
    unsubscribe = c.CommandUnsubscribe(5, client.new_request_id())
    seen = server.receive(client.send(lookup) + client.send(unsubscribe))
    assert seen == [lookup, unsubscribe]
    assert client.open_requests() == [lookup, unsubscribe]
    answers: list[c.Command] = [
        c.CommandError(unsubscribe.request_id, ServerError.MetadataError, "Consumer not found"),
        c.CommandLookupTopicResponse(lookup.request_id, c.LookupType.Connect, "pulsar://x"),
    ]
    arrived = [client.match(a) for a in client.receive(b"".join(map(codec.encode, answers)))]
    assert arrived == [Arrival(answers[0], unsubscribe), Arrival(answers[1], lookup)]
    assert client.open_requests() == []


def test_waiting_producer_is_answered_twice() -> None:
    """A producer that waits gets PRODUCER_SUCCESS twice for one request (rules 3.2.4, 1.3.2)."""
    client, _ = pair()
    producer = c.CommandProducer("t", 1, client.new_request_id())
    client.send(producer)
    for ready in (False, True):
        success = c.CommandProducerSuccess(producer.request_id, "p", -1, b"", producer_ready=ready)
        assert client.match(success) == Arrival(success, producer)
    assert client.open_requests() == []


def test_pushes_and_late_answers() -> None:
    """What the broker sends unasked belongs to no request; an answer that comes too late is dropped (rule 1.3.18)."""
    client, _ = pair()
    closed = c.CommandCloseProducer(1, -1)
    assert client.match(closed) == Arrival(closed, None)
    seek = c.CommandSeek(1, client.new_request_id())
    client.send(seek)
    client.forget(seek.request_id)
    assert client.match(c.CommandSuccess(seek.request_id)) is None


def test_ack_wants_an_answer_only_with_a_request_id() -> None:
    """An ACK has an answer only if it has a request id (rule 1.3.5)."""
    client, _ = pair()
    client.send(c.CommandAck(1, c.AckType.Individual, ()))
    assert client.open_requests() == []
    asked = c.CommandAck(1, c.AckType.Individual, (), request_id=client.new_request_id())
    client.send(asked)
    assert client.match(c.CommandAckResponse(1, request_id=asked.request_id)) == Arrival(
        c.CommandAckResponse(1, request_id=asked.request_id), asked
    )
    client.send(asked)
    with pytest.raises(ValueError, match="in use"):
        client.send(asked)


def test_what_a_broker_must_not_say() -> None:
    client, _ = pair()
    seek = c.CommandSeek(1, client.new_request_id())
    client.send(seek)
    for command in (
        c.CommandLookupTopicResponse(seek.request_id),
        c.CommandFlow(1, 1),
        c.CommandConnected("again", 21),
    ):
        with pytest.raises(ProtocolError):
            client.match(command)
    with pytest.raises(ProtocolError):
        ClientConnection().match(c.CommandSuccess(1))


def test_refused_handshake() -> None:
    """A refused handshake is answered with ERROR and request id -1 (rules 1.2.3, 1.3.1)."""
    client = ClientConnection()
    client.send(c.CommandConnect("test", 21))
    refusal = c.CommandError(-1, ServerError.AuthenticationError, "Failed to authenticate")
    (command,) = client.receive(codec.encode(refusal))
    assert client.match(command) == Arrival(refusal, None)
    assert not client.connected
