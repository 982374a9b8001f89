"""What a client says of a port that is no broker's, or not the one that its service URL means; and when at once."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from magnetar.admin_client.asyncio_transport import _exchange
from magnetar.admin_client.request import request_of
from magnetar.client.address import parse_service_url
from magnetar.client.aio.authentication import AuthenticationTLS
from magnetar.client.aio.client import Client
from magnetar.client.aio.connections.topic_lookup import is_transient
from magnetar.client.blocking.client import Client as BlockingClient
from magnetar.client.connection import Connection
from magnetar.client.errors import ConnectionLostError, TlsError, WrongPortError
from magnetar.client.handshake import broken, unreachable
from magnetar.client.lookup import Lookup
from magnetar.client.rest import Rest
from magnetar.model.errors import NotAvailableError
from magnetar.security.tls.client_tls import ClientTls
from tests.support.certificates import Authority, Issued
from tests.support.scripted_broker import Link, scripted_broker

Run = Callable[[Coroutine[Any, Any, None]], None]
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def shown(authority: Authority) -> Issued:
    return authority.issue("broker")


def demanding(shown: Issued, clients: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate_file, shown.key_file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(clients.file)
    return context


@contextmanager
def port(answer: bytes = b"", tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[int]]]:
    """A port that answers whatever it is sent with the same, and closes; with the ports of those who came."""
    came: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, address = listener.accept()
                except OSError:
                    return
                came.append(address[1])
                with peer, suppress(OSError):
                    peer.settimeout(10)
                    if tls is not None:
                        with tls.wrap_socket(peer, server_side=True, do_handshake_on_connect=False) as secured:
                            with suppress(ssl.SSLError):
                                secured.do_handshake()
                            while socket.socket.recv(secured, 1 << 16):
                                pass  # a reset would be faster than the alert
                    else:
                        peer.recv(1 << 16)
                        peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", came
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


async def opened(url: str, seconds: float = 0.2, **given: Any) -> None:
    async with Client(url, operation_timeout_seconds=seconds, **given) as client:
        await client.create_producer("t")


WRONG = pytest.mark.parametrize(
    ("scheme", "answer", "said"),
    [
        ("pulsar", b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers as HTTP does: this is an HTTP port; write http://"),
        ("pulsar", b"<!DOCTYPE HTML>\n<html>", "answers as HTTP does: this is an HTTP port; write http://"),
        ("pulsar", b"<html><head>", "answers as HTTP does: this is an HTTP port; write http://"),
        ("pulsar", b"\x15\x03\x03\x00\x02\x02\x46", "answers as TLS does: this is a TLS port; write pulsar+ssl://"),
        ("pulsar", b"", "closed the connection before it answered; if it is a TLS port, write pulsar+ssl://"),
        ("pulsar+ssl", b"", "ended the TLS handshake: no TLS there? Write pulsar:// (or http://), or its TLS port"),
    ],
)


@LOOPS
@WRONG
def test_a_wrong_port_is_named(run: Run, scheme: str, answer: bytes, said: str) -> None:
    with (
        port(answer) as (where, _),
        pytest.raises(ConnectionLostError, match=f"^the broker at {where} {re.escape(said)}"),
    ):
        run(opened(f"{scheme}://{where}"))


@WRONG
def test_a_wrong_port_is_named_to_threads(scheme: str, answer: bytes, said: str) -> None:
    """The connection that Spark's workers have says the same."""
    with (
        port(answer) as (where, _),
        pytest.raises(ConnectionLostError, match=f"^the broker at {where} {re.escape(said)}"),
    ):
        Connection(parse_service_url(f"{scheme}://{where}")[0], timeout=5)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"<!DOCTYPE HTML>\n", b"\x15\x03\x03\x00\x02\x02\x46"]
)
def test_a_port_that_speaks_another_protocol_is_asked_once(answer: bytes) -> None:
    """No waiting heals it; on loops, for threads, and for the lookup that Spark and ``magnetar sql`` have."""
    with port(answer) as (where, came):
        url = f"pulsar://{where}"
        with pytest.raises(WrongPortError, match=r"answers as (HTTP|TLS) does"):
            asyncio.run(opened(url, 60))
        assert len(came) == 1
        client = BlockingClient(url, operation_timeout_seconds=60)
        with pytest.raises(WrongPortError):
            client.subscribe("t", "s")
        client.close()
        assert len(came) == 2
        with Lookup(url, timeout=60) as lookup, pytest.raises(WrongPortError):
            lookup.partition_count("t")
        assert len(came) == 3


def test_of_a_wrong_port_and_a_broker_that_is_away_the_second_is_named_and_tried_again() -> None:
    async def asked(url: str) -> None:
        async with Client(url) as client:
            await client._lookup._pool.question()

    with socket.socket() as other, port(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (where, came):
        other.bind(("127.0.0.1", 0))  # a port at which nothing listens, and which stays so
        away = f"127.0.0.1:{other.getsockname()[1]}"
        for url in (f"pulsar://{away},{where}", f"pulsar://{where},{away}"):
            with pytest.raises(ConnectionLostError, match=f"cannot connect to the broker at {away}") as found:
                asyncio.run(asked(url))
            assert is_transient(found.value)
            with Lookup(url) as lookup, pytest.raises(ConnectionLostError, match=f"broker at {away}") as found:
                lookup._first_reachable()
            assert not isinstance(found.value, WrongPortError)
        assert len(came) == 4


def test_no_error_is_empty() -> None:
    plain, secured = (parse_service_url(f"{scheme}://a:1")[0] for scheme in ("pulsar", "pulsar+ssl"))
    for error in (OSError(), TimeoutError(), ConnectionResetError(), BrokenPipeError()):
        name = type(error).__name__
        assert f": {name}; is it running" in str(unreachable(plain, error))
        for address in (plain, secured):
            assert str(broken(address, error, greeted=True)).endswith(f"broke: {name}")
            assert ": ;" not in str(unreachable(address, error))


@LOOPS
@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
def test_a_certificate_that_is_missing_or_not_trusted_is_not_tried_again(
    run: Run, scheme: str, authority: Authority, shown: Issued, tmp_path: Path
) -> None:
    """With TLS 1.3 the broker says so only when the client believes itself connected; lookups by REST are no other."""
    stranger = Authority(tmp_path, "Stranger").issue("mallory")
    for own, said in (
        (None, r"demands a certificate of this client; give authentication=AuthenticationTLS\("),
        (AuthenticationTLS(stranger.certificate_file, stranger.key_file), "does not trust the certificate that this "),
    ):
        with port(tls=demanding(shown, authority)) as (where, came), pytest.raises(TlsError, match=said):
            run(opened(f"{scheme}://{where}", 60, authentication=own, tls_trust_certs_file_path=authority.file))
        assert len(came) == 1


@LOOPS
@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https"])
def test_a_broker_that_is_not_trusted_is_asked_once(run: Run, scheme: str, authority: Authority, shown: Issued) -> None:
    """The text names the client's own parameter."""
    with (
        port(tls=demanding(shown, authority)) as (where, came),
        pytest.raises(TlsError, match=r"is not trusted: .* \(tls_trust_certs_file_path\)"),
    ):
        run(opened(f"{scheme}://{where}", 60))
    assert len(came) == 1


@pytest.mark.parametrize("closing", ["close", "shutdown"])
def test_a_closed_client_leaves_no_socket_with_tls(authority: Authority, shown: Issued, closing: str) -> None:
    """TLS ends with an answer of the broker, which the loop waits for; one that gives none is left."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate_file, shown.key_file)

    def script(link: Link) -> None:
        link.greet()
        link.partitions(0)
        assert closed.wait(30)

    closed = threading.Event()

    with warnings.catch_warnings(record=True) as found, scripted_broker(script, tls=context) as url:
        warnings.simplefilter("always", ResourceWarning)
        client = BlockingClient(url, tls_trust_certs_file_path=authority.file)
        client.get_topic_partitions("t")
        getattr(client, closing)()
        closed.set()
        del client
        gc.collect()
    ours = f", {url.rpartition(':')[2]})>"  # an earlier test may have left sockets to others
    said = [str(one.message) for one in found if issubclass(one.category, ResourceWarning)]
    assert [one for one in said if one.endswith(ours)] == []


def test_a_login_of_tools_is_told_of_their_settings(authority: Authority, shown: Issued) -> None:
    with (
        port(tls=demanding(shown, authority)) as (where, _),
        pytest.raises(TlsError, match="demands a certificate of this client; give authPlugin AuthenticationTls"),
    ):
        Connection(parse_service_url(f"pulsar+ssl://{where}")[0], timeout=5, tls=ClientTls(trust_file=authority.file))


@pytest.mark.parametrize(
    "error", [ssl.SSLEOFError(8, "EOF"), ssl.SSLZeroReturnError(6, "closed"), ConnectionResetError()]
)
def test_a_broker_that_stops_in_the_handshake_is_away_and_no_fault_of_certificates(error: OSError) -> None:
    """A TlsError would end a handle that only has to be opened again."""
    address = parse_service_url("pulsar+ssl://h:1")[0]
    assert isinstance(broken(address, error, greeted=False), ConnectionLostError)
    assert isinstance(unreachable(address, error), ConnectionLostError)


@pytest.mark.parametrize("late", [False, True])
def test_a_reset_after_the_handshake_is_no_port_without_tls(late: bool, authority: Authority, shown: Issued) -> None:
    """Whether TLS was agreed before decides what is said, by threads and on a loop."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate_file, shown.key_file)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                peer = listener.accept()[0]
                peer.settimeout(10)
                if late:
                    peer = context.wrap_socket(peer, server_side=True)
                peer.recv(1 << 16)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        said = "closed the connection before it answered" if late else "ended the TLS handshake: no TLS there"
        rest = Rest(url, tls=ClientTls(trust_file=authority.file))
        with pytest.raises(NotAvailableError, match=said):
            rest.ask("GET", "/admin/v2/clusters")
        with pytest.raises(NotAvailableError, match=said):
            asyncio.run(_exchange(rest, request_of("brokers.list", {}, {})))
        thread.join(10)
