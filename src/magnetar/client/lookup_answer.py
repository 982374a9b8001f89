"""What a lookup's answers mean (rules 2.4 to 2.8), for the blocking client and the other one."""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.client.address import Address, parse_service_url
from magnetar.client.errors import ClientError
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c

REDIRECTS_MAX: Final = 20


class Route(NamedTuple):
    """How to reach a topic's broker."""

    address: Address
    proxy_to: str | None = None
    """``host:port`` of the broker, if ``address`` is a proxy's."""


def lookup_refusal(answer: c.CommandLookupTopicResponse) -> ServerError | None:
    """Return the error of a lookup that failed."""
    if answer.response in (c.LookupType.Connect, c.LookupType.Redirect):
        return None
    return answer.error or ServerError.UnknownError


def partitions_refusal(answer: c.CommandPartitionedTopicMetadataResponse) -> ServerError | None:
    """Return the error of a question for partitions that failed."""
    if answer.response is c.MetadataType.Failed or answer.error is not None:
        return answer.error or ServerError.UnknownError
    return None


def route_to(found: Address, asked: Address, answer: c.CommandLookupTopicResponse) -> Route:
    """Return the way to the broker that was found, by the proxy that was asked if it says so."""
    return Route(asked, str(found)) if answer.proxy_through_service_url else Route(found)


def too_many_redirects(topic: str) -> ClientError:
    """Return the error of a lookup that brokers pass on without an end."""
    return ClientError(f"look up {topic}: {REDIRECTS_MAX} redirects and no broker; is the cluster moving bundles?")


def named_broker(answer: c.CommandLookupTopicResponse, asked: Address, topic: str) -> Address:
    """Return the address of the answer, with TLS if and only if ``asked`` has it."""
    return broker_address(answer.broker_service_url_tls if asked.tls else answer.broker_service_url, asked, topic)


def broker_address(url: str | None, asked: Address, topic: str) -> Address:
    """Return the address of a broker's URL, with TLS if and only if ``asked`` has it. Raises ClientError."""
    scheme = "pulsar+ssl" if asked.tls else "pulsar"
    found = parse_service_url(url)[0] if url else None
    if found is None or found.tls != asked.tls:
        raise ClientError(f"look up {topic}: the broker at {asked} named no {scheme}:// address")
    return found
