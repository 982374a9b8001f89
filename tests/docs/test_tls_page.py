"""Every snippet of docs/security.md about TLS: brokers start with these lines, and its client reaches them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers import magnetar

from magnetar.config.configuration import load
from magnetar.config.settings_list import settings_list
from tests.support.certificates import Authority, Issued, trust_store
from tests.support.snippets import ROOT, Snippet, snippets

PAGE = "docs/security.md"
PLACE = "/etc/magnetar"
_PORT = re.compile(r"^(\w+Port(?:Tls)?)=\d+$", re.MULTILINE)


def of_tls() -> list[Snippet]:
    text = (ROOT / PAGE).read_text()
    begin = text.index("\n## TLS\n")
    end = text.index("\n## ", begin + 1)
    first, last = (text.count("\n", 0, at) for at in (begin, end))
    return [one for one in snippets() if one.file == PAGE and first < one.line < last]


DOORS, CLOSED, CLIENT, CERTIFICATES, STORES, CIPHERS = of_tls()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the page calls /etc/magnetar, with all files that it names."""
    directory = tmp_path_factory.mktemp("etc")
    authority = Authority(directory)
    shown = authority.issue("broker")
    shown.key_store(directory / "broker.p12", "changeit", authority.certificate)
    trust_store(directory / "authorities.p12", "changeit", authority.certificate)
    own(directory, authority)
    return directory


def own(directory: Path, authority: Authority) -> Issued:
    return authority.issue("client")


def file(place: Path, *parts: Snippet) -> Path:
    """A configuration of these snippets, with ports that are free."""
    lines = [_PORT.sub(r"\1=0", part.text).replace(PLACE, str(place)) for part in parts]
    found = place / "broker.conf"
    found.write_text("\n".join(lines))
    return found


def test_the_page_has_the_snippets_that_are_tried_here() -> None:
    assert CLIENT.language == "python"
    assert [one.language for one in (DOORS, CLOSED, CERTIFICATES, STORES, CIPHERS)] == [""] * 5


@pytest.mark.parametrize(
    "parts",
    [(DOORS,), (DOORS, CLOSED), (DOORS, CLOSED, CERTIFICATES, CIPHERS), (CLOSED, STORES)],
    ids=["doors", "no plain ports", "certificates demanded", "key stores"],
)
def test_the_client_of_the_page_reaches_a_broker_with_these_lines(
    place: Path, tmp_path: Path, parts: tuple[Snippet, ...]
) -> None:
    given = file(place, *parts)
    if STORES in parts:
        given.write_text(given.read_text() + "\nbrokerServicePortTls=0\n")
    free = {"webServicePort": ""} if CLOSED in parts else {"brokerServicePort": "0", "webServicePort": "0"}
    with magnetar.start(tmp_path, configuration=str(given), settings=free) as broker:
        assert (broker.broker_port == 0) == (CLOSED in parts)
        program = CLIENT.text.replace(PLACE, str(place)).replace("6651", str(broker.tls_port))
        if CERTIFICATES in parts:
            shown = f'    authentication=pulsar.AuthenticationTLS("{place}/client.pem", "{place}/client.key.pem"),\n)'
            program = re.sub(r"\n\)\s*$", "\n" + shown, program)
        known: dict[str, Any] = {}
        exec(compile(program, CLIENT.where, "exec"), known)
        client = known["client"]
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"m")
        assert consumer.receive(10_000).data() == b"m"
        client.close()
    assert pulsar is known["pulsar"]


def test_the_password_of_the_page_is_not_shown(place: Path) -> None:
    loaded = load(file=file(place, STORES), flags=["brokerServicePortTls=0"])
    assert loaded.settings.tlsKeyStorePassword == "changeit"
    assert "changeit" not in "\n".join(settings_list(loaded))
