"""One connection: requests find their answers, whatever else arrives."""

from __future__ import annotations

import pytest

from magnetar.client.address import Address, parse_service_url
from magnetar.client.connection import Connection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.read_position import START, ReadPosition, after_entry
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.protocol import commands as c
from magnetar.security.credentials.method import NOBODY, ClientCredentials
from magnetar.security.credentials.secret import Secret
from magnetar.security.credentials.token import TokenCredentials
from tests.support.scripted_broker import TOPIC, Link, scripted_broker


def connect(url: str, timeout: float = 5.0, credentials: ClientCredentials = NOBODY) -> Connection:
    return Connection(parse_service_url(url)[0], timeout=timeout, credentials=credentials)


def ask(connection: Connection) -> c.CommandPartitionedTopicMetadataResponse:
    return connection.request(
        c.CommandPartitionedTopicMetadata(TOPIC, connection.new_request_id()),
        c.CommandPartitionedTopicMetadataResponse,
        "ask",
    )


def test_service_urls_name_hosts_and_ports() -> None:
    """A service URL may list several hosts; anything else is refused with a hint (rule 6.10.5)."""
    assert parse_service_url("pulsar://a,b:1,[::1]:2") == (Address("a", 6650), Address("b", 1), Address("::1", 2))
    assert parse_service_url("pulsar+ssl://a,b:1") == (Address("a", 6651, True), Address("b", 1, True))
    for bad, hint in (
        ("localhost:6650", "no scheme"),
        ("http://a", "unknown scheme"),
        ("pulsar://a:0", "no host:port"),
        ("pulsar://", "no host:port"),
        ("pulsar://a:x", "no host:port"),
    ):
        with pytest.raises(InvalidValueError, match=hint):
            parse_service_url(bad)


def test_read_positions_order_as_the_log_does() -> None:
    assert ReadPosition.parse("3:4") == ReadPosition(3, 4, 0)
    assert str(ReadPosition.parse("3:4:5")) == "3:4:5"
    assert ReadPosition.parse("-1:-1") == START
    assert START < ReadPosition(0, 0) < ReadPosition(0, 0, 1) < ReadPosition(0, 1) < ReadPosition(1, 0)
    assert after_entry(c.MessageIdData(-1, -1)) == START
    assert after_entry(c.MessageIdData(5, 7, batch_index=3)) == ReadPosition(5, 8)
    for bad in ("", "3", "a:b", "1:2:3:4", "-2:0"):
        with pytest.raises(InvalidValueError, match="no position"):
            ReadPosition.parse(bad)


def test_answers_pings_and_keeps_pushes_for_later() -> None:
    def script(link: Link) -> None:
        assert link.greet(max_message_size=77).auth_method_name == "token"
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        link.send(c.CommandPing(), c.CommandReachedEndOfTopic(1), c.CommandCloseConsumer(2, -1))
        link.expect(c.CommandPong)
        link.send(c.CommandPartitionedTopicMetadataResponse(asked.request_id, c.MetadataType.Success, 4))
        link.until_left()

    with scripted_broker(script) as url:
        connection = connect(url, credentials=TokenCredentials(Secret.given("secret")))
        assert connection.max_message_size == 77
        assert ask(connection).partitions == 4
        assert connection.receive(0) == [c.CommandReachedEndOfTopic(1), c.CommandCloseConsumer(2, -1)]
        assert connection.receive(0) == []
        connection.close()
        with pytest.raises(ConnectionLostError, match="closed"):
            ask(connection)


def test_an_error_carries_its_code() -> None:
    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        link.send(c.CommandError(asked.request_id, ServerError.TopicNotFound, "no such thing"))

    with scripted_broker(script) as url:
        connection = connect(url)
        with pytest.raises(RefusedError, match="ask: TopicNotFound: no such thing") as info:
            ask(connection)
        connection.close()
    assert not info.value.retriable


def test_a_broker_that_refuses_connect_is_named() -> None:
    def script(link: Link) -> None:
        link.expect(c.CommandConnect)
        link.send(c.CommandError(-1, ServerError.AuthenticationError, "who are you"))

    with scripted_broker(script) as url, pytest.raises(RefusedError, match="AuthenticationError: who are you"):
        connect(url)


def test_silence_is_a_timeout_and_names_the_request() -> None:
    def script(link: Link) -> None:
        link.greet()
        first = link.expect(c.CommandPartitionedTopicMetadata)
        second = link.expect(c.CommandPartitionedTopicMetadata)
        # The late answer to the first must not be taken for the second's.
        link.send(c.CommandPartitionedTopicMetadataResponse(first.request_id, c.MetadataType.Success, 1))
        link.send(c.CommandPartitionedTopicMetadataResponse(second.request_id, c.MetadataType.Success, 2))

    with scripted_broker(script) as url:
        connection = connect(url, timeout=0.2)
        with pytest.raises(ClientTimeoutError, match=r"ask: the broker at .* did not answer in 0\.2 s"):
            ask(connection)
        assert ask(connection).partitions == 2
        connection.close()


@pytest.mark.parametrize("last_words", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["closes", "babbles"])
def test_a_broken_connection_says_so(last_words: bytes) -> None:
    def script(link: Link) -> None:
        link.greet()
        link.expect(c.CommandPartitionedTopicMetadata)
        link.send_bytes(last_words)

    with scripted_broker(script) as url:
        connection = connect(url)
        with pytest.raises(ConnectionLostError):
            ask(connection)
        assert connection.closed


def test_an_address_where_no_broker_listens_is_named() -> None:
    with pytest.raises(ConnectionLostError, match=r"cannot connect to the broker at 127\.0\.0\.1:1: .*is it running"):
        connect("pulsar://127.0.0.1:1")
