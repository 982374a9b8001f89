"""A broker that could not judge credentials as it is asked to does not start, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app

PACKAGE = "org.apache.pulsar.broker.authentication"
TOKEN = f"{PACKAGE}.AuthenticationProviderToken"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "broker.conf:1: authenticationEnabled: no client could authenticate: authenticationProviders is empty"),
        (
            ["authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderAthenz"],
            f"broker.conf:2: authenticationProviders: '{PACKAGE}.AuthenticationProviderAthenz' is not available",
        ),
        (
            [f"authenticationProviders=com.example.OwnProvider,{TOKEN}"],
            "broker.conf:2: authenticationProviders: 'com.example.OwnProvider' is not available in magnetar; there are",
        ),
        (
            [f"authenticationProviders={TOKEN}"],
            "broker.conf:2: authenticationProviders: AuthenticationProviderToken needs",
        ),
        (
            [f"authenticationProviders={TOKEN}", "tokenSecretKey=file:///no/such/key"],
            "broker.conf:3: tokenSecretKey: cannot read /no/such/key: No such file or directory",
        ),
        (
            [f"authenticationProviders={TOKEN}", "tokenSecretKey=data:,secret"],
            "broker.conf:3: tokenSecretKey: a secret of 48 bits; at least 256 are needed",
        ),
        (
            [f"authenticationProviders=[{TOKEN}]", "tokenSecretKey=/dev/urandom"],
            "broker.conf:3: tokenSecretKey: /dev/urandom has more than 1048576 bytes",
        ),
        (
            [f"authenticationProviders={PACKAGE}.AuthenticationProviderBasic", "basicAuthConf=/no/such/file"],
            "broker.conf:3: basicAuthConf: ",
        ),
    ],
)
def test_the_start_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("\n".join(["authenticationEnabled=true", *lines]))
    result = CliRunner().invoke(app, ["standalone", "--data", str(tmp_path / "data"), "--conf", str(file)])
    assert result.exit_code == 1
    assert f"magnetar: {tmp_path}/{said}" in result.output
    assert not (tmp_path / "data").exists()
