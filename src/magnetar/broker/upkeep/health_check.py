"""The health check: a message goes through a topic of its own, to the disk and back (rules 8.1, 8.7).

The topic lies in a namespace that was never created and no list shows, named after the broker: ``pulsar/<host:port>``,
or with the cluster in between as names were once written. Each check removes what the one before left, ledger and all:
a ledger that stayed open would keep a segment of all topics' data from being removed for every check in it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.subscription.backlog import run_at
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import PersistenceError, ServiceNotReadyError
from magnetar.model.names import TopicName
from magnetar.model.system_topics import HEARTBEAT, is_heartbeat
from magnetar.protocol.entries import EntryMetadata, build_entry

_SECONDS_MAX: Final = 30.0
_FIRST, _LAST = "persistent://pulsar/", f"/{HEARTBEAT}"


class _Sender:
    """The producer of a check's message, which receives its result."""

    open = True
    msg_in = 0
    bytes_in = 0

    def __init__(self) -> None:
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def connection(self) -> _Sender:
        return self

    def receipts(self, ledger: int, first_entry: int, results: object) -> None:
        if not self.settled.done():
            self.settled.set_result(None)

    def failed(self, results: object, error: PersistenceError) -> None:
        if not self.settled.done():
            self.settled.set_exception(error)

    def dropped(self, count: int) -> None:
        if not self.settled.done():
            self.settled.set_exception(PersistenceError("the topic was unloaded meanwhile"))


class HealthCheck:
    """The health check of one broker; lives on the event loop."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._one_at_a_time = asyncio.Lock()
        self._tidy = False

    async def check(self, *, with_cluster: bool = False) -> None:
        """Send and read a message. Raises PersistenceError or ServiceNotReadyError if it does not come back."""
        service = self._service
        broker = service.broker_id
        space = f"pulsar/{service.settings.clusterName}/{broker}" if with_cluster else f"pulsar/{broker}"
        async with self._one_at_a_time:
            await self._forget_others(broker)
            topic = service.system_topic(TopicName.parse(f"persistent://{space}/{HEARTBEAT}"))
            try:
                async with asyncio.timeout(_SECONDS_MAX):
                    await self._send_and_read(topic)
            except TimeoutError:
                raise ServiceNotReadyError(
                    f"a message was not stored and read again in {_SECONDS_MAX:g} s: the disk is slow or stuck"
                ) from None
            finally:
                self._let_go(topic)

    async def _send_and_read(self, topic: Topic) -> None:
        now = self._service.clock.now_ms()
        entry = build_entry(EntryMetadata("healthcheck", topic.log.next, now), b"%d" % now)
        sender: Any = _Sender()
        ordinal = topic.log.append(entry, 1, PendingEntry(sender, 0, 0))
        await sender.settled
        run = await run_at(topic.log, ordinal, 1)
        if run.first != ordinal or run.entries[0] != entry:
            raise ServiceNotReadyError(f"what was read of {topic.name.fqn} is not what was written")

    def _let_go(self, topic: Topic) -> None:
        log = topic.log
        if not topic.closed and log.end > log.first and not log.pending:
            log.open_ledger()
            topic.trim_to(log.end, 0)

    async def _forget_others(self, broker: str) -> None:
        """Delete the topics that earlier runs of this broker at other ports left."""
        if self._tidy:
            return
        # logs that are no topics (those of transactions) stand in the store, too
        candidates = [text for text in self._service.store.names() if text.startswith(_FIRST) and text.endswith(_LAST)]
        for name in map(TopicName.parse, candidates):
            if is_heartbeat(name) and name.namespace.local_name != broker:
                await self._service.delete(name, force=True)
        self._tidy = True
