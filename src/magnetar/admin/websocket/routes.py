"""Paths of the WebSocket service: ``/ws/v2/producer|consumer|reader/...`` and ``/ws/v3/consumer/{subscription}``.

Paths with a cluster in them (``/ws/producer/...``) are answered with those that magnetar does not have.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import clear_frames
from typing import TYPE_CHECKING, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import done
from magnetar.admin.http.parameters import NameText, PathText, topic_name
from magnetar.admin.http.peer import peer_of
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.later_modules import LaterModules
from magnetar.admin.values.client_refusals import reason_of, status_of
from magnetar.admin.values.inner_peer import InnerClientMaker, InnerPeer
from magnetar.admin.websocket.upgrade import Socket, SocketGoneError, socket_of
from magnetar.authorization.access import TopicAccess
from magnetar.authorization.operations import TopicOperation
from magnetar.client.errors import ClientError
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError, MagnetarError

if TYPE_CHECKING:
    from magnetar.admin.websocket.produce_memory import ProduceMemory
    from magnetar.admin.websocket.query_parameters import ConsumingOptions, ReadingOptions
    from magnetar.admin.websocket.socket_memory import SocketMemory, SocketShare

_MODULES: Final = (
    "magnetar.admin.websocket.consumer_socket",
    "magnetar.admin.websocket.dead_letters",
    "magnetar.admin.websocket.producer_socket",
    "magnetar.admin.websocket.query_parameters",
    "magnetar.admin.websocket.reader_socket",
)
"""With what they import they are all that this file imports where it is used."""
_TOPIC: Final = "/{domain:domain}/{tenant}/{namespace}/{topic}"
_FAILED: Final = "Failed to create producer/consumer: "
_TOPICS_MAX: Final = 1000
MEMORY: Final = 16 << 20
"""Bytes of frames of all sockets together that their peers have not taken."""
UNSTORED: Final = 64 << 20
"""Characters of frames of all sockets together whose messages are not stored yet."""
SHARE: Final = 1 << 20
"""Bytes of messages that may wait for one socket; one message may be larger."""
PATIENCE: Final = 5.0
"""Seconds that a peer may take for a frame while others wait for memory."""
log = logging.getLogger(__name__)
_AWAY_SECONDS: Final = 3
"""How long a producer or consumer may be without its topic, as while it is unloaded."""


def routes(clients: InnerClientMaker, settings: Settings, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    sockets = _Sockets(clients, settings, permissions)

    @router.get("/ws/v2/producer" + _TOPIC)
    async def websocket_producer(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        return await sockets.produce(topic_name(domain, tenant, namespace, topic).fqn, request)

    @router.get("/ws/v2/consumer" + _TOPIC + "/{subscription}")
    async def websocket_consumer(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: NameText,
        request: Request,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic).fqn
        return await sockets.consume(name, name, subscription, request)

    @router.get("/ws/v2/reader" + _TOPIC)
    async def websocket_reader(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        return await sockets.read(topic_name(domain, tenant, namespace, topic).fqn, request)

    @router.get("/ws/v3/consumer/{subscription}")
    async def websocket_consumer_of_topics(subscription: NameText, request: Request) -> Response:
        await sockets.asked(request)
        listed, pattern = request.query_params.get("topics"), request.query_params.get("topicsPattern")
        if listed and pattern:
            raise InvalidValueError("Invalid query params: give topics or topicsPattern, not both")
        if listed:
            topics = [one for one in listed.split(",") if one]
            if not 0 < len(topics) <= _TOPICS_MAX:
                raise InvalidValueError(f"Invalid query params: topics names up to {_TOPICS_MAX} topics")
            return await sockets.consume(topics, topics[0], subscription, request)
        if not pattern:
            raise InvalidValueError("Invalid query params: topics or topicsPattern is needed")
        from magnetar.admin.websocket.query_parameters import topics_pattern

        return await sockets.consume(topics_pattern(pattern), pattern, subscription, request)

    @router.get("/ws/v3/consumer")
    async def websocket_consumer_without_subscription(request: Request) -> Response:
        await sockets.asked(request)
        raise InvalidValueError("Invalid query params: the path ends with the subscription: /ws/v3/consumer/{name}")

    return router


class _Sockets:
    """What becomes of a handshake that is let in."""

    def __init__(self, clients: InnerClientMaker, settings: Settings, permissions: Permissions) -> None:
        self._clients = clients
        self._permissions = permissions
        self._enabled = settings.webSocketServiceEnabled
        self._modules = LaterModules(*_MODULES)
        self._memory: SocketMemory | None = None
        self._unstored: ProduceMemory | None = None

    async def asked(self, request: Request) -> Socket:
        """The socket, and what serves it is imported. Raises HTTPException if there is no service, or no handshake."""
        if not self._enabled:
            raise HTTPException(404, "there is no WebSocket service: webSocketServiceEnabled=false")
        found = socket_of(request)
        await self._clients.ready()
        await self._modules.ready()
        return found

    async def produce(self, topic: str, request: Request) -> Response:
        """Serve a producer to its end."""
        found = await self.asked(request)
        from magnetar.admin.websocket.produce_memory import ProduceMemory
        from magnetar.admin.websocket.producer_socket import ProducerSocket
        from magnetar.admin.websocket.query_parameters import pending_max, producer_options

        options, most = producer_options(request.query_params), pending_max(request.query_params)
        if self._unstored is None:
            self._unstored = ProduceMemory(UNSTORED)
        unstored = self._unstored
        async with self._clients(peer_of(request)) as client:
            with _Refusing():
                producer = await client.create_producer(topic, max_pending_messages=most, **options)
            await _serve(found, ProducerSocket(found, producer, most, unstored), producer.is_connected)
        return done()

    async def consume(
        self, topics: str | list[str] | re.Pattern[str], named: str, subscription: str, request: Request
    ) -> Response:
        """Serve a consumer to its end; ``named`` is the topic whose dead letters these are."""
        found = await self.asked(request)
        from magnetar.admin.websocket.query_parameters import consuming_options

        options = consuming_options(request.query_params, named, subscription)
        if options.dead_letter_topic is not None:
            self._permissions.require(request, TopicAccess(options.dead_letter_topic, TopicOperation.PRODUCE))
        peer = peer_of(request)
        with self._share(found, peer) as share:
            await self._consume(found, share, topics, subscription, options, peer)
        return done()

    async def _consume(
        self,
        found: Socket,
        share: SocketShare,
        topics: str | list[str] | re.Pattern[str],
        subscription: str,
        options: ConsumingOptions,
        peer: InnerPeer,
    ) -> None:
        from magnetar.admin.websocket.consumer_socket import ConsumerSocket
        from magnetar.admin.websocket.dead_letters import DeadLetters
        from magnetar.admin.websocket.delivery_socket import PREFETCHED

        # dead letters have a client of their own: receipts are read also while no messages are
        async with self._clients(peer) as outlet, self._clients(peer._replace(flow=share.flow)) as client:
            queue = min(options.queue, PREFETCHED)
            with _Refusing():
                consumer = await client.subscribe(
                    topics,
                    subscription,
                    receiver_queue_size=queue,
                    max_total_receiver_queue_size_across_partitions=PREFETCHED,
                    **options.subscribe,
                )
            share.waiting = lambda: consumer.waiting_bytes
            dead = DeadLetters(outlet, options.dead_letter_topic, subscription, options.max_redeliveries)
            await _serve(found, ConsumerSocket(found, share, consumer, options, dead), consumer.is_connected)
            share.end()

    async def read(self, topic: str, request: Request) -> Response:
        """Serve a reader to its end."""
        found = await self.asked(request)
        from magnetar.admin.websocket.query_parameters import reading_options

        options = reading_options(request.query_params)
        peer = peer_of(request)
        with self._share(found, peer) as share:
            await self._read(found, share, topic, options, peer)
        return done()

    async def _read(
        self, found: Socket, share: SocketShare, topic: str, options: ReadingOptions, peer: InnerPeer
    ) -> None:
        from magnetar.admin.websocket.delivery_socket import PREFETCHED
        from magnetar.admin.websocket.reader_socket import ReaderSocket

        async with self._clients(peer._replace(flow=share.flow)) as client:
            queue = min(options.queue, PREFETCHED)
            with _Refusing():
                reader = await client.create_reader(
                    topic,
                    options.start,
                    receiver_queue_size=queue,
                    reader_name=options.name,
                    crypto_failure_action=options.crypto,
                )
            share.waiting = lambda: reader.consumer.waiting_bytes
            await _serve(found, ReaderSocket(found, share, reader, options.queue), reader.is_connected)
            share.end()

    @contextmanager
    def _share(self, found: Socket, peer: InnerPeer) -> Iterator[SocketShare]:
        """A share of the memory of all sockets, for one of them."""
        from magnetar.admin.websocket.socket_memory import SocketMemory, SocketShare

        if self._memory is None:
            self._memory = SocketMemory(MEMORY, SHARE, PATIENCE)
        memory = self._memory

        def evict(reason: str) -> None:
            log.warning("a WebSocket of %s is closed: %s", peer.address, reason)
            found.abort()

        share = SocketShare(memory, lambda: 0, evict)
        memory.join(share)
        try:
            yield share
        finally:
            memory.leave(share)


class _Refusing:
    """Answers the handshake with why something could not be opened.

    No generator: since Python 3.12 the frame of one that raises another error keeps the first one, in a cycle.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidValueError):  # also the client's own refusal of what it is given
            raise InvalidValueError(f"Invalid query params: {error}") from None
        if isinstance(error, ClientError):
            raise HTTPException(status_of(error), f"{_FAILED}{reason_of(error)}") from error


class _Served(Protocol):
    async def run(self) -> None: ...


async def _serve(socket: Socket, served: _Served, connected: Callable[[], bool]) -> None:
    """Accept, and serve until the peer leaves or the broker serves it no more: who lost a right, or a topic."""
    from magnetar.admin.websocket.delivery_socket import BROKEN, CloseSocketError

    async def watch() -> None:
        missed = 0
        while missed < _AWAY_SECONDS:
            await asyncio.sleep(1)
            missed = 0 if connected() else missed + 1
        raise CloseSocketError(BROKEN, "the broker does not serve this any more; open it again to hear why")

    try:
        await socket.accept()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch())
            await served.run()
    except* SocketGoneError as group:
        _reason(group)
    except* CloseSocketError as group:
        code, reason = _reason(group)
        await socket.close(code, reason)
    except* MagnetarError as group:
        await socket.close(BROKEN, _reason(group)[1])


def _reason(group: BaseExceptionGroup[Exception]) -> tuple[int, str]:
    """The first error's code, if it has one, and text; what the functions that it ended held is let go.

    A group and the frames that it passed are a cycle, and the last message of a socket stands in one of them.
    """
    from magnetar.admin.websocket.delivery_socket import BROKEN, CloseSocketError

    clear_frames(group.__traceback__)
    reasons = []
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            reasons.append(_reason(error))
        else:
            clear_frames(error.__traceback__)
            reasons.append((error.code if isinstance(error, CloseSocketError) else BROKEN, str(error)))
    return reasons[0]
