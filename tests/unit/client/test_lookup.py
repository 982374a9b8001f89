"""Finding a topic's broker (rules 2.3 to 2.8)."""

from __future__ import annotations

import pytest

from magnetar.client.address import Address
from magnetar.client.errors import ClientError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.lookup_answer import Route
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from tests.support.scripted_broker import TOPIC, Link, lookups, scripted_broker


def test_follows_a_redirect_and_repeats_its_authority() -> None:
    def redirects(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandLookupTopic)
        assert not asked.authoritative
        link.send(c.CommandLookupTopicResponse(asked.request_id, c.LookupType.Redirect, link.url, authoritative=True))

    def serves(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandLookupTopic)
        assert asked.authoritative
        link.send(
            c.CommandLookupTopicResponse(asked.request_id, c.LookupType.Connect, "pulsar://far:7", authoritative=True)
        )

    with scripted_broker(redirects, serves) as url, Lookup(url) as lookup:
        assert lookup.route(TOPIC) == Route(Address("far", 7))


def test_connect_through_a_proxy_names_the_broker() -> None:
    def proxy(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandLookupTopic)
        link.send(
            c.CommandLookupTopicResponse(
                asked.request_id, c.LookupType.Connect, "pulsar://inner:6650", proxy_through_service_url=True
            )
        )

    def proxied(link: Link) -> None:
        assert link.greet().proxy_to_broker_url == "inner:6650"

    with scripted_broker(proxy, proxied) as url, Lookup(url) as lookup:
        lookup.connect(TOPIC).close()


def test_redirects_in_a_circle_end() -> None:
    def circle(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandLookupTopic)
        link.send(c.CommandLookupTopicResponse(asked.request_id, c.LookupType.Redirect, link.url))

    def greets(link: Link) -> None:
        link.greet()

    with (
        scripted_broker(*[circle] * 20, greets) as url,
        Lookup(url) as lookup,
        pytest.raises(ClientError, match="20 redirects"),
    ):
        lookup.route(TOPIC)


def test_waits_for_a_broker_that_is_not_ready() -> None:
    def not_ready(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        assert asked.metadata_auto_creation_enabled is False
        link.send(
            c.CommandPartitionedTopicMetadataResponse(
                asked.request_id, c.MetadataType.Failed, error=ServerError.ServiceNotReady, message="loading"
            )
        )

    def ready(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        link.send(c.CommandPartitionedTopicMetadataResponse(asked.request_id, c.MetadataType.Success, 3))

    with scripted_broker(not_ready, ready) as url, Lookup(url) as lookup:
        assert lookup.partition_count(TOPIC, create=False) == 3


def test_a_refusal_that_waiting_cannot_help_is_not_repeated() -> None:
    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandLookupTopic)
        link.send(
            c.CommandLookupTopicResponse(
                asked.request_id, c.LookupType.Failed, error=ServerError.AuthorizationError, message="not you"
            )
        )

    refusal = pytest.raises(RefusedError, match=f"look up {TOPIC}: AuthorizationError: not you")
    with scripted_broker(script) as url, Lookup(url) as lookup, refusal:
        lookup.connect(TOPIC)


def test_the_second_host_is_tried() -> None:
    with scripted_broker(lookups()) as url:
        address = url.removeprefix("pulsar://")
        lookup = Lookup(f"pulsar://127.0.0.1:1,{address}")
        assert str(lookup.route(TOPIC).address) == address
        lookup.close()
