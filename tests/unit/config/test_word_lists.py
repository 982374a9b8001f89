"""Lists of names in settings: one reading for all of them, with and without Java's brackets."""

from __future__ import annotations

import pytest

from magnetar.config.configuration import load
from magnetar.config.properties import words
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.configured_providers import authentication_service
from magnetar.security.tls.protocol_versions import protocol_versions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("[]", ()),
        (" , ", ()),
        ("a", ("a",)),
        (" [a, b ,,a] ", ("a", "b")),
        ("b,a", ("b", "a")),
        ("[a", ("[a",)),
        ("a]", ("a]",)),
        ("[[a], b]", ("[a]", "b")),
    ],
)
def test_words(text: str, found: tuple[str, ...]) -> None:
    assert words(text) == found


def test_every_list_of_names_is_read_alike() -> None:
    """Roles, providers, issuers and versions of TLS: what one of them takes, all take."""
    roles = Settings(superUserRoles="[root, admin]", proxyRoles="[proxy]")
    assert (roles.super_user_roles, roles.proxy_roles) == (("root", "admin"), ("proxy",))
    assert protocol_versions("[TLSv1.3, TLSv1.2]") == protocol_versions("TLSv1.2,TLSv1.3")
    for listed in ("[one.Provider]", "one.Provider"):
        with pytest.raises(InvalidValueError, match=r"authenticationProviders: 'one\.Provider'"):
            authentication_service(Settings(authenticationEnabled=True, authenticationProviders=listed), SystemClock())


def test_the_time_at_which_a_broker_takes_a_message_is_refused_at_the_start() -> None:
    """It would decide how old messages are, and is not kept with all of them (decision 075)."""
    place = "org.apache.pulsar.common.intercept."
    index, time = f"{place}AppendIndexMetadataInterceptor", f"{place}AppendBrokerTimestampMetadataInterceptor"
    assert load(flags=[f"brokerEntryMetadataInterceptors={index}"]).settings.keeps_message_index
    assert not load(flags=["brokerEntryMetadataInterceptors="]).settings.keeps_message_index
    for listed in (time, f"{index},{time}", "Index"):
        with pytest.raises(InvalidValueError, match="brokerEntryMetadataInterceptors"):
            load(flags=[f"brokerEntryMetadataInterceptors={listed}"])
