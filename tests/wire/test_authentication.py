"""Who gets in: the official client by every method, forged tokens on both doors, renewal under load."""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from passlib import hash as hashes  # type: ignore[import-untyped]  # libpass carries no types
from tools.servers import magnetar
from tools.servers.process import Server

from magnetar.authorization.caller import Caller
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.support.certificates import Authority, Issued
from tests.support.openid_issuer import AUDIENCE as ISSUED_FOR
from tests.support.openid_issuer import OPENID_PROVIDER, openid_issuer
from tests.support.real_broker import HOST, RealBroker, real_broker
from tests.support.signed_tokens import AUDIENCE, SECRET, Forged, forged, inline, signed

PACKAGE = "org.apache.pulsar.broker.authentication"
PROVIDERS = ",".join(
    [*(f"{PACKAGE}.AuthenticationProvider{kind}" for kind in ("Token", "Tls", "Basic")), OPENID_PROVIDER]
)
TOPIC = "persistent://public/default/t"
PATIENCE_MS = 10_000
_SHORT_S = 10
"""The life of a certificate; the machine may be slow."""


def client(url: str, **options: Any) -> Any:
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), **options)


def test_official_client_logs_in_by_every_method(tmp_path: Path) -> None:
    """Token, certificate, password and OAuth 2, each with its role; all providers at once (rules 12.1 to 12.4)."""
    authority = Authority(tmp_path / "authority")
    server, own = authority.issue("broker"), authority.issue("superUser")
    users = tmp_path / ".htpasswd"
    users.write_text(f"admin:{hashes.apr_md5_crypt.hash('123456')}\n")

    async def scenario(broker: RealBroker, oauth2: str) -> None:
        service = broker.node.broker.service
        plain, secured = service.service_url, service.service_url_tls
        supplied = itertools.chain([signed({"sub": "supplied"})], itertools.repeat("must not be asked again"))
        certificate = pulsar.AuthenticationTLS(own.certificate_file, own.key_file)
        for url, method, role in (
            (plain, pulsar.AuthenticationToken(signed({"sub": "alice"})), "alice token"),
            (plain, pulsar.AuthenticationToken(lambda: next(supplied)), "supplied token"),
            (plain, pulsar.AuthenticationBasic("admin", "123456"), "admin basic"),
            (plain, pulsar.AuthenticationBasic("admin", "123456", "basic"), "admin basic"),
            (plain, pulsar.AuthenticationBasic("admin", "123456", "unknown"), "nobody anonymous"),
            (plain, None, "nobody anonymous"),
            (plain, pulsar.AuthenticationOauth2(oauth2), "robot token"),
            (secured, certificate, "superUser tls"),
            (secured, pulsar.AuthenticationToken(signed({"sub": "bob"})), "bob token"),
            (secured, None, "nobody anonymous"),
        ):
            options = {"authentication": method} if method else {}
            found = await asyncio.to_thread(talk, broker, url, **options)
            assert {f"{one.role} {one.method}" for one in found} == {role}
        for method in (
            pulsar.AuthenticationToken("bad"),
            pulsar.AuthenticationBasic("admin", "12345"),
            certificate,
        ):
            await asyncio.to_thread(refused, plain, authentication=method)

    def talk(broker: RealBroker, url: str, **options: Any) -> set[Caller]:
        opened = client(url, tls_trust_certs_file_path=authority.file, **options)
        consumer = opened.subscribe("t", "s")
        producer = opened.create_producer("t")
        producer.send(b"m")
        message = consumer.receive(PATIENCE_MS)
        consumer.acknowledge(message)
        found = {listener.session.caller for listener in broker.node.broker.connections}
        opened.close()
        return {Caller(one.role, method=one.method) for one in found}

    async def main() -> None:
        with openid_issuer() as issuer:
            issuer.endpoint.answer = {
                "access_token": issuer.token(sub="robot"), "token_type": "Bearer", "expires_in": 600
            }  # fmt: skip
            key = base64.b64encode(json.dumps({"client_id": "robot", "client_secret": "s"}).encode()).decode()
            private = f"data:application/json;base64,{key}"
            oauth2 = json.dumps({"issuer_url": issuer.url, "private_key": private, "audience": ISSUED_FOR})
            settings = issuer.settings(
                authenticationProviders=PROVIDERS,
                anonymousUserRole="nobody",
                tokenSecretKey=inline(SECRET),
                basicAuthConf=str(users),
                brokerServicePortTls=0,
                tlsCertificateFilePath=server.certificate_file,
                tlsKeyFilePath=server.key_file,
                tlsTrustCertsFilePath=authority.file,
            )
            async with real_broker(tmp_path / "data", **settings) as broker:
                await asyncio.wait_for(scenario(broker, oauth2), 60)
            (asked,) = issuer.endpoint.asked
            assert asked["audience"] == ISSUED_FOR

    asyncio.run(main())


def refused(url: str, **options: Any) -> None:
    # the client takes the refusal for a lost connection and tries until its time is over
    opened = client(url, operation_timeout_seconds=1, **options)
    with pytest.raises(pulsar.PulsarException):
        opened.create_producer("t")
    opened.close()


def test_certificates_open_both_doors(tmp_path: Path) -> None:
    """Whoever shows a certificate of the authority comes in, the others do not, over TLS either (rule 12.4)."""
    authority, stranger = Authority(tmp_path / "authority"), Authority(tmp_path / "stranger", "Another")
    server, own, foreign = authority.issue("broker"), authority.issue("alice"), stranger.issue("alice")

    def context(shown: Issued | None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=authority.file)
        if shown is not None:
            made.load_cert_chain(shown.certificate_file, shown.key_file)
        return made

    def status(url: str, shown: Issued | None) -> int:
        try:
            with urllib.request.urlopen(f"{url}/admin/v2/clusters", timeout=10, context=context(shown)) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    async def main() -> None:
        settings: dict[str, Any] = {
            "authenticationEnabled": True,
            "authenticationProviders": f"{PACKAGE}.AuthenticationProviderTls",
            "brokerServicePortTls": 0,
            "webServicePortTls": 0,
            "tlsCertificateFilePath": server.certificate_file,
            "tlsKeyFilePath": server.key_file,
            "tlsTrustCertsFilePath": authority.file,
        }
        async with real_broker(tmp_path / "data", **settings) as broker:
            service = broker.node.broker.service
            assert await asyncio.to_thread(status, service.web_service_url_tls, own) == 200
            assert await asyncio.to_thread(status, service.web_service_url_tls, None) == 401
            assert (await broker.ask("GET", "/admin/v2/clusters"))[0] == 401
            with pytest.raises((urllib.error.URLError, OSError)):
                await asyncio.to_thread(status, service.web_service_url_tls, foreign)
            opened = await RawClient.open(HOST, broker.node.tls_port, tls=context(own))
            await opened.connect(auth_method_name="tls")
            (session,) = (listener.session for listener in broker.node.broker.connections)
            assert (session.caller.role, session.caller.method) == ("alice", "tls")
            await opened.close()
            for port, shown in ((broker.node.tls_port, None), (broker.node.port, own)):
                tls = None if port == broker.node.port else context(shown)
                opened = await RawClient.open(HOST, port, tls=tls)
                with pytest.raises(RawClientError, match="Failed to authenticate"):
                    await opened.connect(auth_method_name="tls")

    asyncio.run(main())


def test_a_connection_ends_with_its_certificate(tmp_path: Path) -> None:
    """Whoever is connected with a certificate is asked for new credentials when it expires, and has none (rule 12.6);
    a request on an HTTP connection that is still open is refused."""
    authority = Authority(tmp_path / "authority")
    server, own = authority.issue("broker"), authority.issue("alice", days=_SHORT_S / 86_400)

    def asked_until_refused(port: int) -> list[int]:
        context = ssl.create_default_context(cafile=authority.file)
        context.load_cert_chain(own.certificate_file, own.key_file)
        connection = http.client.HTTPSConnection(HOST, port, timeout=20, context=context)
        found: list[int] = []
        while 401 not in found and len(found) < 100:
            connection.request("GET", "/admin/v2/clusters")
            with connection.getresponse() as answer:
                answer.read()
                found.append(answer.status)
            time.sleep(0.5)
        connection.close()
        return found

    async def main() -> None:
        settings: dict[str, Any] = {
            "authenticationEnabled": True,
            "authenticationProviders": f"{PACKAGE}.AuthenticationProviderTls",
            "authenticationRefreshCheckSeconds": 1,
            "brokerServicePortTls": 0,
            "webServicePortTls": 0,
            "tlsCertificateFilePath": server.certificate_file,
            "tlsKeyFilePath": server.key_file,
            "tlsTrustCertsFilePath": authority.file,
        }
        async with real_broker(tmp_path / "data", **settings) as broker:
            context = ssl.create_default_context(cafile=authority.file)
            context.load_cert_chain(own.certificate_file, own.key_file)
            opened = [await RawClient.open(HOST, broker.node.tls_port, tls=context) for _ in range(2)]
            for one, able in zip(opened, (True, False), strict=True):
                flags = c.FeatureFlags(supports_auth_refresh=able)
                await one.connect(auth_method_name="tls", feature_flags=flags)
            https = int(broker.node.broker.service.web_service_url_tls.rpartition(":")[2])
            statuses = await asyncio.to_thread(asked_until_refused, https)
            assert statuses[0] == 200
            assert statuses[-1] == 401
            async with asyncio.timeout(20):
                await asyncio.gather(*(one.lost for one in opened))

    asyncio.run(main())


# forged tokens -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A broker that asks for a token with an audience, and its revocation list."""
    directory = tmp_path_factory.mktemp("strict")
    revoked = directory / "revoked"
    revoked.write_text("jti revoked\nsub mallory\n")
    settings = {
        "authenticationEnabled": "true",
        "authenticationProviders": f"{PACKAGE}.AuthenticationProviderToken",
        "tokenSecretKey": inline(SECRET),
        "tokenAudienceClaim": "aud",
        "tokenAudience": AUDIENCE,
        "tokenRevocationListFile": str(revoked),
    }
    with magnetar.start(directory, settings=settings) as server:
        yield server, directory / "magnetar.log"


FORGED = [
    *forged(time.time()),
    Forged("revoked by its id", signed({"sub": "a", "aud": AUDIENCE, "jti": "revoked"})),
    Forged("revoked by its subject", signed({"sub": "mallory", "aud": AUDIENCE})),
]


def over_http(server: Server, token: str) -> int:
    request = urllib.request.Request(f"{server.http_url}/admin/v2/clusters")
    request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def over_the_wire(server: Server, token: str) -> RawClientError | None:
    opened = await RawClient.open(HOST, server.broker_port)
    try:
        await opened.connect(auth_method_name="token", auth_data=token.encode())
    except RawClientError as error:
        assert await opened.lost is None
        return error
    await opened.close()
    return None


@pytest.mark.parametrize("one", FORGED, ids=lambda one: one.name)
def test_forged_tokens_open_no_door(strict: tuple[Server, Path], one: Forged) -> None:
    """On the wire and over HTTP: one answer for all, and no token in the log (rules 12.1, 12.2)."""
    server, log = strict
    answer = asyncio.run(over_the_wire(server, one.token))
    assert answer is not None
    assert (answer.code, answer.message) == (ServerError.AuthenticationError, "Failed to authenticate")
    if not any(character in one.token for character in "\0\n") and one.token.isascii():
        assert over_http(server, one.token) == 401
    if len(one.token) > 20:
        assert one.token not in log.read_text()
        assert one.token.rpartition(".")[2][:40] not in log.read_text() or one.token.endswith(".")


def test_the_token_that_they_were_made_from_opens_both(strict: tuple[Server, Path]) -> None:
    token = signed({"sub": "admin", "aud": AUDIENCE})
    assert asyncio.run(over_the_wire(strict[0], token)) is None
    assert over_http(strict[0], token) == 200


# renewal under load ------------------------------------------------------------------------------------------------


def test_the_official_client_renews_its_token_under_load(tmp_path: Path) -> None:
    """Tokens expire every two seconds while messages flow: none is lost, and the connection stays (rule 12.6)."""
    settings = {
        "authenticationEnabled": True,
        "authenticationProviders": f"{PACKAGE}.AuthenticationProviderToken",
        "tokenSecretKey": inline(SECRET),
        "authenticationRefreshCheckSeconds": 1,
    }
    asked = 0
    enough = threading.Event()

    def fresh() -> str:
        nonlocal asked
        asked += 1
        if asked > 3:
            enough.set()
        return signed({"sub": "alice", "exp": time.time() + 1.0})

    def talk(url: str) -> tuple[int, list[bytes]]:
        opened = client(url, authentication=pulsar.AuthenticationToken(fresh))
        consumer = opened.subscribe("t", "s")
        producer = opened.create_producer("t", block_if_queue_full=True)
        sent = 0
        deadline = time.monotonic() + 30
        while not enough.is_set() and time.monotonic() < deadline:
            for _ in range(100):
                producer.send_async(str(sent).encode(), None)
                sent += 1
            producer.flush()
        got = [consumer.receive(PATIENCE_MS).data() for _ in range(sent)]
        opened.close()
        return sent, got

    async def main() -> None:
        async with real_broker(tmp_path, **settings) as broker:
            running = asyncio.create_task(asyncio.to_thread(talk, broker.node.broker.service.service_url))
            sessions: set[str] = set()
            while not running.done():
                sessions |= {listener.session.address for listener in broker.node.broker.connections}
                await asyncio.wait([running], timeout=0.2)
            sent, got = await running
            assert got == [str(number).encode() for number in range(sent)]
            assert enough.is_set()
            assert len(sessions) == 1

    asyncio.run(main())
