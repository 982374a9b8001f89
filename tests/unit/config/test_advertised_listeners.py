"""Advertised listeners: which addresses a client of which network gets (PIP-61)."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.config.advertised_listeners import advertised_listeners
from magnetar.config.configuration import load
from magnetar.model.errors import InvalidValueError

TWO = "inner:pulsar://10.0.0.1:6650, outer:pulsar://example.org:6650,outer:pulsar+ssl://example.org:6651/"


def test_each_listener_has_an_address_for_each_scheme() -> None:
    found = advertised_listeners(TWO, "")
    assert found.addresses == {
        "inner": {"pulsar": "pulsar://10.0.0.1:6650"},
        "outer": {"pulsar": "pulsar://example.org:6650", "pulsar+ssl": "pulsar+ssl://example.org:6651"},
    }


@pytest.mark.parametrize(
    ("listed", "internal", "scheme", "url"),
    [
        (TWO, "", "pulsar", "pulsar://10.0.0.1:6650"),
        (TWO, "outer", "pulsar", "pulsar://example.org:6650"),
        (TWO, "inner", "pulsar+ssl", "pulsar+ssl://example.org:6651"),
        (TWO, "", "http", ""),
        ("", "", "pulsar", ""),
        ("a:pulsar://[::1]:6650", "", "pulsar", "pulsar://[::1]:6650"),
    ],
)
def test_a_client_that_names_no_listener_gets_the_internal_or_the_first(
    listed: str, internal: str, scheme: str, url: str
) -> None:
    assert advertised_listeners(listed, internal).default(scheme) == url


@pytest.mark.parametrize(
    ("listed", "internal", "reason"),
    [
        ("pulsar://h:1", "", "a listener's name comes first"),
        (":pulsar://h:1", "", "a listener's name comes first"),
        ("x", "", "a listener's name comes first"),
        ("x:pulsar://h", "", "expected name:scheme://host:port"),
        ("x:pulsar://h:0", "", "expected name:scheme://host:port"),
        ("x:pulsar://h:99999", "", "out of range"),
        ("x:kafka://h:1", "", "expected name:scheme://host:port"),
        ("x:pulsar://h:1/y", "", "expected name:scheme://host:port"),
        ("x:pulsar://h:1,x:pulsar://h:2", "", "the listener x has two addresses with pulsar"),
        ("x:pulsar://h:1,y:pulsar+ssl://h:1", "", "the listener x has the same host and port"),
        ("x:pulsar://h:1", "z", "internalListenerName: 'z' is no listener of advertisedListeners, which has x"),
        ("", "z", "which has none: it is empty"),
        ("x" * 100_000, "", "a listener's name comes first"),
    ],
)
def test_what_cannot_be_an_address_is_refused(listed: str, internal: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError) as refused:
        advertised_listeners(listed, internal)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 500
    file = tmp_path / "broker.conf"
    file.write_text(f"advertisedListeners={listed}\ninternalListenerName={internal}\n")
    with pytest.raises(InvalidValueError, match=r"broker\.conf:[12]: "):
        load(file=file)
