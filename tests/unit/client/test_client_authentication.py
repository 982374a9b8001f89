"""Credentials with the official client's names: what they show to a broker, and what they never show."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from magnetar import aio
from magnetar.client.advice import advice
from magnetar.client.aio.authentication import (
    AuthenticationBasic,
    AuthenticationToken,
    SuppliedToken,
    credentials_from,
    tls_from,
)
from magnetar.client.login import ClientLogin
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.protocol import commands as c
from magnetar.security.credentials.method import NOBODY
from magnetar.security.credentials.secret import CredentialsError

JAVA = "org.apache.pulsar.client.impl.auth"
SECRET = "eyJhbGciOi.hunter2"


def test_what_is_shown_to_a_broker(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    shown = [
        (aio.AuthenticationToken(SECRET), "token", SECRET.encode()),
        (aio.AuthenticationToken(f"token:{SECRET}"), "token", SECRET.encode()),
        (aio.AuthenticationToken(f"file://{tmp_path}/token"), "token", SECRET.encode()),
        (aio.AuthenticationToken(lambda: SECRET), "token", SECRET.encode()),
        (aio.AuthenticationBasic("u", SECRET), "basic", f"u:{SECRET}".encode()),
        (aio.AuthenticationBasic("u", SECRET, "mine"), "mine", f"u:{SECRET}".encode()),
        (
            aio.AuthenticationBasic(auth_params_string=f'{{"username": "u", "password": "{SECRET}", "method": "m"}}'),
            "m", f"u:{SECRET}".encode(),
        ),
        (aio.AuthenticationTLS("c.pem", "k.pem"), "tls", b""),
        (aio.Authentication(f"{JAVA}.AuthenticationToken", SECRET), "token", SECRET.encode()),
    ]  # fmt: skip
    for given, method, data in shown:
        assert (given.credentials.method, given.credentials.data()) == (method, data)
        assert SECRET not in f"{given!r} {given.credentials} {given.credentials!r}"
    pair = aio.AuthenticationTLS("c.pem", "k.pem").credentials.key_pair
    assert pair is not None and (pair.certificate, pair.key) == ("c.pem", "k.pem")
    key = '{"issuer_url": "https://i.example", "private_key": "file:///k.json", "audience": "a"}'
    assert aio.AuthenticationOauth2(key).credentials.method == "token"


def test_secrets_that_were_given_do_not_leave_their_process() -> None:
    for given in (aio.AuthenticationToken(SECRET), aio.AuthenticationBasic("u", SECRET), aio.AuthenticationToken(str)):
        with pytest.raises(InvalidValueError, match="does not leave its process"):
            pickle.dumps(given.credentials)


def test_functions_that_give_no_token() -> None:
    """What a function says when it fails may be a secret, too."""

    def fails() -> str:
        raise OSError(SECRET)

    for supply, said in ((fails, "raised OSError"), (lambda: b"x", "returned bytes"), (lambda: "a b", "is no token")):
        with pytest.raises(CredentialsError, match=said) as raised:
            SuppliedToken(supply).data()  # type: ignore[arg-type]
        assert SECRET not in str(raised.value)


def test_what_newcomers_type() -> None:
    for make, said in (
        (lambda: aio.AuthenticationToken(7), "token is a text, and not int"),  # type: ignore[arg-type]
        (lambda: aio.AuthenticationToken(""), "token is empty"),
        (lambda: aio.AuthenticationBasic("u"), "password is a text"),
        (lambda: aio.AuthenticationTLS("c.pem", None), "private_key_path is a text"),  # type: ignore[arg-type]
        (lambda: aio.AuthenticationOauth2("{}"), "privateKey"),
        (lambda: aio.Client("pulsar://h", SECRET), "authentication is str; give ClientLogin, AuthenticationToken"),  # type: ignore[arg-type]
        (lambda: aio.Client("pulsar://h", tls_private_key_file_path="k"), "needs tls_certificate_file_path"),
    ):
        with pytest.raises(InvalidValueError, match=said) as raised:
            make()
        assert SECRET not in str(raised.value)
    with pytest.raises(aio.NotBuiltError, match="Athenz"):
        aio.AuthenticationAthenz("{}")


def test_tls_is_described_once() -> None:
    login = ClientLogin(trust="ca.pem")
    assert tls_from(login, trust=None, insecure=False, host_name=True, key=None, certificate=None) == login.tls
    with pytest.raises(InvalidValueError, match="already"):
        tls_from(login, trust="other.pem", insecure=False, host_name=True, key=None, certificate=None)
    found = tls_from(None, trust="ca.pem", insecure=True, host_name=False, key="k", certificate="c")
    assert found is not None and (found.trust_file, found.verify_host_name, found.key_file) == ("ca.pem", False, "k")
    supplied = SuppliedToken(lambda: SECRET)
    assert credentials_from(supplied) is supplied


def test_a_secret_that_was_given_has_a_name() -> None:
    """Three stars name nothing."""
    for text in (" ", "to ken"):
        with pytest.raises(CredentialsError, match=r"^the (secret|token) that was given is (empty|no token)"):
            AuthenticationToken(text).credentials.data()
    refused = advice(ServerError.AuthenticationError, None, AuthenticationBasic("alice", "secret").credentials)
    assert refused == "this client shows the password that was given of user alice; user or password is wrong"
    shown = advice(ServerError.AuthenticationError, None, AuthenticationToken("x").credentials)
    assert shown == "this client shows the token that was given; has it expired, and is it meant for this broker?"


def test_steps_that_the_code_alone_does_not_say() -> None:
    unsubscribe = advice(ServerError.MetadataError, c.CommandUnsubscribe(1, 1), NOBODY)
    assert unsubscribe is not None and "unsubscribe(force=True)" in unsubscribe
    asked = c.CommandLookupTopic("t", 1, advertised_listener_name="outside")
    listener = advice(ServerError.ServiceNotReady, asked, NOBODY)
    assert listener is not None and "asks for the listener 'outside'" in listener
    assert advice(ServerError.ServiceNotReady, c.CommandLookupTopic("t", 1), NOBODY) is None
    assert advice(ServerError.MetadataError, asked, NOBODY) is None


def test_a_grant_that_is_named_fits_what_was_asked_for() -> None:
    """To the look at partitions before producing the answer was a grant of consume, and to a reserved subscription the
    grant that the role had already."""

    def grant(asked: c.Command) -> str:
        return advice(ServerError.AuthorizationError, asked, NOBODY) or ""

    assert grant(c.CommandProducer("t", 1, 1)).endswith("--role ROLE --actions produce")
    assert "ACTION, which is produce or consume" in grant(c.CommandPartitionedTopicMetadata("t", 1))
    subscribing = grant(c.CommandSubscribe("t", "s", c.SubType.Shared, 1, 1))
    assert "--role ROLE --actions consume; if it has that" in subscribing
    assert subscribing.endswith("namespaces subscription-permission public/default")
