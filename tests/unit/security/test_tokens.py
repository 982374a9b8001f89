"""Tokens: keys as Pulsar writes them, forgeries, claims."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.token_provider import TokenProvider
from magnetar.security.identity import Identity
from magnetar.security.tokens.claims import ClaimRules, identify, role_of
from magnetar.security.tokens.key_source import BYTES_MAX, read_key
from magnetar.security.tokens.keys import private_key, public_key, secret_key
from magnetar.security.tokens.validation import TOKEN_MAX, fingerprint, parse
from tests.support.at_once import at_once
from tests.support.signed_tokens import (
    AUDIENCE,
    SECRET,
    Forged,
    assembled,
    ec_key,
    forged,
    inline,
    private_der,
    public_der,
    public_pem,
    rsa_key,
    signed,
)


def judged(token: str | bytes, **settings: Any) -> Identity:
    provider = TokenProvider.of(Settings(**settings), SystemClock())
    data = token if isinstance(token, bytes) else token.encode()
    return at_once(provider.authenticate(Credentials(data)))


STRICT = {"tokenSecretKey": inline(SECRET), "tokenAudienceClaim": "aud", "tokenAudience": AUDIENCE}


@pytest.mark.parametrize("one", list(forged(time.time())), ids=lambda one: one.name)
def test_forged_tokens_are_refused(one: Forged) -> None:
    with pytest.raises(AuthenticationError) as refused:
        judged(one.token, **STRICT)
    text = str(refused.value)
    assert text
    assert len(text) < 200
    assert len(one.token) < 6 or one.token not in text


def test_the_token_that_they_were_made_from_counts() -> None:
    assert judged(signed({"sub": "admin", "aud": AUDIENCE}), **STRICT).role == "admin"
    assert judged(signed({"sub": "admin", "aud": ["x", AUDIENCE]}), **STRICT).role == "admin"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_secret_keys(algorithm: str) -> None:
    assert judged(signed({"sub": "a"}, SECRET, algorithm), tokenSecretKey=inline(SECRET)).role == "a"
    with pytest.raises(AuthenticationError):
        judged(signed({"sub": "a"}, rsa_key(), "RS256"), tokenSecretKey=inline(SECRET))


def test_a_secret_is_long_enough_for_its_algorithms() -> None:
    assert secret_key(bytes(32), "k").algorithms == ("HS256",)
    assert secret_key(bytes(48), "k").algorithms == ("HS384", "HS256")
    with pytest.raises(InvalidValueError, match="tokenSecretKey: a secret of 248 bits; at least 256"):
        judged("x", tokenSecretKey=inline(bytes(31)))
    with pytest.raises(InvalidValueError, match="is tokenPublicKey meant"):
        judged("x", tokenSecretKey=inline(public_pem(rsa_key())))


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_rsa_keys(algorithm: str) -> None:
    key = inline(public_der(rsa_key()))
    assert judged(signed({"sub": "a"}, rsa_key(), algorithm), tokenPublicKey=key).role == "a"
    # its public bytes are no secret
    for public in (public_der(rsa_key()), public_pem(rsa_key())):
        with pytest.raises(AuthenticationError, match="another algorithm"):
            judged(assembled({"alg": "HS256"}, b'{"sub":"a"}', public), tokenPublicKey=key, tokenPublicAlg=algorithm)


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512"])
def test_ec_keys(algorithm: str) -> None:
    key = ec_key(algorithm)
    for public in (public_der(key), public_pem(key)):
        token = signed({"sub": "a"}, key, algorithm)
        assert judged(token, tokenPublicKey=inline(public), tokenPublicAlg=algorithm).role == "a"
        assert judged(token, tokenPublicKey=inline(public)).role == "a"
    with pytest.raises(InvalidValueError, match=f"tokenPublicKey: the key is for {algorithm}, not for 'RS256'"):
        judged("x", tokenPublicKey=inline(public_der(key)), tokenPublicAlg="RS256")


def test_keys_that_no_token_should_have() -> None:
    with pytest.raises(InvalidValueError, match="the curve secp256k1 is not one of"):
        public_key(public_der(ec_key("ES256K")), "", "k")
    with pytest.raises(InvalidValueError, match=r"k: no public key in X\.509"):
        public_key(b"\x30\x03abc", "", "k")
    with pytest.raises(InvalidValueError, match="no public key"):
        public_key(private_der(rsa_key()), "", "k")
    with pytest.raises(InvalidValueError, match="no private key"):
        private_key(public_der(rsa_key()), "", "k")
    assert private_key(private_der(rsa_key()), "PS256", "k").algorithms == ("PS256",)
    assert "SECRET" not in repr(secret_key(b"SECRET" * 6, "k"))


def test_where_keys_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a key"
    file.write_bytes(SECRET)
    encoded = base64.b64encode(SECRET).decode()
    monkeypatch.setenv("KEY", encoded)
    spellings = (
        f"file://{tmp_path}/a%20key", f"file:{file}", f"file://localhost{file}", str(file), f" {encoded} ", "env:KEY",
        f"data:;base64,{encoded}", f"data:application/octet-stream;base64,{encoded}",
    )  # fmt: skip
    for spelling in spellings:
        assert read_key(spelling, "k") == SECRET
    assert read_key("data:,abc%20def", "k") == b"abc def"
    monkeypatch.setenv("KEY", "env:KEY")
    with pytest.raises(InvalidValueError, match="'KEY' is not set"):
        read_key("env:KEY", "k")
    for more in (0, 1):
        file.write_bytes(b"x" * (BYTES_MAX + more))
        if not more:
            assert len(read_key(str(file), "k")) == BYTES_MAX
            continue
        with pytest.raises(InvalidValueError, match=f"more than {BYTES_MAX} bytes"):
            read_key(str(file), "k")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("http://127.0.0.1/key", "neither a file nor base64"),
        ("https://x/key", "neither a file nor base64"),
        ("file://host/key", "names the host 'host'"),
        ("file:///does/not/exist", "cannot read /does/not/exist: No such file"),
        ("/does/not/exist.key", "neither a file nor base64"),
        ("nofile", "no file has this name"),
        ("/etc/no/such/key/that/looks/like/base64/of/thirty/six/bytes", "there is no file /etc/no/such"),
        ("data:;base64,???", "is not base64"),
        ("data:abc", "malformed data: URL"),
        ("env:NO_SUCH_VARIABLE", "'NO_SUCH_VARIABLE' is not set"),
        ("file:///dev/null", "is empty"),
        ("file:///dev/zero", "more than 1048576 bytes"),
        ("", "neither a file nor base64"),
        ("x\0y", "neither a file nor base64"),
    ],
)
def test_places_where_no_key_is(where: str, said: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        read_key(where, "tokenSecretKey")
    assert said in str(refused.value)
    assert str(refused.value).startswith("tokenSecretKey: ")


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    """A broker with one as tokenSecretKey hung in its start without a word."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidValueError, match=f"k: the pipe {tmp_path}/pipe gives nothing"):
        read_key(str(tmp_path / "pipe"), "k")


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(InvalidValueError, match="needs tokenSecretKey or tokenPublicKey"):
        judged("x")
    with pytest.raises(InvalidValueError, match="tokenAudienceClaim: needs tokenAudience"):
        judged("x", tokenSecretKey=inline(SECRET), tokenAudienceClaim="aud")


def test_time() -> None:
    """``exp`` and ``nbf`` count to the second, and the skew moves both (rule 12.2)."""
    rules, skewed = ClaimRules(), ClaimRules(skew_seconds=5)
    claims = {"sub": "a", "exp": 100, "nbf": 50}
    for now, rule, counts in (
        (49.9, rules, False), (50, rules, True), (99.9, rules, True), (100, rules, False),
        (44.9, skewed, False), (45, skewed, True), (104.9, skewed, True), (105, skewed, False),
    ):  # fmt: skip
        if counts:
            assert identify(claims, rule, now, "x").expires_at == 100 + rule.skew_seconds
        else:
            with pytest.raises(AuthenticationError):
                identify(claims, rule, now, "x")
    assert identify({"sub": "a"}, rules, 1e12, "x").expires_at is None
    assert identify({"sub": "a", "exp": 100.5}, rules, 100.2, "x").expires_at == 100.5


@pytest.mark.parametrize("skew", [0, 60])
def test_the_setting_says_how_far_clocks_may_differ(skew: int) -> None:
    token = signed({"sub": "a", "exp": 1000}).encode()
    for seconds, counts in ((999, True), (1000 + skew - 1, True), (1000 + skew, False)):
        clock = SimpleNamespace(now_ms=lambda seconds=seconds: seconds * 1000)
        settings = Settings(tokenSecretKey=inline(SECRET), tokenAllowedClockSkewSeconds=skew)
        provider = TokenProvider.of(settings, clock)
        if counts:
            assert at_once(provider.authenticate(Credentials(token))).expires_at == 1000 + skew
            continue
        with pytest.raises(AuthenticationError, match="has expired"):
            at_once(provider.authenticate(Credentials(token)))


@pytest.mark.parametrize("skew", [0, 5])
def test_when_a_token_was_issued_counts_where_that_is_required_and_nowhere_else(skew: int) -> None:
    """To the second, and the skew moves it."""
    claims = {"sub": "a", "iat": 100}
    required = ClaimRules(skew_seconds=skew, required=("iat",))
    assert identify(claims, required, 100 - skew, "x").role == "a"
    with pytest.raises(AuthenticationError, match="issued in the future"):
        identify(claims, required, 99.9 - skew, "x")
    with pytest.raises(AuthenticationError, match="no claim iat"):
        identify({"sub": "a"}, required, 100, "x")
    for one in (claims, {"sub": "a", "iat": "no time"}):
        assert identify(one, ClaimRules(skew_seconds=skew), 1, "x").role == "a"


def test_roles() -> None:
    """The role is a text, or the first of a list (rule 12.2)."""
    assert role_of("a b@c", "sub") == "a b@c"
    assert role_of(["first", "second"], "roles") == "first"
    assert role_of("x" * 1024, "sub") == "x" * 1024
    for nothing in (None, "", " ", [], [1], [None], 7, {"a": 1}, [["a"]], "a\tb", "a\x7f", "x" * 1025):
        with pytest.raises(AuthenticationError):
            role_of(nothing, "sub")
    assert (
        judged(signed({"sub": "a", "roles": ["r"]}), tokenSecretKey=inline(SECRET), tokenAuthClaim="roles").role == "r"
    )


def test_all_roles_of_a_list_where_they_count() -> None:
    """Each once, in their order; one that is no role spoils the token."""
    rules = ClaimRules("roles", several_roles=True)
    for named, role, others in (
        (["a", "b", "a", "c", "b"], "a", ("b", "c")), (["a"], "a", ()), ("a", "a", ()), (["a", "a"], "a", ()),
    ):  # fmt: skip
        found = identify({"roles": named}, rules, 1, "x")
        assert (found.role, found.other_roles) == (role, others)
    assert identify({"roles": ["a", "b"]}, ClaimRules("roles"), 1, "x").other_roles == ()
    for wrong in (["a", ""], ["a", 7], ["a", None], ["a", ["b"]], ["a", "b\tc"], [f"r{n}" for n in range(101)]):
        with pytest.raises(AuthenticationError):
            identify({"roles": wrong}, rules, 1, "x")


def test_what_a_token_can_be_revoked_by() -> None:
    token = signed({"sub": "a"})
    found = judged(token, tokenSecretKey=inline(SECRET))
    assert (found.token_id, found.subject, found.fingerprint) == (None, "a", fingerprint(token))
    assert judged(signed({"sub": "a", "jti": "7"}), tokenSecretKey=inline(SECRET)).token_id == "7"
    # some issuers number their tokens and users, and the revocation list knows texts
    numbered = judged(signed({"role": "a", "sub": 12, "jti": 7}), tokenSecretKey=inline(SECRET), tokenAuthClaim="role")
    assert (numbered.token_id, numbered.subject) == ("7", "12")
    others: tuple[object, ...] = (7.5, True, None, [7], {})
    for other in others:
        assert judged(signed({"sub": "a", "jti": other}), tokenSecretKey=inline(SECRET)).token_id is None
    assert fingerprint(token) == fingerprint(token[:-1] + "A")


def test_the_longest_token() -> None:
    with pytest.raises(AuthenticationError, match=f"a token of {TOKEN_MAX + 1} bytes; at most {TOKEN_MAX}"):
        parse(b"a" * (TOKEN_MAX + 1))
    token = signed({"sub": "a", "groups": ["g" * 100] * 200})
    assert judged(f"{token}\n", tokenSecretKey=inline(SECRET)).role == "a"
