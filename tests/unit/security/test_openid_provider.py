"""Tokens of OpenID Connect issuers: keys found, remembered and rotated, and what an issuer cannot do to the broker."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jwt.algorithms import HMACAlgorithm

from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.configured_providers import authentication_service
from magnetar.security.authentication.openid_provider import OpenIdProvider
from magnetar.security.authentication.provider import Credentials
from magnetar.security.credentials.issuer import WELL_KNOWN
from magnetar.security.identity import Identity
from magnetar.security.openid import issuer_keys
from magnetar.security.openid.issuer_keys import RETRY_SECONDS
from magnetar.security.openid.key_sets import parse
from tests.support.openid_issuer import KEYS_PATH, OPENID_PROVIDER, OpenIdIssuer, openid_issuer, published
from tests.support.signed_tokens import SECRET, ec_key, inline, rsa_key, signed


class ClockAhead(SystemClock):
    """The machine's, some seconds ahead."""

    ahead = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead * 1000


class Judge:
    """The provider of one test."""

    def __init__(self, issuer: OpenIdIssuer, settings: dict[str, Any]) -> None:
        self.issuer = issuer
        self.clock = ClockAhead()
        self.provider = OpenIdProvider.of(Settings(**issuer.settings(**settings)), self.clock)

    async def judged(self, token: str) -> Identity:
        return await self.provider.authenticate(Credentials(token.encode()))

    async def refused(self, token: str) -> str:
        with pytest.raises(AuthenticationError) as found:
            await self.judged(token)
        assert token not in str(found.value)
        return str(found.value)


@pytest.fixture
def issuer() -> Iterator[OpenIdIssuer]:
    with openid_issuer() as found:
        yield found


def judging(issuer: OpenIdIssuer, talk: Callable[[Judge], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        judge = Judge(issuer, settings)
        try:
            await talk(judge)
        finally:
            await judge.provider.close()

    asyncio.run(run())


def test_keys_are_discovered_and_remembered(issuer: OpenIdIssuer) -> None:
    """The role is the subject; logins that come together wait for one fetch."""

    async def talk(judge: Judge) -> None:
        found = await asyncio.gather(*(judge.judged(issuer.token()) for _ in range(20)))
        assert {one.role for one in found} == {"alice"}
        assert found[0].expires_at is not None
        assert (await judge.judged(issuer.token("k2", "ES256"))).role == "alice"
        assert (await judge.judged(issuer.token(aud=["x", "other"]))).role == "alice"
        assert issuer.endpoint.requested == [WELL_KNOWN, KEYS_PATH]

    judging(issuer, talk)


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"iss": "http://elsewhere"}, "issuer is not among"),
        ({"iss": None}, "issuer is not among"),
        ({"iss": ["x"]}, "issuer is not among"),
        ({"aud": "elsewhere"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "no claim exp"),
        ({"iat": None}, "no claim iat"),
        ({"iat": 9_999_999_999}, "issued in the future"),
        ({"nbf": 9_999_999_999}, "does not count yet"),
        ({"sub": None}, "no claim sub"),
        ({"key_id": None}, "no key id"),
        ({"key_id": "k3"}, "has no key of"),
        ({"algorithm": "RS384"}, "another algorithm"),
        ({"algorithm": "PS256"}, "another algorithm"),
        ({"algorithm": "ES256"}, "another algorithm"),
    ],
)
def test_tokens_that_do_not_count(issuer: OpenIdIssuer, claims: dict[str, Any], said: str) -> None:
    async def talk(judge: Judge) -> None:
        assert said in await judge.refused(issuer.token(**claims))

    judging(issuer, talk)


def test_nbf_need_not_be_there(issuer: OpenIdIssuer) -> None:
    """Many issuers leave it out."""

    async def talk(judge: Judge) -> None:
        assert (await judge.judged(issuer.token(nbf=None, groups=["g", "h"]))).role == "g"
        assert "no claim groups" in await judge.refused(issuer.token())

    judging(issuer, talk, openIDRoleClaim="groups")


def test_forgeries(issuer: OpenIdIssuer) -> None:
    claims = {"iss": issuer.url, "aud": "other", "sub": "admin", "iat": 1, "exp": 9_999_999_999}

    async def talk(judge: Judge) -> None:
        for token in (
            signed(claims, SECRET, kid="k1"),
            signed(claims, ec_key("ES384"), "ES384", kid="k2"),
            signed(claims, ec_key("ES256K"), "ES256K", kid="k2"),
            signed(claims, rsa_key(), "RS256", kid="k2"),
            signed(claims, SECRET, kid="k4"),
        ):
            await judge.refused(token)

    judging(issuer, talk)


def test_keys_rotate(issuer: OpenIdIssuer) -> None:
    """A key id that is not known leads to one fetch, and to no other until some time has passed."""

    async def talk(judge: Judge) -> None:
        await judge.judged(issuer.token())
        issuer.publish(published("k9"))
        for number in range(30):
            await judge.refused(issuer.token(f"guess {number}"))
        assert issuer.fetches == 1
        judge.clock.ahead = 301
        found = await asyncio.gather(*(judge.judged(issuer.token("k9")) for _ in range(5)))
        assert len(found) == 5
        assert issuer.fetches == 2
        assert "has no key" in await judge.refused(issuer.token("k1"))
        for number in range(30):
            await judge.refused(issuer.token(f"guess {number}"))
        assert issuer.fetches == 2

    judging(issuer, talk)


def test_how_soon_an_unknown_key_is_asked_for_again(issuer: OpenIdIssuer) -> None:
    """openIDKeyIdCacheMissRefreshSeconds."""

    async def talk(judge: Judge) -> None:
        await judge.judged(issuer.token())
        issuer.publish(published("k9"))
        judge.clock.ahead = 19
        assert "has no key" in await judge.refused(issuer.token("k9"))
        judge.clock.ahead = 21
        assert (await judge.judged(issuer.token("k9"))).role == "alice"

    judging(issuer, talk, openIDKeyIdCacheMissRefreshSeconds=20)


def test_how_far_the_clocks_of_an_issuer_and_a_broker_may_be_apart(issuer: OpenIdIssuer) -> None:
    """openIDAcceptedTimeLeewaySeconds, for a token that has expired and for one that is issued ahead."""
    now = int(time.time())

    async def lenient(judge: Judge) -> None:
        for token in (issuer.token(exp=now - 60), issuer.token(iat=now + 60)):
            assert (await judge.judged(token)).role == "alice"
        assert "expired" in await judge.refused(issuer.token(exp=now - 200))

    async def strict(judge: Judge) -> None:
        assert "expired" in await judge.refused(issuer.token(exp=now - 60))

    judging(issuer, lenient, openIDAcceptedTimeLeewaySeconds=120)
    judging(issuer, strict)


def test_how_long_an_issuer_is_waited_for(issuer: OpenIdIssuer) -> None:
    """The larger of openIDHttpConnectionTimeoutMillis and openIDHttpReadTimeoutMillis, in all."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        async def talk(judge: Judge) -> None:
            refused = await asyncio.wait_for(judge.refused(issuer.token(iss=url)), 8)
            assert "keys" in refused

        judging(
            issuer, talk, openIDAllowedTokenIssuers=url,
            openIDHttpConnectionTimeoutMillis=20, openIDHttpReadTimeoutMillis=40,
        )  # fmt: skip


def test_whose_certificates_an_issuer_may_show(issuer: OpenIdIssuer, tmp_path: Path) -> None:
    """openIDTokenIssuerTrustCertsFilePath is what an issuer's certificate is held against."""
    missing = str(tmp_path / "trust.pem")
    url = issuer.url.replace("http://", "https://")

    async def talk(judge: Judge) -> None:
        assert "keys" in await judge.refused(issuer.token(iss=url))

    with pytest.MonkeyPatch.context() as patched:
        asked: list[str | None] = []

        def ask(request: object, url: str, trust: str | None, deadline: object) -> dict[str, object]:
            asked.append(trust)
            raise OSError("nobody there")

        patched.setattr(issuer_keys, "ask", ask)
        judging(issuer, talk, openIDAllowedTokenIssuers=url, openIDTokenIssuerTrustCertsFilePath=missing)
        judging(issuer, talk, openIDAllowedTokenIssuers=url)
    assert set(asked) == {missing, None}


def test_keys_grow_old(issuer: OpenIdIssuer) -> None:
    """They are fetched again in the background, and do not count any more when that failed for too long."""

    async def talk(judge: Judge) -> None:
        far = issuer.token(exp=9_999_999_999)
        await judge.judged(far)
        judge.clock.ahead = 150
        await judge.judged(far)
        (fetch,) = asyncio.all_tasks() - {asyncio.current_task()}
        await fetch
        assert issuer.fetches == 2
        issuer.endpoint.documents[KEYS_PATH] = {"no": "keys"}
        judge.clock.ahead = 290
        assert (await judge.judged(far)).role == "alice"
        judge.clock.ahead = 500
        assert "cannot be had" in await judge.refused(far)
        issuer.publish(published("k1"))
        assert "cannot be had" in await judge.refused(far), "left alone for a moment"
        judge.clock.ahead += RETRY_SECONDS + 1
        assert (await judge.judged(far)).role == "alice"

    judging(issuer, talk, openIDCacheRefreshAfterWriteSeconds=100, openIDCacheExpirationSeconds=200)


def test_an_issuer_that_failed_is_left_alone_for_a_moment_although_the_clock_is_set_back(issuer: OpenIdIssuer) -> None:
    async def talk(judge: Judge) -> None:
        far = issuer.token(exp=9_999_999_999)
        judge.clock.ahead = 60
        issuer.endpoint.documents[KEYS_PATH] = {"no": "keys"}
        assert "cannot be had" in await judge.refused(far)
        issuer.publish(published("k1"))
        assert "cannot be had" in await judge.refused(far)
        judge.clock.ahead = 0
        assert (await judge.judged(far)).role == "alice"

    judging(issuer, talk, openIDCacheRefreshAfterWriteSeconds=100, openIDCacheExpirationSeconds=200)


@pytest.mark.parametrize(
    ("path", "document", "said"),
    [
        (WELL_KNOWN, {"issuer": "http://elsewhere", "jwks_uri": "http://127.0.0.1:1/"}, "of another issuer"),
        (WELL_KNOWN, b"[]", "no JSON object"),
        (WELL_KNOWN, b"[" * 100_000, "no JSON object"),
        (WELL_KNOWN, b"x" * (1 << 21), "more than 1048576 bytes"),
        (WELL_KNOWN, {"jwks_uri": "file:///etc/passwd"}, "jwks_uri is no https:// or http:// address"),
        (WELL_KNOWN, {"jwks_uri": 7}, "jwks_uri is no"),
        (WELL_KNOWN, {"jwks_uri": "http://127.0.0.1:1/"}, "does not answer"),
        (KEYS_PATH, {}, "no key set"),
        (KEYS_PATH, {"keys": "x"}, "no key set"),
    ],
)
def test_what_an_issuer_cannot_do(
    issuer: OpenIdIssuer, caplog: pytest.LogCaptureFixture, path: str, document: Any, said: str
) -> None:
    if isinstance(document, dict) and path == WELL_KNOWN:
        document = {"issuer": issuer.url, **document}
    issuer.endpoint.documents[path] = document
    caplog.set_level(logging.WARNING)

    async def talk(judge: Judge) -> None:
        for _ in range(3):
            assert await judge.refused(issuer.token()) == f"the keys of {issuer.url} cannot be had, see the log"

    judging(issuer, talk)
    (record,) = caplog.records
    assert said in record.getMessage()


def test_an_issuer_that_breaks_off_in_the_middle_of_http_is_left_alone(
    issuer: OpenIdIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.endpoint.headers = {"x": "y" * 70_000}
    caplog.set_level(logging.WARNING)

    async def talk(judge: Judge) -> None:
        for _ in range(3):
            assert await judge.refused(issuer.token()) == f"the keys of {issuer.url} cannot be had, see the log"

    judging(issuer, talk)
    assert issuer.endpoint.discoveries == 1
    (record,) = caplog.records
    assert "does not answer in HTTP: LineTooLong" in record.getMessage()


def test_keys_of_a_set_that_count() -> None:
    secret = json.loads(HMACAlgorithm.to_jwk(SECRET))
    good = published("good")
    listed = [
        {**secret, "kid": "secret", "alg": "HS256"}, {**secret, "kid": "no algorithm"},
        published("for encryption", use="enc"), published("operation", key_ops=["sign"]),
        published("operations", key_ops=None), published("one operation", key_ops="verify"),
        published("PS", alg="PS256"), published("mixed", alg="ES256"), published("none", alg="none"),
        published("strange", alg=["RS256"]), published("small", n="AQAB"), published("broken", n=5),
        published("no modulus", n=None), published("x" * 2000), {"kid": 7}, "key", None, good,
        published("good", "ES256"), {**published("any"), "alg": "RS512"}, {"kty": "RSA", "kid": "empty"},
    ]  # fmt: skip
    found = parse({"keys": listed})
    assert set(found) == {"good", "any"}
    assert found["good"].algorithms == ("RS256",)
    assert found["any"].algorithms == ("RS512",)
    free = published("free")
    del free["alg"]
    assert parse({"keys": [free]})["free"].algorithms == ("RS256", "RS384", "RS512")
    private = {**published("private", "ES256"), "d": "AQAB"}
    assert "private" not in repr(type(parse({"keys": [private]})["private"].key)).lower()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"openIDAllowedTokenIssuers": ""}, "needs openIDAllowedTokenIssuers"),
        ({"openIDAllowedAudiences": " , "}, "needs openIDAllowedAudiences"),
        ({"openIDFallbackDiscoveryMode": "KUBERNETES_DISCOVER_PUBLIC_KEYS"}, "is not available; list the issuer"),
        ({"openIDRequireIssuersUseHttps": True}, "is no https:// address"),
        ({"openIDAllowedTokenIssuers": "file:///x"}, "is no https:// or http:// address"),
    ],
)
def test_settings_that_refuse_the_start(issuer: OpenIdIssuer, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        OpenIdProvider.of(Settings(**issuer.settings(**settings)), SystemClock())


def test_beside_tokens_of_ones_own(issuer: OpenIdIssuer) -> None:
    """Both providers of the method token are asked in turn."""
    both = f"org.apache.pulsar.broker.authentication.AuthenticationProviderToken,{OPENID_PROVIDER}"
    settings = Settings(**issuer.settings(authenticationProviders=both, tokenSecretKey=inline(SECRET)))

    async def run() -> None:
        service = authentication_service(settings, SystemClock())
        assert service is not None
        assert service.methods == ("token",)
        for token, role in ((issuer.token(), "alice"), (signed({"sub": "bob"}), "bob")):
            assert (await service.authenticate("token", Credentials(token.encode()))).role == role
        with pytest.raises(AuthenticationError):
            await service.authenticate("token", Credentials(b"bad"))
        await service.close()

    asyncio.run(run())
