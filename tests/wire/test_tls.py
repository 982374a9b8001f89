"""TLS on both doors of a whole broker: what is answered, who gets in, wrong doors, and certificates that change."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from cryptography import x509

from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, payload_of
from tests.support.certificates import Authority, Issued
from tests.support.real_broker import HOST, RealBroker, real_broker

TOPIC = "persistent://public/default/t"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def shown(authority: Authority) -> Issued:
    return authority.issue("broker")


def doors(shown: Issued, **settings: Any) -> dict[str, Any]:
    return {
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": shown.certificate_file,
        "tlsKeyFilePath": shown.key_file,
        **settings,
    }


def trusting(authority: Authority, own: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own.certificate_file, own.key_file)
    return context


Scenario = Callable[[RealBroker], Awaitable[None]]


def run(data: Path, scenario: Scenario, **settings: Any) -> None:
    async def main() -> None:
        async with real_broker(data, **settings) as broker:
            await asyncio.wait_for(scenario(broker), 60)

    asyncio.run(main())


async def opened(broker: RealBroker, context: ssl.SSLContext) -> RawClient:
    client = await RawClient.open(HOST, broker.node.tls_port, tls=context)
    await client.connect()
    return client


async def fetched(broker: RealBroker, path: str, context: ssl.SSLContext) -> Any:
    url = broker.node.broker.service.web_service_url_tls + path

    def ask() -> Any:
        with urllib.request.urlopen(url, timeout=20, context=context) as answered:
            return json.load(answered)

    return await asyncio.to_thread(ask)


async def looked_up(client: RawClient) -> c.CommandLookupTopicResponse:
    client.say(c.CommandLookupTopic(TOPIC, 77))
    return await client.hear(c.CommandLookupTopicResponse)


def test_both_doors_serve_with_and_without_tls(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    """Lookups, over both protocols, name both addresses of each (rules 2.6, 2.20)."""

    async def scenario(broker: RealBroker) -> None:
        context = trusting(authority)
        service = broker.node.broker.service
        assert service.service_url_tls == f"pulsar+ssl://127.0.0.1:{broker.node.tls_port}"
        secured, plain = await opened(broker, context), await broker.client()
        payload = bytes(range(256)) * 4096
        consumer = await plain.subscribe(TOPIC, "s")
        consumer.flow(10)
        await (await secured.producer(TOPIC)).publish(payload)
        assert payload_of((await consumer.receive()).entry) == payload
        for client in (secured, plain):
            answer = await looked_up(client)
            assert (answer.broker_service_url, answer.broker_service_url_tls) == (
                service.service_url,
                service.service_url_tls,
            )
        found = await fetched(broker, "/lookup/v2/topic/persistent/public/default/t", context)
        assert found == {
            "brokerUrl": service.service_url,
            "brokerUrlTls": service.service_url_tls,
            "httpUrl": service.web_service_url,
            "httpUrlTls": service.web_service_url_tls,
            "nativeUrl": service.service_url,
            "brokerUrlSsl": "",
        }
        cluster = await fetched(broker, "/admin/v2/clusters/standalone", context)
        assert cluster["brokerServiceUrlTls"] == service.service_url_tls
        assert cluster["serviceUrlTls"] == service.web_service_url_tls
        await secured.close()

    run(tmp_path, scenario, **doors(shown))


def test_with_tls_only_no_plain_address_is_named(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    async def scenario(broker: RealBroker) -> None:
        context = trusting(authority)
        assert broker.node.port == 0
        client = await opened(broker, context)
        answer = await looked_up(client)
        assert answer.broker_service_url is None
        assert answer.broker_service_url_tls == broker.node.broker.service.service_url_tls
        found = await fetched(broker, "/lookup/v2/topic/persistent/public/default/t", context)
        assert set(found) == {"brokerUrlTls", "httpUrlTls", "brokerUrlSsl"}
        cluster = await fetched(broker, "/admin/v2/clusters/standalone", context)
        assert not {"serviceUrl", "brokerServiceUrl"} & set(cluster)
        leader = await fetched(broker, "/admin/v2/brokers/leaderBroker", context)
        assert leader["serviceUrl"] == broker.node.broker.service.web_service_url_tls
        await client.close()

    run(tmp_path, scenario, **doors(shown, brokerServicePort=None, webServicePort=None))


async def is_admitted(broker: RealBroker, context: ssl.SSLContext) -> tuple[bool, bool]:
    """Whether the binary door and the HTTP door let this client in."""
    admitted = []
    for attempt in (opened(broker, context), fetched(broker, "/admin/v2/clusters", context)):
        try:
            found: Any = await attempt
        except OSError:  # TLS errors are of that kind
            admitted.append(False)
        else:
            admitted.append(True)
            if isinstance(found, RawClient):
                await found.close()
    return admitted[0], admitted[1]


@pytest.mark.parametrize("required", [False, True])
def test_client_certificates_are_wanted_or_demanded(
    tmp_path: Path, authority: Authority, shown: Issued, required: bool
) -> None:
    """Without a certificate one gets in unless it is required; an untrusted one never does (rule 12.4).

    Apache Pulsar takes untrusted ones with tlsAllowInsecureConnection, which has no effect here: it would let anybody
    choose a name.
    """
    own = authority.issue("client")
    stranger = Authority(tmp_path / "stranger", "Stranger").issue("client")

    async def scenario(broker: RealBroker) -> None:
        assert await is_admitted(broker, trusting(authority)) == (not required, not required)
        assert await is_admitted(broker, trusting(authority, own)) == (True, True)
        assert await is_admitted(broker, trusting(authority, stranger)) == (False, False)
        client = await opened(broker, trusting(authority, own))
        (listener,) = broker.node.broker.connections
        peer = listener.session.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert x509.load_der_x509_certificate(peer) == own.certificate
        await client.close()

    run(
        tmp_path / "data",
        scenario,
        **doors(
            shown,
            tlsTrustCertsFilePath=authority.file,
            tlsRequireTrustedClientCertOnConnect=required,
        ),
    )


def test_wrong_doors_are_closed_and_named(
    tmp_path: Path, authority: Authority, shown: Issued, caplog: pytest.LogCaptureFixture
) -> None:
    context = trusting(authority)

    async def attempt(port: int, sent: bytes | None) -> None:
        tls = None if sent is not None else context
        try:
            reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
            writer.write(sent or b"x")
            assert await reader.read() == b""
            writer.close()
        except (ConnectionError, ssl.SSLError):
            pass

    async def scenario(broker: RealBroker) -> None:
        service = broker.node.broker.service
        https = int(service.web_service_url_tls.rpartition(":")[2])
        http = int(service.web_service_url.rpartition(":")[2])
        await attempt(broker.node.tls_port, b"\0\0\0\x1a\0\0\0\x16\x08\x02")
        await attempt(https, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await attempt(broker.node.port, None)
        await attempt(http, None)

    with caplog.at_level(logging.WARNING):
        run(tmp_path, scenario, **doors(shown))
    for said in (
        "broker (TLS): closing /127.0.0.1:",
        "it speaks Pulsar's protocol without TLS to a port with TLS",
        "http (TLS): closing /127.0.0.1:",
        "it speaks HTTP without TLS to a port with TLS",
        "it speaks TLS to the port without TLS (brokerServicePortTls is the other one)",
        "it speaks TLS to the port without TLS (webServicePort",
    ):
        assert said in caplog.text, caplog.text


def test_a_new_certificate_is_shown_while_messages_flow(
    tmp_path: Path, shown: Issued, caplog: pytest.LogCaptureFixture
) -> None:
    """Open connections go on, new ones see the new certificate, a broken file changes nothing, no message is lost."""
    authority = Authority(tmp_path / "authority")
    issued = authority.issue("broker", file="shown")
    context = trusting(authority)
    good = Path(issued.certificate_file).read_bytes()
    stray = Path(authority.issue("stray", file="other").certificate_file).read_bytes()

    def put(data: bytes | None) -> None:
        if data is None:
            Path(issued.certificate_file).unlink()
        else:
            Path(issued.certificate_file).write_bytes(data)

    async def serial(broker: RealBroker) -> int:
        reader, writer = await asyncio.open_connection(HOST, broker.node.tls_port, ssl=context)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        del reader
        return x509.load_der_x509_certificate(der).serial_number

    async def scenario(broker: RealBroker) -> None:
        consumer = await (await opened(broker, context)).subscribe(TOPIC, "s")
        consumer.flow(1_000_000)
        producer = await (await opened(broker, context)).producer(TOPIC)
        ending = asyncio.Event()

        async def load() -> int:
            for number in itertools.count():
                await producer.publish(b"%d" % number)
                if ending.is_set():
                    return number + 1
            raise AssertionError

        loading = asyncio.get_running_loop().create_task(load())
        before = issued.certificate.serial_number
        for _ in range(5):
            assert await serial(broker) == before
            before = authority.issue("broker", file="shown").certificate.serial_number
        assert await serial(broker) == before
        put(good[: len(good) // 2])
        assert [await serial(broker) for _ in range(3)] == [before] * 3
        put(stray)
        assert await serial(broker) == before
        put(None)
        assert await serial(broker) == before
        again = authority.issue("broker", file="shown").certificate.serial_number
        assert await serial(broker) == again
        ending.set()
        for number in range(await loading):
            assert payload_of((await consumer.receive()).entry) == b"%d" % number

    with caplog.at_level(logging.INFO):
        run(tmp_path / "data", scenario, **doors(issued, tlsCertRefreshCheckDurationSec=0))
    complaints = [record for record in caplog.records if "new connections go on with what was loaded" in record.message]
    assert len(complaints) == 3, "each broken state is said once"
    assert all(issued.certificate_file in record.message for record in complaints)


def test_files_are_looked_at_now_and_then(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    issued = authority.issue("broker", file="shown")

    async def scenario(broker: RealBroker) -> None:
        new = authority.issue("broker", file="shown").certificate.serial_number
        seen = 0
        while seen != new:
            _, writer = await asyncio.open_connection(HOST, broker.node.tls_port, ssl=trusting(authority))
            der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            seen = x509.load_der_x509_certificate(der).serial_number
            writer.close()
            await asyncio.sleep(0.05)

    run(tmp_path / "data", scenario, **doors(issued, tlsCertRefreshCheckDurationSec=1))


def test_the_official_client_publishes_and_consumes(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    """Batches, a large message, and a certificate that is demanded (rule 12.4)."""
    own = authority.issue("client")
    payloads = [b"x" * size for size in (0, 1, 20_000, 1_000_000)]

    def client(url: str, **options: Any) -> Any:
        return pulsar.Client(
            url,
            tls_trust_certs_file_path=authority.file,
            tls_validate_hostname=True,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            **options,
        )

    def talk(url: str) -> None:
        known = client(url, authentication=pulsar.AuthenticationTLS(own.certificate_file, own.key_file))
        consumer = known.subscribe("t", "s")
        producer = known.create_producer("t")
        for payload in payloads:
            producer.send(payload)
        assert [consumer.receive(10_000).data() for _ in payloads] == payloads
        known.close()
        unknown = client(url, operation_timeout_seconds=2)
        with pytest.raises(pulsar.PulsarException):
            unknown.create_producer("t")
        unknown.close()

    async def scenario(broker: RealBroker) -> None:
        await asyncio.to_thread(talk, broker.node.broker.service.service_url_tls)
        by_http = broker.node.broker.service.web_service_url_tls
        assert by_http.startswith("https://")

    required = doors(shown, tlsTrustCertsFilePath=authority.file, tlsRequireTrustedClientCertOnConnect=True)
    run(tmp_path, scenario, **required)


def test_the_official_client_looks_up_by_https(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    def talk(url: str) -> None:
        client = pulsar.Client(
            url,
            tls_trust_certs_file_path=authority.file,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"m")
        assert consumer.receive(10_000).data() == b"m"
        client.close()

    async def scenario(broker: RealBroker) -> None:
        await asyncio.to_thread(talk, broker.node.broker.service.web_service_url_tls)

    # with pulsar-client 3.13 both addresses have to be in the answer: it crashes when brokerUrl is absent
    run(tmp_path, scenario, **doors(shown))
