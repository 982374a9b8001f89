"""A run of a handler in transactions at a cluster that has none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.client.aio.handlers.transaction_run import TransactionRun, TransactionRunOptions
from magnetar.client.errors import RefusedError
from magnetar.model.errors import ServerError


class _Message:
    def message_id(self) -> str:
        return "1"


class _Consumer:
    """Has one message, which comes again and again."""

    def __init__(self) -> None:
        self.again = 0
        self._here = True

    def topic(self) -> str:
        return "t"

    def receive_nowait(self) -> Any:
        self._here = not self._here
        return None if self._here else _Message()

    async def acknowledge(self, message: Any, *, txn: Any) -> None:
        pass

    async def come_again(self, message: Any, after: float | None) -> None:
        self.again += 1


class _Transaction:
    async def __aenter__(self) -> _Transaction:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


def test_a_cluster_without_transactions_ends_the_run() -> None:
    """It was asked again for ever, while the first message came again and again."""

    async def begin() -> Any:
        raise RefusedError("begin a transaction", ServerError.TransactionCoordinatorNotFound, "the cluster has none")

    async def handler(*_: object) -> None:
        raise AssertionError

    async def run() -> int:
        consumer: Any = _Consumer()
        async with asyncio.timeout(30):
            with pytest.raises(RefusedError, match="the cluster has none"):
                await TransactionRun(consumer, begin, handler, TransactionRunOptions()).run()
        return int(consumer.again)

    assert asyncio.run(run()) > 0, "what was received comes again"


def test_a_coordinator_that_is_away_for_a_while_does_not() -> None:
    answers = iter([True, False, True])

    async def run() -> int:
        consumer: Any = _Consumer()

        async def begin() -> Any:
            if not next(answers):
                raise RefusedError("begin a transaction", ServerError.TransactionCoordinatorNotFound, "not found")
            return _Transaction()

        async def handler(*_: object) -> None:
            handled.append(1)
            if len(handled) == 2:
                one.stop()

        handled: list[int] = []
        one = TransactionRun(consumer, begin, handler, TransactionRunOptions())
        async with asyncio.timeout(30):
            return (await one.run()).handled

    assert asyncio.run(run()) > 0
