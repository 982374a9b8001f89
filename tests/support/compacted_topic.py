"""A topic on a real store that is published to and compacted, and what a reader of its view gets."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final

from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.topic import Topic
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.entries import EntryMetadata, build_entry, payload_of
from magnetar.runtime.clock import SystemClock
from magnetar.storage.store import LedgerStore

NAME: Final = TopicName.parse("persistent://public/default/t")


def loaded(store: LedgerStore) -> Topic:
    return Topic(NAME, store, DispatchSettings(), SystemClock(), Random(1), TopicPolicies())


async def publish(topic: Topic, *messages: tuple[str, str]) -> None:
    topic.log.on_durable = lambda extent: None
    for key, value in messages:
        metadata = EntryMetadata("p", 0, 1000 + topic.log.end + topic.log.pending, partition_key=key)
        topic.log.append(build_entry(metadata, value.encode()), 1, None)
    await drained(topic)


async def drained(topic: Topic) -> None:
    done = asyncio.Event()
    topic.log.barrier(done.set)
    await done.wait()


async def compact(topic: Topic) -> Compactor:
    compactor = topic.compaction()
    compactor.begin(retain_keyless=False)
    await compactor.wait()
    assert (compactor.status, compactor.last_error) == ("SUCCESS", "")
    return compactor


async def all_of(
    source: CompactedSource, start: int = 0, stop: int | None = None, step: int = 3
) -> list[tuple[int, str]]:
    """What a pump would get: ordinals and values."""
    got = []
    at = start
    while at < (source.end if stop is None else stop):
        run = source.cached(at, step, 1 << 20)
        if run is None:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            source.read(at, step, 1 << 20, answer.set_result)
            run = await answer
            if not run.entries:
                continue
        assert run.first >= at
        assert [source.position(run.first + i) for i in range(len(run.entries))] == [
            Position(run.ledger, run.entry + i) for i in range(len(run.entries))
        ]
        got += [(run.first + i, payload_of(entry).decode()) for i, entry in enumerate(run.entries)]
        at = run.first + len(run.entries)
    return got


def logs(store: LedgerStore) -> list[str]:
    return [name for name in store.names() if name.startswith("internal://compacted/")]
