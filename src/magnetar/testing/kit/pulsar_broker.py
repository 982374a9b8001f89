"""A real broker inside the process of a test: ready in milliseconds, its time and its accidents in the test's hands."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import sys
import warnings
import weakref
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.testing.kit import stored_content
from magnetar.testing.kit.broker_faults import BrokerFaults
from magnetar.testing.kit.broker_thread import BrokerThread
from magnetar.testing.kit.call_arguments import SEED_MAX, checked
from magnetar.testing.kit.embedded_broker import HOST, KEEP_ALIVE_SECONDS, EmbeddedBroker
from magnetar.testing.kit.message_explanation import MessageExplanation, explain_message
from magnetar.testing.kit.topic_inspection import TopicInspection
from magnetar.testing.kit.virtual_clock import VirtualClock
from magnetar.testing.kit.virtual_loop import Timeline, VirtualLoop

if TYPE_CHECKING:
    from magnetar.admin_client.client import Admin
    from magnetar.client.aio.client import Client as AioClient
    from magnetar.client.blocking.client import Client
    from magnetar.client.machines.message_id import MessageId

SEED_VARIABLE: Final = "PULSAR_SEED"
_SEED_BITS: Final = 32
_open: weakref.WeakSet[PulsarBroker] = weakref.WeakSet()
forgotten: Final[deque[str]] = deque(maxlen=100)
"""Where brokers were made that were collected and not closed, the last ones."""


def open_brokers() -> set[PulsarBroker]:
    """Return the brokers of this process that are not closed."""
    return set(_open)


class PulsarBroker:
    """A broker of this process on free ports of the loopback, which serves as soon as it is made.

    Use it with ``with`` or ``async with``, or call :meth:`close`. Everything is kept in memory. Clients of any language
    connect to :attr:`service_url`. Its calls may come from any thread and from within event loops; those that wait for
    clients have a twin there whose name ends in ``_async``.
    """

    clock: VirtualClock
    """Its time, which a test moves."""
    faults: BrokerFaults
    """What can go wrong: a kill -9, for one."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        settings: Settings | Mapping[str, object] | None = None,
        with_rest: bool = False,
    ) -> None:
        """``seed`` decides all that is left to chance; if it is not given, the environment's PULSAR_SEED, or a new one.

        ``settings`` are those of broker.conf, by name. ``with_rest`` opens the REST interface at once and not when
        it is asked for. Raises ArgumentError, InvalidValueError.
        """
        checked("PulsarBroker", seed=seed, settings=settings, with_rest=with_rest)
        self._opened_at = _caller()
        self.seed = _new_seed() if seed is None else seed
        given = _settings(settings)
        timeline = Timeline()
        self._thread = thread = BrokerThread(timeline)
        self.clock = VirtualClock(thread, timeline)
        self._embedded = embedded = EmbeddedBroker(thread.loop, given, self.clock, random.Random(self.seed))
        self.faults = BrokerFaults(self._embedded, thread, random.Random(f"{self.seed} faults"))
        active = self._embedded.faults
        self.clock.detector.traffic = lambda: active.traffic
        self._client_rng = random.Random(f"{self.seed} clients")
        self._closed = False
        thread.start()
        try:
            thread.call(self._embedded.boot)
            if with_rest:
                thread.call(self._embedded.open_rest)
        except BaseException:
            self._closed = True
            thread.end()
            raise
        self.clock.service_url = lambda: f"pulsar://{HOST}:{embedded.port}"
        _open.add(self)

    # its life ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> PulsarBroker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> PulsarBroker:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            self._closed = True
            _open.discard(self)
            try:
                await self._thread.await_(self._embedded.stop)
            finally:
                self._thread.end()

    def close(self) -> None:
        """End it: clients are let go, and its thread, sockets and memory are given back. Repeatable."""
        if self._closed:
            return
        self._closed = True
        _open.discard(self)
        if not self._thread.open:  # in a forked child there is nothing to end
            return
        try:
            self._thread.call(self._embedded.stop)
        finally:
            self._thread.end()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def opened_at(self) -> str:
        """The line of the test that made it: ``tests/test_orders.py:12``."""
        return self._opened_at

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or not self._thread.open:
            return
        forgotten.append(self._opened_at)
        text = f"the PulsarBroker made at {self._opened_at} was not closed: use `with`"
        warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
        self._thread.abandon(self._embedded.stop)

    def restart(self) -> None:
        """Boot a broker that was killed, or whose power went off, again: on its disk and at its addresses.

        Raises InvalidValueError if it runs, BrokerClosedError, OSError if another process took the port.
        """
        self._thread.call(self._embedded.boot)

    @property
    def running(self) -> bool:
        """Whether it serves: it is neither closed nor killed."""
        return not self._closed and self._embedded.running

    def __repr__(self) -> str:
        state = "closed" if self._closed else self.service_url if self.running else "dead"
        return f"<PulsarBroker {state}, seed {self.seed}>"

    # where it is -------------------------------------------------------------------------------------------------

    @property
    def service_url(self) -> str:
        """The address for clients; the same after a restart."""
        return f"pulsar://{HOST}:{self._embedded.port}"

    @property
    def rest_url(self) -> str:
        """The address of the REST interface, which is opened if it was not. Raises BrokerClosedError."""
        if not self._embedded.web_port:
            self._thread.call(self._embedded.open_rest)
        return f"http://{HOST}:{self._embedded.web_port}"

    @property
    def admin(self) -> Admin:
        """A client of the REST interface, which is opened if it was not. Raises BrokerClosedError."""
        from magnetar.admin_client.client import Admin

        return Admin(self.rest_url)

    def client(self, **options: Any) -> Client:
        """Return a blocking client, which shares this time.

        ``options`` are those of :class:`magnetar.Client`. Close it, before the broker. Raises InvalidValueError.
        """
        from magnetar.client.blocking.client import Client
        from magnetar.client.blocking.loop_thread import loop_maker

        timeline = self.clock.timeline

        def make() -> VirtualLoop:
            loop = VirtualLoop(timeline)
            timeline.add(loop)
            return loop

        before = loop_maker.set(make)
        try:
            return Client(self.service_url, **self._of_client(options))
        finally:
            loop_maker.reset(before)

    def _of_client(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"clock": self.clock, "rng": random.Random(self._client_rng.getrandbits(64)), **options}

    def aio_client(self, **options: Any) -> AioClient:
        """Return an asyncio client of the running event loop, which shares this time from now on.

        ``options`` are those of :class:`magnetar.aio.Client`. Close it. Raises InvalidValueError.
        """
        from magnetar.client.aio.client import Client as AioClient

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidValueError("aio_client() is for coroutines; a test without them uses client()") from None
        self.clock.join(loop)
        return AioClient(self.service_url, **self._of_client(options))

    # what is in it -----------------------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicInspection:
        """Return a view of a topic, which need not exist yet. Raises InvalidTopicNameError."""
        return TopicInspection(self._embedded, self._thread, name)

    def topics(self, *, system: bool = False) -> list[str]:
        """Return the full names of all topics, each partition as one; with ``system`` also the broker's own."""

        checked("topics", system=system)

        async def look() -> list[str]:
            return stored_content.names(self._embedded.broker.service, system=system)

        return self._thread.call(look)

    def explain(self, topic: str, message_id: MessageId) -> MessageExplanation:
        """Say what each subscription has done with a message. Raises NotFoundError if it is not stored (any more)."""
        checked("explain", topic=topic, message_id=message_id)
        name, position = TopicName.parse(topic), Position(message_id.ledger_id(), message_id.entry_id())

        async def look() -> MessageExplanation:
            return explain_message(self._embedded.broker.service, name, position)

        return self._thread.call(look)


def _new_seed() -> int:
    given = os.environ.get(SEED_VARIABLE)
    if not given:
        return secrets.randbits(_SEED_BITS)
    try:
        seed = int(given)
        checked(SEED_VARIABLE, seed=seed)
    except ValueError:
        raise InvalidValueError(
            f"the environment's {SEED_VARIABLE} is no whole number from 0 to {SEED_MAX}: {given[:60]!r}"
        ) from None
    return seed


def _settings(given: Settings | Mapping[str, object] | None) -> Settings:
    if isinstance(given, Settings):
        return _without_tls(given)
    base = Settings(
        brokerServicePort=0, webServicePort=None, keepAliveIntervalSeconds=KEEP_ALIVE_SECONDS, bindAddress=HOST
    )
    if not given:
        return base
    from magnetar.config.configuration import load

    flags = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in given.items()]
    return _without_tls(load(flags=flags, base=base).settings)


def _without_tls(settings: Settings) -> Settings:
    if settings.brokerServicePortTls is not None or settings.webServicePortTls is not None:
        raise InvalidValueError(
            "a PulsarBroker of a test has no ports with TLS: leave out brokerServicePortTls and webServicePortTls, "
            "or start `magnetar standalone` with them"
        )
    return settings


def _caller() -> str:
    """Return the line outside of this package that makes a broker."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("magnetar.testing.kit."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
