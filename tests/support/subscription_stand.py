"""A subscription on fakes, with short ways to do things to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.subscription_types import KeySharedMeta, SubType
from tests.support.subscription_fakes import FakeConnection, FakeCursor, FakeLog


class FakeClock:
    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms


class Stand:
    """Keys are ``b"key-N"`` with N = ordinal modulo ``keys``."""

    def __init__(
        self,
        *,
        keys: int = 10,
        mark_delete: int = -1,
        partition: int = 0,
        created: bool = True,
        terminated: bool = False,
        **settings: Any,
    ) -> None:
        self.log = FakeLog()
        self.cursor = FakeCursor(self.log, mark_delete)
        self.keys = keys
        self.subscription = Subscription(
            TopicIdentity("persistent://public/default/t", partition),
            "sub",
            self.log,
            self.cursor,
            replace(DispatchSettings(), **settings),
            FakeClock(),
            self.sticky_keys,
            created=created,
            terminated=terminated,
        )

    def sticky_keys(self, entries: Sequence[bytes]) -> list[bytes]:
        return [b"key-%d" % (int(entry.removeprefix(b"entry-")) % self.keys) for entry in entries]

    def join(
        self,
        name: str = "c",
        sub_type: SubType = SubType.Shared,
        permits: int = 0,
        priority: int = 0,
        key_shared: KeySharedMeta | None = None,
        epoch: int | None = None,
    ) -> tuple[Consumer, FakeConnection]:
        connection = FakeConnection()
        consumer = self.subscription.add_consumer(
            connection,
            name=name,
            consumer_id=7,
            sub_type=sub_type,
            priority=priority,
            key_shared=key_shared,
            epoch=epoch,
        )
        if permits:
            self.subscription.flow(consumer, permits)
        return consumer, connection

    def append(self, *counts: int) -> None:
        self.log.append(*counts)
        self.subscription.entries_appended()

    def append_many(self, entries: int) -> None:
        self.append(*[1] * entries)
