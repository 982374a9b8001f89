"""Who a client of ours says it is: at CONNECT, when it is asked again, and in what it says about refusals."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import pytest

from magnetar.client.address import parse_service_url
from magnetar.client.connection import Connection
from magnetar.client.errors import ConnectionLostError, RefusedError, TlsError
from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.protocol import commands as c
from magnetar.security.credentials.certificate import CertificateCredentials
from magnetar.security.credentials.method import CertificateFiles
from magnetar.security.credentials.secret import CredentialsDelayedError, CredentialsError
from tests.support.minted_secrets import kept, password, signing_key, token
from tests.support.scripted_broker import TOPIC, Link, lookups, scripted_broker
from tests.support.token_endpoint import token_endpoint

EXPIRED = c.CommandAuthChallenge("scripted", c.AuthData("token", b"PulsarAuthRefresh"), 21)
JAVA = "org.apache.pulsar.client.impl.auth."


def connect(url: str, login: ClientLogin) -> Connection:
    return Connection(parse_service_url(url)[0], timeout=5, credentials=login.credentials, tls=login.tls)


def ask(connection: Connection) -> int | None:
    answer = connection.request(
        c.CommandPartitionedTopicMetadata(TOPIC, connection.new_request_id()),
        c.CommandPartitionedTopicMetadataResponse,
        "ask",
    )
    return answer.partitions


def test_a_challenge_is_answered_on_the_open_connection_with_a_token_read_anew(tmp_path: Path) -> None:
    """The request that was under way gets its answer (rule 12.6)."""
    first, second = token("app", signing_key()), token("app", signing_key())
    path = kept(tmp_path, "token", first)

    def script(link: Link) -> None:
        connect = link.greet()
        assert (connect.auth_method_name, connect.auth_data) == ("token", first.encode())
        assert connect.feature_flags is not None and connect.feature_flags.supports_auth_refresh
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        path.write_text(second)
        link.send(EXPIRED)
        answer = link.expect(c.CommandAuthResponse)
        assert answer.response == c.AuthData("token", second.encode())
        link.send(c.CommandPartitionedTopicMetadataResponse(asked.request_id, c.MetadataType.Success, 4))
        link.until_left()

    with scripted_broker(script) as url:
        connection = connect(url, ClientLogin(token=f"file:{path}"))
        assert ask(connection) == 4
        connection.close()


def test_a_challenge_before_the_greeting_is_answered_too(tmp_path: Path) -> None:
    value = password()
    path = kept(tmp_path, "password", f"me:{value}")

    def script(link: Link) -> None:
        assert link.expect(c.CommandConnect).auth_data == f"me:{value}".encode()
        link.send(c.CommandAuthChallenge("scripted", c.AuthData("basic", b"once more"), 21))
        assert link.expect(c.CommandAuthResponse).response == c.AuthData("basic", f"me:{value}".encode())
        link.send(c.CommandConnected("scripted", 21))
        link.until_left()

    with scripted_broker(script) as url:
        login = ClientLogin(auth_plugin=f"{JAVA}AuthenticationBasic", auth_params=f"file:{path}")
        connect(url, login).close()


def test_an_expired_token_of_an_issuer_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    with token_endpoint() as endpoint:
        key = kept(tmp_path, "key.json", f'{{"client_id": "me", "client_secret": "{password()}"}}')
        params = f'{{"issuerUrl": "{endpoint.url}", "privateKey": "file://{key}", "audience": "urn:b"}}'

        def script(link: Link) -> None:
            assert link.greet().auth_data == b"first"
            link.expect(c.CommandPing)
            endpoint.answer["access_token"] = "second"
            link.send(EXPIRED)
            assert link.expect(c.CommandAuthResponse).response == c.AuthData("token", b"second")
            link.send(c.CommandReachedEndOfTopic(1))
            link.until_left()

        with scripted_broker(script) as url:
            connection = connect(url, ClientLogin(auth_plugin=f"{JAVA}oauth2.AuthenticationOAuth2", auth_params=params))
            connection.send(c.CommandPing())
            assert connection.receive(5) == [c.CommandReachedEndOfTopic(1)]
            connection.close()


def test_credentials_that_are_gone_at_a_challenge_close_the_connection(tmp_path: Path) -> None:
    path = kept(tmp_path, "token", token("app", signing_key()))

    def script(link: Link) -> None:
        link.greet()
        link.expect(c.CommandPartitionedTopicMetadata)
        path.unlink()
        link.send(EXPIRED)
        link.until_left()

    with scripted_broker(script) as url:
        connection = connect(url, ClientLogin(token=f"file:{path}"))
        with pytest.raises(ConnectionLostError, match=f"asks for credentials again.*file:{path} cannot be read"):
            ask(connection)
        assert connection.closed


def test_nothing_is_sent_without_credentials(tmp_path: Path) -> None:
    def script(link: Link) -> None:
        link.until_left()

    with scripted_broker(script) as url, pytest.raises(CredentialsError, match="cannot be read"):
        connect(url, ClientLogin(token=f"file:{tmp_path}/none"))


def test_an_issuer_that_is_away_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is treated like a broker that is away."""
    path = kept(tmp_path, "token", token("app", signing_key()))
    login, failures = ClientLogin(token=f"file:{path}"), [CredentialsDelayedError("not now")]
    plain = type(login.credentials).data

    def data(*arguments: object) -> object:
        if failures:
            raise failures.pop()
        return plain(login.credentials)

    monkeypatch.setattr(type(login.credentials), "data", data)

    def nothing(link: Link) -> None:
        link.until_left()

    with scripted_broker(nothing, lookups()) as url, login.lookup(url, 5) as lookup:
        assert lookup.patiently(lambda: lookup.route(TOPIC)).address == parse_service_url(url)[0]


def test_a_refused_login_names_its_reference_and_not_its_value(tmp_path: Path) -> None:
    minted = token("app", signing_key())
    path = kept(tmp_path, "token", minted)
    for login, advice in (
        (UNKNOWN, "shows no credentials: give authPlugin and authParams, or a token"),
        (ClientLogin(token=f"file:{path}"), f"shows the token from file:{path}; has it expired"),
    ):

        def script(link: Link) -> None:
            link.expect(c.CommandConnect)
            link.send(c.CommandError(-1, ServerError.AuthenticationError, "Failed to authenticate"))

        with scripted_broker(script) as url, pytest.raises(RefusedError, match=advice) as info:
            connect(url, login)
        assert "Failed to authenticate" in str(info.value) and minted not in str(info.value)


@pytest.mark.parametrize(
    ("command", "grant"),
    [
        (
            c.CommandProducer(f"{TOPIC}-partition-3", 0, 7),
            f"topics grant-permission {TOPIC} --role ROLE --actions produce",
        ),
        (c.CommandGetLastMessageId(1, 7), "follows from no credentials$"),
        (
            c.CommandGetSchema(7, TOPIC),
            f"topics grant-permission {TOPIC} --role ROLE --actions ACTION, which is produce or consume",
        ),
        (
            c.CommandGetTopicsOfNamespace(7, "public/default"),
            "namespaces grant-permission public/default --role ROLE --actions consume",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_missing_grant_comes_with_the_command_that_gives_it(command: c.Command, grant: str) -> None:
    def script(link: Link) -> None:
        link.greet()
        link.expect(type(command))
        link.send(c.CommandError(7, ServerError.AuthorizationError, "Client is not authorized"))

    with scripted_broker(script) as url:
        connection = connect(url, UNKNOWN)
        with pytest.raises(RefusedError, match=f"Client is not authorized; .*{grant}"):
            connection.request(command, c.CommandSuccess, "do it")
        connection.close()


def test_a_certificate_is_not_a_login_without_tls() -> None:
    def script(link: Link) -> None:
        link.until_left()

    with scripted_broker(script) as url, pytest.raises(TlsError, match=r"over TLS only; write pulsar\+ssl://"):
        credentials = CertificateCredentials(CertificateFiles("/c.pem", "/k.pem"))
        Connection(parse_service_url(url)[0], timeout=5, credentials=credentials)


def test_a_login_travels_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", minted := token("app", signing_key()))
    login = ClientLogin(token="env:A_TOKEN", trust="/ca.pem", verify_host_name=False)
    assert login.credentials.data() == minted.encode()
    sent = pickle.dumps(login)
    assert minted.encode() not in sent
    there = pickle.loads(sent)
    assert there == login and there.credentials.data() == minted.encode()
    assert there.tls is not None and (there.tls.trust_file, there.tls.verify_host_name) == ("/ca.pem", False)
    assert UNKNOWN.tls is None
    conf = kept(tmp_path, "client.conf", "tlsTrustCertsFilePath=/other.pem\ntlsAllowInsecureConnection=true\n")
    tls = ClientLogin(client_conf=str(conf)).tls
    assert tls is not None and (tls.trust_file, tls.allow_insecure, tls.verify_host_name) == ("/other.pem", True, True)
    plugin = f"{JAVA}AuthenticationToken"
    for give, problem in (
        (partial(ClientLogin, token=minted), "token must be a reference"),
        (partial(ClientLogin, token="env:A", auth_plugin=plugin), "either a token or authPlugin"),
        (partial(ClientLogin, auth_plugin=plugin, auth_params=f"token:{minted}"), "authParams must be a reference"),
    ):
        with pytest.raises(InvalidValueError, match=problem) as info:
            give()
        assert minted not in str(info.value)
