"""The block ``broker``: logins in all forms, secrets as references only, mistakes at their line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magnetar.client.login import ClientLogin
from magnetar.pipelines.declaration.document import InvalidPipelineError
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.declaration.secrets import resolved_options
from magnetar.spark.options.source_options import source_options
from tests.support.minted_secrets import kept, password
from tests.unit.pipelines.example import changed

URL = "  service.url: pulsar://localhost:6650\n"
JAVA = "org.apache.pulsar.client.impl.auth."


def login(block: str, file: str = "/files/f.yaml") -> ClientLogin:
    return parse(changed(URL, f"  service.url: pulsar+ssl://h\n{block}"), file).login


def problems(block: str) -> str:
    with pytest.raises(InvalidPipelineError) as caught:
        login(block, "f.yaml")
    return str(caught.value)


def test_a_login_in_each_form() -> None:
    assert login("  token: ${file:/run/token}\n") == login("  token: ${file:/run/token}\n")
    assert login("  token: env:TOKEN\n") == ClientLogin(token="env:TOKEN")
    assert login("  client-conf: client.conf\n") == ClientLogin(client_conf="/files/client.conf")
    params = {"userId": "etl", "password": "${env:PW}"}
    assert login("  auth: {user: etl, password: '${env:PW}'}\n") == ClientLogin(
        auth_plugin=f"{JAVA}AuthenticationBasic", auth_params=json.dumps(params)
    )
    found = login("  auth:\n    certificate: c.pem\n    key: /k.pem\n").credentials.key_pair
    assert found is not None and (found.certificate, found.key) == ("/files/c.pem", "/k.pem")
    issuer = "{issuer: 'https://a.example', private-key: 'file:/k.json', audience: 'urn:b', scope: all}"
    assert str(login(f"  auth: {issuer}\n").credentials) == "the token that https://a.example gives for file:/k.json"
    as_pulsar = login(f"  auth:\n    plugin: {JAVA}AuthenticationToken\n    params: file:///run/token\n")
    assert str(as_pulsar.credentials) == "the token from file:/run/token"


def test_tls_in_full() -> None:
    tls = login("  tls: {trust-certs: ca.pem, certificate: c.pem, key: k.pem, verify-host-name: false}\n").tls
    assert tls is not None
    assert (tls.trust_file, tls.certificate_file, tls.key_file) == ("/files/ca.pem", "/files/c.pem", "/files/k.pem")
    assert (tls.verify_host_name, tls.allow_insecure) == (False, False)
    assert login("  tls: {allow-insecure: true}\n").tls != login("").tls


@pytest.mark.parametrize(
    ("block", "where", "problem"),
    [
        ("  token: {0}\n", "f.yaml:4:10: broker.token", "does not belong into a file; write env:NAME"),
        ("  token: '${{vault:{0}}}'\n", "f.yaml:4:10: broker.token", "is no reference"),
        ("  auth: {{user: a, password: {0}}}\n", "f.yaml:4:29: broker.auth.password", "does not belong into a file"),
        ("  auth: {{user: a}}\n", "f.yaml:4:9: broker.auth", "'password' is missing beside 'user'"),
        ("  auth: {{scope: a}}\n", "f.yaml:4:9: broker.auth", "begins with one of the keys plugin, user"),
        ("  auth: {{user: a, password: env:B, key: c}}\n", "f.yaml:4:41: broker.auth.key", "no meaning beside 'user'"),
        (
            "  auth: {{issuer: 'http://a.example', private-key: 'file:/k'}}\n",
            "f.yaml:4:9: broker.auth",
            "over https only",
        ),
        (
            "  auth:\n    plugin: AuthenticationToken\n    params: token:{0}\n",
            "f.yaml:5:5: broker.auth",
            "authParams must be a reference",
        ),
        ("  auth: {{plugin: com.example.Own}}\n", "f.yaml:4:9: broker.auth", "is not known here"),
        ("  token: env:A\n  auth: {{user: a, password: env:B}}\n", "f.yaml:5:9: broker.auth", "either a token or"),
        ("  tls: {{trust: ca.pem}}\n", "f.yaml:4:16: broker.tls.trust", "did you mean 'trust-certs'?"),
        ("  tls: {{verify-host-name: maybe}}\n", "f.yaml:4:27: broker.tls.verify-host-name", "it can be true, false"),
    ],
)
def test_a_mistake_names_its_line_and_never_a_secret(block: str, where: str, problem: str) -> None:
    value = password()
    found = problems(block.format(value))
    assert where in found and problem in found
    if "vault" not in block:
        assert value not in found


def test_a_source_has_no_login_of_its_own() -> None:
    with pytest.raises(InvalidPipelineError, match=r"sources\.flights\.token: .*not known here"):
        parse(changed("    topic: flights\n", "    topic: flights\n    token: env:A\n"), "f.yaml")


def test_what_spark_is_given_has_references_and_no_secret(tmp_path: Path) -> None:
    value = password()
    path = kept(tmp_path, "password", value)
    text = changed(URL, f"  service.url: pulsar://h\n  auth: {{user: etl, password: '${{file:{path}}}'}}\n")
    options = resolved_options(parse(text, "f.yaml").broker())
    assert value not in str(options)
    there = source_options({**options, "topic": "t"})
    assert there.login.credentials.data() == f"etl:{value}".encode()
    assert value not in repr(there)
