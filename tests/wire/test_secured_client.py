"""Our client at a real broker with TLS, logins and grants: every method, both doors, and what a refusal says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from magnetar.client.bulk.positions import last_position
from magnetar.client.errors import RefusedError, TlsError
from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.client.producer import Producer
from magnetar.client.read_position import START
from magnetar.client.reader_session import ReaderSession
from magnetar.client.rest import RestRefusedError
from tests.support.batch_writer import BatchWriter
from tests.support.minted_secrets import kept, password
from tests.support.secured_broker import SecuredBroker, secured_broker
from tests.support.token_endpoint import token_endpoint

TOPIC = "persistent://public/default/secured"
JAVA = "org.apache.pulsar.client.impl.auth."


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as started:
        yield started


def publish(login: ClientLogin, url: str, topic: str, count: int = 1) -> None:
    with login.lookup(url, 10) as lookup, Producer(lookup, topic) as producer:
        for number in range(count):
            send(producer, number)
        producer.flush()


def send(producer: Producer, number: int) -> None:
    for packed in BatchWriter(producer.name).pack(1, [b"%d" % number], range(number, number + 1)):
        producer.send(*packed)


def test_every_method_logs_in(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token, basic, tls and OAuth 2 publish and are known over REST too (rules 12.2 to 12.4)."""
    trust, own = broker.authority.file, broker.certificate("app")
    monkeypatch.setenv("THE_PASSWORD", broker.password)
    path = broker.token_file("app")
    conf = (
        f"authPlugin={JAVA}AuthenticationToken\nauthParams=token:{broker.token('app')}\ntlsTrustCertsFilePath={trust}\n"
    )
    with token_endpoint() as issuer:
        issuer.answer["access_token"] = broker.token("app")
        key = kept(broker.directory, "oauth2.json", json.dumps({"client_id": "app", "client_secret": password()}))
        logins = (
            ClientLogin(token=f"file:{path}", trust=trust),
            ClientLogin(token=f"command:cat {path}", trust=trust),
            ClientLogin(client_conf=str(kept(broker.directory, "client.conf", conf))),
            ClientLogin(
                auth_plugin=f"{JAVA}AuthenticationBasic",
                auth_params='{"userId": "app", "password": "env:THE_PASSWORD"}',
                trust=trust,
            ),
            ClientLogin(
                auth_plugin=f"{JAVA}AuthenticationTls",
                auth_params=f"tlsCertFile:{own.certificate_file},tlsKeyFile:{own.key_file}",
                trust=trust,
            ),
            ClientLogin(
                auth_plugin=f"{JAVA}oauth2.AuthenticationOAuth2",
                auth_params=json.dumps({"issuerUrl": issuer.url, "privateKey": f"file://{key}"}),
                trust=trust,
            ),
        )
        for number, login in enumerate(logins):
            publish(login, broker.url, f"{TOPIC}-{number}")
            stats = login.rest(broker.web).ask("GET", f"/admin/v2/persistent/public/default/secured-{number}/stats")
            assert stats["msgInCounter"] == 1
        assert len(issuer.asked) == 1


def test_a_token_that_expires_is_replaced_on_the_open_connections(broker: SecuredBroker) -> None:
    """A producer and a reader go on, on the connections that they have (rule 12.6)."""
    topic = f"{TOPIC}-refresh"
    path = broker.token_file("app", 2.0, "short")
    login = ClientLogin(token=f"file:{path}", trust=broker.authority.file)
    with login.lookup(broker.url, 10) as lookup, Producer(lookup, topic) as producer:
        first = producer._connection
        send(producer, 0)
        producer.flush()
        with ReaderSession(lookup, topic, START) as reader:
            reader.flow(10)
            assert len(reader.next_messages()) == 1
            broker.token_file("app", 3600.0, "short")
            shown = first._shown
            deadline = time.monotonic() + 20
            while first._shown == shown or reader.connection._shown == shown:
                assert time.monotonic() < deadline
                reader.messages(0.05)
                first.receive(0.05)
            send(producer, 1)
            producer.flush()
            assert len(reader.next_messages()) == 1
        assert producer._connection is first and not first.closed


def test_a_refusal_says_what_is_missing_and_what_grants_it(broker: SecuredBroker) -> None:
    trust = broker.authority.file
    stranger = broker.login("stranger")
    path = broker.token_file("app", -60, "expired")
    expired = ClientLogin(token=f"file:{path}", trust=trust)
    nobody = ClientLogin(trust=trust)
    for login, problem in (
        (stranger, rf"AuthorizationError: .*the token from file:.*/stranger.*grant-permission {TOPIC} --role ROLE"),
        (expired, "AuthenticationError: Failed to authenticate; this client shows the token from file:.*/expired; has"),
        (nobody, "AuthenticationError: Failed to authenticate; this client shows no credentials"),
    ):
        with login.lookup(broker.url, 3) as lookup, pytest.raises(RefusedError, match=problem) as info:
            lookup.connect(TOPIC)
        assert path.read_text() not in str(info.value)
    for login, problem in (
        (expired, "this client shows the token from file:.*/expired; has it expired"),
        (nobody, "this client shows no credentials"),
        (stranger, "Unauthorized to .*; what this client may do follows from the token from file:.*/stranger"),
    ):
        with pytest.raises(RestRefusedError, match=problem) as refused:
            login.rest(broker.web).ask("GET", "/admin/v2/persistent/public/default/secured/stats")
        assert refused.value.http_status in (401, 403)


def test_credentials_wait_for_the_certificate(broker: SecuredBroker) -> None:
    """Who does not trust the broker sends it nothing."""
    login = ClientLogin(token=f"file:{broker.token_file('app')}")
    with login.lookup(broker.url, 3) as lookup, pytest.raises(TlsError, match="is not trusted"):
        lookup.connect(TOPIC)
    assert UNKNOWN.credentials.method is None


def test_what_was_published_can_be_read(broker: SecuredBroker) -> None:
    login = broker.login("app")
    publish(login, broker.url, f"{TOPIC}-read", 3)
    with login.lookup(broker.url, 10) as lookup:
        assert last_position(lookup, f"{TOPIC}-read").entry == 3
