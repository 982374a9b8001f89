"""The questions of a client whose service URL is http or https, asked by REST (rule 2.20).

They are asked in threads, since REST's client waits. A redirect is followed, as another broker may serve the topic, but
never from https to http, which would show the credentials to anyone who listens.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from magnetar.client.address import Address
from magnetar.client.aio.connections.connection_pool import ConnectionPool
from magnetar.client.errors import ClientError, ClientTimeoutError, ConnectionLostError, RefusedError, TlsError
from magnetar.client.lookup_answer import REDIRECTS_MAX, Route, broker_address, too_many_redirects
from magnetar.client.rest import Rest, RestAnswer, RestTlsError, login_advice, login_refusal, path_of
from magnetar.model.errors import NotAvailableError, ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REFUSALS: Final = {
    404: ServerError.TopicNotFound,
    412: ServerError.InvalidTopicName,
    429: ServerError.TooManyRequests,
    503: ServerError.ServiceNotReady,
}
_LONGEST_WAIT: Final = 30.0
"""Seconds for one answer; threads cannot be cancelled."""


class RestQuestions:
    """REST at the addresses of the service URL, of which the first one that answers is asked."""

    def __init__(self, pool: ConnectionPool, timeout: float) -> None:
        self._pool = pool
        self._seconds = min(timeout, _LONGEST_WAIT)

    async def route(self, topic: str, listener: str | None) -> Route:
        """Return the way to the broker that serves a topic. Raises RefusedError, ConnectionLostError, TlsError."""
        name, what = TopicName.parse(topic), f"look up {topic}"
        domain = "persistent" if name.persistent else "non-persistent"
        path = f"/lookup/v2/topic/{domain}/{name.namespace}/{quote(name.local_name, safe='')}"
        if listener is not None:
            path += f"?listenerName={quote(listener, safe='')}"
        asked, found = await self._ask(path, what, topic)
        url = found.get("brokerUrlTls" if asked.tls else "brokerUrl") if isinstance(found, dict) else None
        return Route(broker_address(url, asked, topic))

    async def partition_count(self, topic: str, *, create: bool) -> int:
        """Return the number of partitions, 0 for a topic without. Raises as `route`."""
        path = f"{path_of(topic)}/partitions?checkAllowAutoCreation={str(create).lower()}"
        what = f"ask for the partitions of {topic}"
        _, found = await self._ask(path, what, topic)
        count = found.get("partitions") if isinstance(found, dict) else None
        if not isinstance(count, int):
            raise ClientError(f"{what}: REST answered without a number of partitions")
        return count

    async def topics_of(self, namespace: str, mode: c.NamespaceMode) -> list[str]:
        """Return all topics of a namespace, each partition as a topic of its own. Raises as `route`."""
        name, what = NamespaceName.parse(namespace), f"ask for the topics of {namespace}"
        _, found = await self._ask(f"/admin/v2/namespaces/{name}/topics?mode={mode.name}", what, namespace)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise ClientError(f"{what}: REST answered without a list of topics")
        return found

    async def _ask(self, path: str, what: str, subject: str) -> tuple[Address, Any]:
        """Return the address that was asked, and what it or who it named has answered."""
        service, mistaken = self._pool.service, None
        lost: ClientError | None = None
        for address in self._pool.addresses:
            self._pool.check()
            asking = asyncio.get_running_loop().run_in_executor(
                None, _answer, service.rest(address, self._seconds), path, what, subject
            )
            bound = asyncio.timeout(self._seconds)  # of HTTP each step has so long
            try:
                async with bound:
                    found = await asking
            except TimeoutError:
                if not bound.expired():
                    raise
                shown = service.credentials
                silent = "" if shown.method is None or shown.key_pair is not None else f", or {shown} has not come"
                lost = ClientTimeoutError(f"{what}: REST at {address} did not answer in {self._seconds:g} s{silent}")
                continue
            except RestTlsError as error:
                mistaken = TlsError(f"{what}: {error}")
                continue
            except NotAvailableError as error:
                lost = ConnectionLostError(f"{what}: {error}")
                continue
            if service is self._pool.service:
                self._pool.answered(address)
            return address, found
        error_of_all = lost or mistaken  # one that is away may be back, and is asked again
        assert error_of_all is not None, "a service URL has at least one address"
        raise error_of_all


def _answer(rest: Rest, path: str, what: str, subject: str) -> Any:
    """Return the JSON that comes in the end. Raises NotAvailableError, RefusedError, CredentialsError."""
    for _ in range(REDIRECTS_MAX):
        answer = rest.send("GET", path)
        if answer.http_status not in _REDIRECTS:
            break
        rest, path = _redirected(rest, answer, what)
    else:
        raise too_many_redirects(subject)
    if answer.http_status >= 300:
        login = login_refusal(answer)
        step = login_advice(answer, rest.credentials, rest.words)
        raise RefusedError(what, login or _code(answer), answer.reason, step, rest.url)
    try:
        return answer.json()
    except ValueError:
        raise ClientError(f"{what}: {rest.url} answered with something else than JSON") from None


def _redirected(rest: Rest, answer: RestAnswer, what: str) -> tuple[Rest, str]:
    to = urlsplit(answer.headers.get("location", ""))
    if to.scheme != urlsplit(rest.url).scheme or not to.netloc:
        raise ClientError(f"{what}: {rest.url} redirects to {to.scheme}://{to.netloc}, where nothing is asked")
    path = to.path if not to.query else f"{to.path}?{to.query}"
    return replace(rest, url=f"{to.scheme}://{to.netloc}"), path


def _code(answer: RestAnswer) -> ServerError:
    return _REFUSALS.get(answer.http_status, ServerError.UnknownError)
