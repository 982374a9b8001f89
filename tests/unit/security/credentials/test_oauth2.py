"""Tokens from an issuer: asked for once, replaced in time, and a secret that goes to nobody else."""

from __future__ import annotations

import itertools
import json
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from magnetar.security.credentials import exchange, issuer, oauth2
from magnetar.security.credentials.key_file import ClientKey
from magnetar.security.credentials.oauth2 import OAuth2Credentials
from magnetar.security.credentials.secret import CredentialsDelayedError, CredentialsError, Secret
from tests.support.certificates import Authority
from tests.support.minted_secrets import kept, password
from tests.support.token_endpoint import TokenEndpoint, token_endpoint


def client(endpoint: TokenEndpoint, directory: Path, **more: Any) -> tuple[OAuth2Credentials, str]:
    """The client ``me`` of an issuer, and its secret."""
    secret = password()
    content = {"type": "client_credentials", "client_id": "me", "client_secret": secret, "issuer_url": endpoint.url}
    path = kept(directory, "client.json", json.dumps(content))
    return OAuth2Credentials(None, Secret("file", str(path)), **more), secret


def test_a_token_is_asked_for_once_and_again_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(oauth2, "steady_seconds", lambda: now[0])
    with token_endpoint() as endpoint:
        found, secret = client(endpoint, tmp_path, audience="urn:broker", scope="all")
        assert [found.data() for _ in range(3)] == [b"first"] * 3
        form = {"grant_type": "client_credentials", "client_id": "me", "client_secret": secret}
        assert endpoint.asked == [{**form, "audience": "urn:broker", "scope": "all"}]
        endpoint.answer["access_token"] = "second"
        now[0] += 539
        assert found.data() == b"first"
        now[0] += 2
        assert found.headers()["authorization"] == "Bearer second"
        assert len(endpoint.asked) == endpoint.discoveries == 2


def test_a_token_that_the_broker_calls_stale_is_replaced_once(tmp_path: Path) -> None:
    with token_endpoint() as endpoint:
        found, _ = client(endpoint, tmp_path)
        assert found.data() == b"first"
        endpoint.answer["access_token"] = "second"
        assert [found.data(stale=b"first") for _ in range(5)] == [b"second"] * 5
        assert len(endpoint.asked) == 2


def test_a_key_file_that_changes_counts_at_the_next_request(tmp_path: Path) -> None:
    with token_endpoint() as endpoint:
        found, first = client(endpoint, tmp_path)
        found.data()
        path = tmp_path / "secrets" / "client.json"
        second = password()
        path.write_text(path.read_text().replace(first, second))
        found.data(stale=b"first")
        assert [form["client_secret"] for form in endpoint.asked] == [first, second]
        for content in ("{", "[]", '{"client_id": 1, "client_secret": "x"}', '{"client_id": "x"}'):
            path.write_text(content)
            with pytest.raises(CredentialsError, match="is no key file"):
                found.data(stale=b"first")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(b"9" * 400, 60.0), (b"NaN", 60.0), (b"null", 60.0), (b"-1", 0.0), (b"Infinity", 366 * 86400.0), (b'"7"', 7.0)],
)
def test_whatever_an_issuer_says_of_its_tokens_life_it_has_an_end(said: bytes, seconds: float) -> None:
    with token_endpoint() as endpoint:
        endpoint.answer = b'{"access_token": "t", "expires_in": ' + said + b"}"
        key = ClientKey("me", password())
        found = issuer.request_token(f"{endpoint.url}/token", key, {}, None, exchange.Deadline(10.0))
        assert found == ("t", seconds)


def test_refusals_say_who_refused_and_never_the_secret(tmp_path: Path) -> None:
    with token_endpoint() as endpoint:
        found, secret = client(endpoint, tmp_path)
        cases: tuple[tuple[int, Any, type[CredentialsError], str], ...] = (
            (401, {"error": "invalid_client", "error_description": secret}, CredentialsError, "401, invalid_client$"),
            (400, secret.encode(), CredentialsError, "HTTP status 400$"),
            (503, b"", CredentialsDelayedError, "HTTP status 503$"),
            (200, {"no": "token"}, CredentialsError, "gave no access_token"),
            (200, {"access_token": "a\nb"}, CredentialsError, "is no token"),
            (200, [secret], CredentialsError, "is no JSON object"),
            (200, b"x" * ((1 << 20) + 1), CredentialsError, "more than 1048576 bytes"),
        )
        for endpoint.status, endpoint.answer, kind, problem in cases:
            with pytest.raises(kind, match=problem) as info:
                found.data()
            assert type(info.value) is kind and secret not in str(info.value) and endpoint.url in str(info.value)


def test_the_secret_goes_nowhere_else(tmp_path: Path) -> None:
    """A redirect is not followed, and an issuer cannot name an address without TLS."""
    with token_endpoint() as endpoint, token_endpoint() as thief:
        found, _ = client(endpoint, tmp_path)
        endpoint.status, endpoint.headers = 307, {"location": f"{thief.url}/token"}
        with pytest.raises(CredentialsError, match="HTTP status 307"):
            found.data()
        endpoint.discovery_status, endpoint.headers = 302, {"location": f"{thief.url}{issuer.WELL_KNOWN}"}
        with pytest.raises(CredentialsError, match="HTTP status 302"):
            found.data()
        endpoint.discovery_status = 200
        endpoint.metadata["token_endpoint"] = "http://thief.example/token"
        with pytest.raises(CredentialsError, match="over https only"):
            found.data()
        endpoint.metadata["token_endpoint"] = None
        with pytest.raises(CredentialsError, match="names no token_endpoint"):
            found.data()
        assert (thief.discoveries, thief.asked) == (0, [])


def test_an_issuer_that_is_away_or_slow_may_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 20.0)
    with token_endpoint() as endpoint:
        found, _ = client(endpoint, tmp_path)
        monkeypatch.setattr(exchange, "steady_seconds", lambda: next(seconds))
        with pytest.raises(CredentialsDelayedError, match="it takes too long"):
            found.data()
    with pytest.raises(CredentialsDelayedError, match="does not answer"):
        found.data()


@pytest.mark.parametrize("start", [3, 60], ids=["headers", "body"])
@pytest.mark.parametrize("tls", [False, True])
def test_an_issuer_that_sends_in_drops_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, tls: bool
) -> None:
    """Each drop comes in time, all of them together do not: the deadline is of the whole exchange."""
    authority = Authority(tmp_path / "authority")
    context = None
    if tls:
        right = authority.issue("issuer")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(right.certificate_file, right.key_file)
    with token_endpoint(context) as endpoint:
        found, _ = client(endpoint, tmp_path, trust=authority.file)
        monkeypatch.setattr(oauth2, "PATIENCE", 0.4)
        endpoint.drops = start, 0.02
        with pytest.raises(CredentialsDelayedError, match=r"it takes too long|timed out"):
            found.data()
        endpoint.drops = None
        monkeypatch.undo()
        assert found.data() == b"first"


def test_both_requests_have_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with token_endpoint() as endpoint:
        found, _ = client(endpoint, tmp_path)
        # each request takes ten seconds
        monkeypatch.setattr(exchange, "steady_seconds", lambda: 10.0 * (endpoint.discoveries + len(endpoint.asked)))
        with pytest.raises(CredentialsDelayedError, match="it takes too long"):
            found.data()
        assert (endpoint.discoveries, len(endpoint.asked)) == (1, 1)


def test_a_slow_issuer_delays_nobody_elses_token(tmp_path: Path) -> None:
    with token_endpoint() as slow, token_endpoint() as quick, ThreadPoolExecutor(3) as threads:
        waiting, _ = client(slow, tmp_path / "slow")
        other, _ = client(quick, tmp_path / "quick")
        slow.open.clear()
        both = [threads.submit(waiting.data) for _ in range(2)]
        try:
            assert threads.submit(other.data).result(5) == b"first"
            assert not any(one.done() for one in both)
        finally:
            slow.open.set()
        assert [one.result(10) for one in both] == [b"first"] * 2
        assert len(slow.asked) == 1, "the same credentials ask once"


def test_an_authority_that_does_not_say_what_its_key_is_for_is_trusted(tmp_path: Path) -> None:
    """As by Python 3.12 and the official clients: the default of Python 3.13 is stricter."""
    authority = Authority(tmp_path / "authority", strict=False)
    shown = authority.issue("issuer")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate_file, shown.key_file)
    with token_endpoint(context) as endpoint:
        found, _ = client(endpoint, tmp_path, trust=authority.file)
        assert found.data() == b"first"


def test_an_issuer_with_another_hosts_certificate_gets_no_secret(tmp_path: Path) -> None:
    """Neither does one of an authority that is not trusted (CVE-2022-33684)."""
    authority = Authority(tmp_path / "authority")
    right, wrong = authority.issue("issuer"), authority.issue("elsewhere", ("elsewhere.example",))
    for shown, trust, problem in (
        (right, authority.file, ""),
        (wrong, authority.file, "is not trusted: Hostname mismatch"),
        (right, None, "is not trusted: "),
    ):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown.certificate_file, shown.key_file)
        with token_endpoint(context) as endpoint:
            found, _ = client(endpoint, tmp_path / f"{shown is right}-{trust is None}", trust=trust)
            if not problem:
                assert found.data() == b"first"
                continue
            with pytest.raises(CredentialsError, match=problem):
                found.data()
            assert (endpoint.discoveries, endpoint.asked) == (0, [])
