"""Pulsar's authPlugin and authParams in all the forms that users have, and client.conf."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.basic import BasicCredentials
from magnetar.security.credentials.certificate import CertificateCredentials
from magnetar.security.credentials.client_conf import ConfiguredCredentials, read_client_conf
from magnetar.security.credentials.method import NOBODY, CertificateFiles, ClientCredentials
from magnetar.security.credentials.oauth2 import OAuth2Credentials
from magnetar.security.credentials.plugin import absolute_params, credentials_of
from magnetar.security.credentials.secret import CredentialsError, Secret
from magnetar.security.credentials.token import TokenCredentials
from tests.support.minted_secrets import kept, password, signing_key, token

JAVA = "org.apache.pulsar.client.impl.auth."
TOKEN, BASIC, TLS = (f"{JAVA}Authentication{name}" for name in ("Token", "Basic", "Tls"))
OAUTH2 = f"{JAVA}oauth2.AuthenticationOAuth2"


def read(plugin: str, params: str, *, inline: bool = False) -> ClientCredentials:
    return credentials_of(plugin, params, "authParams", inline=inline)


def test_a_token_goes_into_connect_and_into_a_header(tmp_path: Path) -> None:
    """Its bytes on the wire, Bearer over HTTP (rule 12.2)."""
    minted = token("app", signing_key())
    path = kept(tmp_path, "token", minted + "\n")
    for params in (f"file://{path}", f"file:{path}", f'{{"token": "file:{path}"}}'):
        for plugin in (TOKEN, "token", "AuthenticationToken"):
            found = read(plugin, params)
            assert found == TokenCredentials(Secret("file", str(path)))
            assert (found.method, found.data(), found.key_pair) == ("token", minted.encode(), None)
            assert found.headers() == {"authorization": f"Bearer {minted}", "X-Pulsar-Auth-Method-Name": "token"}
            assert pickle.loads(pickle.dumps(found)) == found
            assert str(path) in str(found)
    for params in (f"token:{minted}", minted, json.dumps({"token": minted})):
        found = read(TOKEN, params, inline=True)
        assert found.data() == minted.encode()
        assert minted not in f"{found} {found!r}"


def test_a_user_with_a_password(tmp_path: Path) -> None:
    """user:password on the wire, Basic over HTTP (rule 12.3)."""
    value = password()
    path, pair = kept(tmp_path, "password", value), kept(tmp_path, "pair", f"admin:{value}")
    forms = (
        json.dumps({"userId": "admin", "password": f"file:{path}"}),
        f"file:{pair}",
        f"userId:admin,password:file:{path}",
    )
    for params in forms:
        found = read(BASIC, params)
        assert found.data() == f"admin:{value}".encode()
        assert found.headers()["authorization"] == "Basic " + base64.b64encode(f"admin:{value}".encode()).decode()
    named = read(BASIC, json.dumps({"username": "admin", "password": value, "method": "mine"}), inline=True)
    assert (named.method, named.data()) == ("mine", f"admin:{value}".encode())
    assert isinstance(named, BasicCredentials) and value not in f"{named} {named!r}"
    with pytest.raises(CredentialsError, match="is not user:password"):
        read(BASIC, f"file:{path}").data()


@pytest.mark.parametrize(
    ("params", "meant"),
    [
        ("tlsCertFile:c.pem,tlsKeyFile:k.pem", "tlsCertFile:/here/c.pem,tlsKeyFile:/here/k.pem"),
        ("tlsCertFile:/c.pem, tlsKeyFile:file://k.pem", "tlsCertFile:/c.pem,tlsKeyFile:/here/k.pem"),
        ('{"tlsCertFile": "c.pem", "tlsKeyFile": "/k.pem"}', '{"tlsCertFile": "/here/c.pem", "tlsKeyFile": "/k.pem"}'),
        ("tlsCertFile:,tlsKeyFile:/k.pem", "tlsCertFile:,tlsKeyFile:/k.pem"),
        ("file://a%20b", "file:/here/a b"),
        ("${file:t}", "file:/here/t"),
        ("file:///t", "file:///t"),
        ("command:bin/token --of 'me'", "command:/here/bin/token --of 'me'"),
        ("command:token bin/x", "command:token bin/x"),
        ("env:TOKEN", "env:TOKEN"),
        ("userId:me,password:file:p", "userId:me,password:file:/here/p"),
        ('{"privateKey": "bm8gcGF0aA"}', '{"privateKey": "bm8gcGF0aA"}'),
        ('{"privateKey": "file://k.json"}', '{"privateKey": "file:/here/k.json"}'),
        ('{"issuerUrl": "https://i", "privateKey": "data:x"}', '{"issuerUrl": "https://i", "privateKey": "data:x"}'),
        ('{"no JSON', '{"no JSON'),
        ("", ""),
    ],
)
def test_files_by_their_absolute_paths(params: str, meant: str) -> None:
    """What names no relative file stays as it was written."""
    assert absolute_params(params, lambda path: f"/here/{path}") == meant


@pytest.mark.parametrize("name", ["privateKey", "private_key"])
def test_a_private_key_is_a_path_where_there_is_that_file(name: str, tmp_path: Path) -> None:
    """Any other text may be the key itself: it was kept as a path, with the key in it."""
    (tmp_path / "k.json").write_text("{}")
    for given, meant in (("k.json", f"{tmp_path}/k.json"), ("bm8gcGF0aA", "bm8gcGF0aA"), ("a" * 9000, "a" * 9000)):
        found = absolute_params(json.dumps({name: given}), lambda path: str(tmp_path / path))
        assert json.loads(found) == {name: meant}


def test_an_absolute_path_with_a_comma_is_one_parameter() -> None:
    found = absolute_params("tlsCertFile:c,tlsKeyFile:k", lambda path: f"/a,b/{path}")
    assert json.loads(found) == {"tlsCertFile": "/a,b/c", "tlsKeyFile": "/a,b/k"}


def test_a_certificate_is_the_login(tmp_path: Path) -> None:
    """Nothing but the method's name on the wire (rule 12.4)."""
    for params in (
        "tlsCertFile:/c.pem,tlsKeyFile:/k.pem",
        "tlsCertFile:file:///c.pem, tlsKeyFile:file:///k.pem",
        json.dumps({"tlsCertFile": "/c.pem", "tlsKeyFile": "/k.pem"}),
    ):
        found = read(TLS, params)
        assert isinstance(found, CertificateCredentials)
        assert (found.key_pair, found.method, found.data()) == (CertificateFiles("/c.pem", "/k.pem"), "tls", b"")


def test_parameters_of_oauth2_by_the_names_of_java_and_of_cpp() -> None:
    java = {"type": "client_credentials", "issuerUrl": "https://a.example/", "privateKey": "file:///k", "audience": "u"}
    cpp = {"issuer_url": "https://a.example", "private_key": "/k", "audience": "u"}
    wanted = OAuth2Credentials("https://a.example", Secret("file", "/k"), audience="u")
    assert read(OAUTH2, json.dumps(java)) == read(OAUTH2, json.dumps(cpp)) == wanted
    pair = {"issuer_url": "https://a.example", "client_id": "me", "client_secret": "env:MINE"}
    assert read(OAUTH2, json.dumps(pair)) == OAuth2Credentials("https://a.example", Secret("env", "MINE"), "me")


def test_an_inline_secret_is_refused_where_it_would_be_shown() -> None:
    value = password()
    data = "data:application/json;base64," + base64.b64encode(json.dumps({"client_secret": value}).encode()).decode()
    issuer = {"issuerUrl": "https://a.example"}
    for plugin, params in (
        (TOKEN, f"token:{value}"),
        (TOKEN, value),
        (TOKEN, json.dumps({"token": value})),
        (BASIC, json.dumps({"userId": "admin", "password": value})),
        (BASIC, f"userId:admin,password:{value}"),
        (OAUTH2, json.dumps({**issuer, "privateKey": data})),
        (OAUTH2, json.dumps({**issuer, "client_id": "me", "client_secret": value})),
    ):
        with pytest.raises(InvalidValueError, match=r"authParams.*env:NAME, file:/path or command:") as info:
            read(plugin, params)
        assert value not in str(info.value) and data not in str(info.value)
        if data not in params:
            read(plugin, params, inline=True)


def test_a_secret_that_is_never_used_is_refused_where_it_would_be_shown() -> None:
    value = password()
    for plugin, params in (
        (OAUTH2, json.dumps({"issuerUrl": "https://a.example", "privateKey": "/k", "client_secret": value})),
        (f"{JAVA}AuthenticationDisabled", value),
        (TLS, f"tlsCertFile:/c.pem,tlsKeyFile:data:,{value}"),
    ):
        with pytest.raises(InvalidValueError, match=r"authParams") as info:
            read(plugin, params)
        assert value not in str(info.value)


def test_what_cannot_be_used_is_named() -> None:
    value = password()
    for plugin, params, problem in (
        ("", value, "no meaning without the class"),
        ("com.example.Own", value, "not known here; there are AuthenticationToken,"),
        (f"{JAVA}AuthenticationSasl", value, "no login by Kerberos"),
        (TOKEN, "", "names no token"),
        (TOKEN, f"{{{value}", "begins like JSON and is none"),
        (BASIC, value, "userId"),
        (BASIC, json.dumps({"userId": value}), "userId"),
        (BASIC, json.dumps({"userId": [value]}), "names to texts"),
        (TLS, "tlsCertFile:/c.pem", "tlsKeyFile:/path/key.pem"),
        (OAUTH2, json.dumps({"issuerUrl": "https://a.example"}), "names no privateKey"),
        (OAUTH2, json.dumps({"type": value}), "only type client_credentials"),
        (OAUTH2, json.dumps({"issuerUrl": "http://a.example", "privateKey": "/k"}), "over https only"),
        (OAUTH2, json.dumps({"issuerUrl": "ftp://a.example", "privateKey": "/k"}), "must be an address as https://"),
        (OAUTH2, json.dumps({"issuerUrl": "https://a:b", "privateKey": "/k"}), "must be an address as https://"),
        (OAUTH2, json.dumps({"issuerUrl": "https://u:p@a", "privateKey": "/k"}), "must be an address as https://"),
        (OAUTH2, json.dumps({"issuerUrl": "https://a", "privateKey": f"data:x,{value}"}), "begins with data:"),
    ):
        with pytest.raises(InvalidValueError, match=problem) as info:
            read(plugin, params, inline=True)
        assert value not in str(info.value)
    assert read("", "") is NOBODY and read(f"{JAVA}AuthenticationDisabled", "") is NOBODY
    assert NOBODY.data() is None and NOBODY.headers() == {}


def test_a_client_conf_is_a_reference_itself(tmp_path: Path) -> None:
    """What stands in the file counts at each connection, and is not shown."""
    key = signing_key()
    first, second = token("first", key), token("second", key)
    lines = (
        "# as pulsar-admin reads it",
        "webServiceUrl=https://a:8443/",
        "brokerServiceUrl=pulsar+ssl://a:6651/",
        f"authPlugin={TOKEN}",
        f"authParams=token:{first}",
        "tlsAllowInsecureConnection=false",
        "tlsEnableHostnameVerification=false",
        "tlsTrustCertsFilePath=/ca.pem",
        "tlsCertificateFilePath=/c.pem",
        "tlsKeyFilePath=/k.pem",
    )
    path = kept(tmp_path, "client.conf", "\n".join(lines))
    conf = read_client_conf(str(path))
    assert (conf.broker_url, conf.rest_url) == ("pulsar+ssl://a:6651/", "https://a:8443/")
    assert (conf.trust, conf.insecure, conf.key_pair) == ("/ca.pem", False, CertificateFiles("/c.pem", "/k.pem"))
    assert first not in repr(conf)
    shared = pickle.loads(pickle.dumps(ConfiguredCredentials(str(path))))
    assert (shared.method, shared.data()) == ("token", first.encode())
    path.write_text("\n".join(lines).replace(first, second))
    assert shared.data() == second.encode()
    assert shared.headers()["authorization"] == f"Bearer {second}"
    path.write_text(f"authParams={second}")
    with pytest.raises(CredentialsError, match="no meaning without the class") as info:
        shared.data()
    assert second not in str(info.value) and str(path) in str(info.value)
    path.write_text("useKeyStoreTls=true")
    with pytest.raises(InvalidValueError, match="useKeyStoreTls"):
        read_client_conf(str(path))
    with pytest.raises(InvalidValueError, match="cannot be read on this machine"):
        read_client_conf(str(tmp_path / "none"))
