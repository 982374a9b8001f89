"""Lookup: which broker serves a topic, how many partitions it has (rules of group 2), and connections to these brokers.

A lookup goes to a broker of the service URL. Its answer is final ("connect"), or names another broker to ask
("redirect"), or fails. Who asks by TLS takes addresses with TLS only (rule 2.6). A broker behind a proxy is reached
through the address that was asked, by naming it in CONNECT.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from magnetar.client.address import Address, parse_service_url
from magnetar.client.connection import DEFAULT_TIMEOUT, Connection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError, WrongPortError
from magnetar.client.lookup_answer import (
    REDIRECTS_MAX,
    Route,
    lookup_refusal,
    named_broker,
    partitions_refusal,
    route_to,
    too_many_redirects,
)
from magnetar.protocol import commands as c
from magnetar.runtime.clock import steady_seconds
from magnetar.security.credentials.method import NOBODY, ClientCredentials
from magnetar.security.credentials.secret import CredentialsDelayedError

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


class Lookup:
    """The lookup of one service URL, for one thread. It holds one connection for questions and owns no other."""

    def __init__(
        self,
        service_url: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        credentials: ClientCredentials = NOBODY,
        tls: ClientTls | None = None,
    ) -> None:
        self._addresses = parse_service_url(service_url)
        self._credentials = credentials
        self._tls = tls
        self.timeout = timeout
        self.name = service_url
        self._asked: Connection | None = None

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection for questions; the next question opens another."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    def reach(self) -> None:
        """Connect and log in, as often as it takes within the timeout. Raises ClientError with the last reason."""
        self.patiently(self._question)

    def connect(self, topic: str) -> Connection:
        """Return a new connection to the broker that serves ``topic`` now; the caller owns it."""
        route = self.patiently(lambda: self.route(topic))
        return self._open(route.address, route.proxy_to)

    def _open(self, address: Address, proxy_to: str | None = None) -> Connection:
        return Connection(
            address, timeout=self.timeout, credentials=self._credentials, proxy_to=proxy_to, tls=self._tls
        )

    def route(self, topic: str) -> Route:
        """Ask until a broker says that it serves the topic."""
        connection, owned, authoritative = self._question(), False, False
        try:
            for _ in range(REDIRECTS_MAX):
                asked = c.CommandLookupTopic(topic, connection.new_request_id(), authoritative)
                answer = connection.request(asked, c.CommandLookupTopicResponse, f"look up {topic}")
                refusal = lookup_refusal(answer)
                if refusal is not None:
                    raise connection.refused(f"look up {topic}", refusal, answer.message, asked)
                found = named_broker(answer, connection.address, topic)
                if answer.response is c.LookupType.Connect:
                    return route_to(found, connection.address, answer)
                if owned:
                    connection.close()
                connection = self._open(found)
                owned, authoritative = True, answer.authoritative
        finally:
            if owned:
                connection.close()
        raise too_many_redirects(topic)

    def partition_count(self, topic: str, *, create: bool = True) -> int:
        """Return the number of partitions, 0 for a topic without; ``create`` lets the broker make a topic that is
        missing (rule 2.8)."""

        def ask() -> int:
            connection = self._question()
            what = f"ask for the partitions of {topic}"
            asked = c.CommandPartitionedTopicMetadata(
                topic, connection.new_request_id(), metadata_auto_creation_enabled=create
            )
            answer = connection.request(asked, c.CommandPartitionedTopicMetadataResponse, what)
            refusal = partitions_refusal(answer)
            if refusal is not None:
                raise connection.refused(what, refusal, answer.message, asked)
            return answer.partitions or 0

        return self.patiently(ask)

    def topics_of(self, namespace: str) -> list[str]:
        """Return all persistent topics of a namespace, each partition as a topic of its own."""

        def ask() -> list[str]:
            connection = self._question()
            answer = connection.request(
                c.CommandGetTopicsOfNamespace(connection.new_request_id(), namespace),
                c.CommandGetTopicsOfNamespaceResponse,
                f"ask for the topics of {namespace}",
            )
            return list(answer.topics)

        return self.patiently(ask)

    def schema(self, topic: str, version: bytes | None) -> c.CommandGetSchemaResponse:
        """Return what the schema registry has of a topic (rule 10.9); None asks for the latest version."""

        def ask() -> c.CommandGetSchemaResponse:
            connection = self._question()
            return connection.request(
                c.CommandGetSchema(connection.new_request_id(), topic, version),
                c.CommandGetSchemaResponse,
                f"ask for the schema of {topic}",
            )

        return self.patiently(ask)

    def patiently(self, attempt: Callable[[], Result]) -> Result:
        """Repeat an attempt, with growing pauses, while the broker is away or not ready; then raise the last error.

        That no broker answers is logged once, at INFO: who waits at a terminal wants to know.
        """
        deadline = steady_seconds() + self.timeout
        said = False
        pause = _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except (ConnectionLostError, ClientTimeoutError, RefusedError, CredentialsDelayedError) as error:
                self.close()
                if isinstance(error, WrongPortError) or (isinstance(error, RefusedError) and not error.retriable):
                    raise
                if steady_seconds() + pause > deadline:
                    raise
                if not said and not isinstance(error, RefusedError):
                    said = True
                    log.info("%s; trying again for up to %g s", error, self.timeout)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _question(self) -> Connection:
        if self._asked is None or self._asked.closed:
            self._asked = self._first_reachable()
        return self._asked

    def _first_reachable(self) -> Connection:
        lost: ConnectionLostError | None = None
        for address in self._addresses:
            try:
                return self._open(address)
            except ConnectionLostError as error:
                if lost is None or not isinstance(error, WrongPortError):
                    lost = error  # one that is away may be back, and is asked again
        assert lost is not None, "a service URL has at least one address"
        raise lost
