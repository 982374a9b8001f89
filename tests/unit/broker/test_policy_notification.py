"""Many topics are notified of changed policies in turns, and a caller can wait until all are."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from magnetar.broker.policies.policy_notification import AT_ONCE, PolicyNotification
from magnetar.model.topic_policies import TopicPolicies


def test_few_hear_at_once_many_in_turns_and_all_before_the_answer() -> None:
    heard: list[tuple[int, str]] = []
    holds = "first"

    def topic(number: int, *, closed: bool = False, broken: bool = False) -> Any:
        def take(policies: str) -> None:
            heard.append((number, policies))
            if broken:
                raise ValueError

        return SimpleNamespace(name=f"t{number}", closed=closed, set_policies=take, policies=TopicPolicies())

    class Hashable(SimpleNamespace):
        __hash__ = object.__hash__  # type: ignore[assignment]

    def topics(*numbers: int, **about: bool) -> list[Any]:
        return [Hashable(**vars(topic(number, **about))) for number in numbers]

    async def run() -> None:
        nonlocal holds
        telling = PolicyNotification(lambda name: holds)  # type: ignore[arg-type, return-value]
        few = topics(1, 2)
        telling.notify(few)
        assert heard == [(1, "first"), (2, "first")]
        await telling.all_notified()
        del heard[:]
        many = [*topics(0, broken=True), *topics(*range(1, 2 * AT_ONCE)), *topics(7, closed=True)]
        telling.notify(many)
        assert len(heard) == AT_ONCE
        holds = "second"
        telling.notify(many)
        await telling.all_notified()
        assert len(heard) == 3 * AT_ONCE, "those that were waiting hear once"
        assert {number for number, policies in heard if policies == "second"} == set(range(2 * AT_ONCE))

    asyncio.run(run())
