"""Which subscriptions a topic forgets when the last consumer leaves, and what users keep beside its log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.model.own_properties import OF_TOPICS, REPLICATED, is_replicated
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        place.append("k", "x")
        await place.durable()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


def opened(
    place: LoadedTopic, name: str, *, durable: bool = False, properties: dict[str, str] | None = None,
    done: Callable[[], None] = lambda: None,
) -> Subscription:  # fmt: skip
    return place.topic.subscription(name, durable=durable, ordinal=lambda: 0, properties=properties or {}, done=done)


def test_a_non_durable_subscription_goes_with_its_last_consumer_and_takes_no_other_along() -> None:
    """Rule 4.3.2; one that was deleted meanwhile has a successor of its name, which stays."""

    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        first = opened(place, "r")
        topic.delete_subscription("r", lambda: None)
        second = opened(place, "r")
        topic.consumer_gone(first)
        assert topic.subscriptions.get("r") is second
        topic.consumer_gone(second)
        assert topic.subscriptions.get("r") is None
        kept = opened(place, "s", durable=True)
        topic.consumer_gone(kept)
        assert topic.subscriptions.get("s") is kept

    simulated(scenario)


def test_properties_of_users_are_replaced_and_outlive_a_crash_and_the_brokers_own_stay() -> None:
    async def scenario(place: LoadedTopic) -> None:
        own = f"{OF_TOPICS[0]}test"
        place.topic.log.properties = {own: 1, "old": "x"}
        place.topic.set_properties({"a": "1", own: "of a user"})
        await place.durable()
        place.kill()
        assert place.topic.properties() == {"a": "1"}
        assert place.topic.log.properties[own] == 1

    simulated(scenario)


def test_who_asks_for_replication_of_a_subscription_that_is_there_has_it_durably() -> None:
    """Its other properties are those that it was made with, and who does not ask takes nothing back."""

    async def scenario(place: LoadedTopic) -> None:
        kept = {"team": "billing"}
        assert not is_replicated(opened(place, "s", durable=True, properties=kept).cursor.properties)
        await place.durable()
        answered: list[bool] = []
        opened(place, "s", durable=True, properties={"team": "other", **REPLICATED}, done=lambda: answered.append(True))
        assert not answered, "not before it is durable"
        await place.durable()
        assert answered
        for _ in range(2):
            place.kill()
            assert place.topic.subscriptions["s"].cursor.properties == {**kept, **REPLICATED}
            opened(place, "s", durable=True)
            await place.durable()

    simulated(scenario)


def test_a_trim_that_lets_go_of_nothing_looks_at_no_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each topic is trimmed every few seconds, and may have thousands of readers."""

    async def scenario(place: LoadedTopic) -> None:
        topic, told = place.topic, list[int]()
        monkeypatch.setattr(Subscriptions, "trimmed", lambda subscriptions: told.append(topic.log.first))
        held = opened(place, "s", durable=True)
        for number in range(24):
            place.append("k", f"{number}")
        await place.durable()
        assert (topic.trim(), told) == (0, [])
        held.skip_until(19)
        assert topic.trim() > 0
        assert told == [topic.log.first]

    simulated(scenario)


def test_a_closed_topic_trims_nothing() -> None:
    async def scenario(place: LoadedTopic) -> None:
        topic = place.topic
        opened(place, "s", durable=True)
        for number in range(24):
            place.append("k", f"{number}")
        await place.durable()
        topic.close()
        assert (topic.trim(), topic.trim_to(20, 0), topic.log.first) == (0, 0, 0)

    simulated(scenario)


@pytest.mark.parametrize("restarted", [False, True])
def test_entries_are_asked_whether_they_are_chunks_from_the_first_chunk_of_the_topic_on(restarted: bool) -> None:
    """By every subscription, whenever it was made, and by none before (rule 3.6)."""

    def asked(place: LoadedTopic) -> dict[str, bool]:
        found = place.topic.subscriptions.items()
        return {name: subscription.pump.sender.chunk_of is not None for name, subscription in found}

    async def scenario(place: LoadedTopic) -> None:
        for name in ("first", "second"):
            opened(place, name, durable=True)
        assert asked(place) == {"first": False, "second": False}
        place.topic.chunking.published_one()
        assert asked(place) == {"first": True, "second": True}
        place.append("k", "a chunk")
        await place.durable()
        if restarted:
            await place.restart()
        opened(place, "later", durable=True)
        assert asked(place) == {"first": True, "second": True, "later": True}

    simulated(scenario)
