"""Who reads and writes, as options: Pulsar's names, references instead of secrets, and nothing that shows them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.login_options import LOGIN_TITLES, options_of
from magnetar.spark.options.option_list import OPTIONS
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from tests.support.minted_secrets import kept, signing_key, token

BASE = {"service.url": "pulsar+ssl://localhost:6651", "topic": "t"}
PLUGIN, PARAMS = "pulsar.client.authPluginClassName", "pulsar.client.authParams"
TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def test_options_of_other_connectors_work_as_they_are(tmp_path: Path) -> None:
    minted = token("app", signing_key())
    path = kept(tmp_path, "token", minted)
    given = {
        PLUGIN: TOKEN,
        PARAMS: f"file://{path}",
        "pulsar.client.tlsTrustCertsFilePath": "/ca.pem",
        "pulsar.client.tlsAllowInsecureConnection": "false",
        "pulsar.client.tlsHostnameVerificationEnable": "true",
    }
    for options in (source_options({**BASE, **given}), sink_options({**BASE, **given})):
        there = pickle.loads(pickle.dumps(options)).login
        assert there.credentials.data() == minted.encode()
        assert there.tls is not None and there.tls.trust_file == "/ca.pem"
        assert minted not in repr(options) and minted.encode() not in pickle.dumps(options)
    assert source_options(BASE).login == UNKNOWN


@pytest.mark.parametrize("title", ["token", PARAMS])
@pytest.mark.parametrize("form", ["{0}", "token:{0}"])
def test_an_inline_secret_is_refused_with_the_forms_of_a_reference(title: str, form: str) -> None:
    minted = token("app", signing_key())
    given = {**BASE, title: form.format(minted), **({PLUGIN: TOKEN} if title == PARAMS else {})}
    for check in (source_options, sink_options):
        with pytest.raises(InvalidValueError, match="env:NAME, file:/path or command:PROGRAM ARGUMENTS") as info:
            check(given)
        assert minted not in str(info.value)


def test_a_login_becomes_options_and_options_a_login() -> None:
    assert {title.lower() for title in LOGIN_TITLES} <= set(OPTIONS)
    for login in (
        UNKNOWN,
        ClientLogin(
            token="env:A", trust="/ca", certificate="/c", key="/k", allow_insecure=True, verify_host_name=False
        ),
        ClientLogin(auth_plugin=TOKEN, auth_params="file:/t", client_conf="/client.conf", allow_insecure=False),
    ):
        assert source_options({**BASE, **options_of(login)}).login == login
