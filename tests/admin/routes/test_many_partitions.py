"""What is done to many partitions is done together, and what is shown of them comes in pieces."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from magnetar.admin.application import create_app
from magnetar.admin.http.bodies import Streamed, with_many
from magnetar.admin.routes.topics.topics import PARTS_PER_TURN, all_of
from magnetar.config.settings import Settings
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from tests.admin.conftest import world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.loop_turns import turns_of_others

PT = "/admin/v2/persistent/ref/main/pt"
PARENT = TopicName.parse("ref/main/pt")


class CountingBroker(FakeBroker):
    """Counts how many of its partitions are written to at the same time."""

    running = most = 0

    async def _written(self, *arguments: Any, **more: Any) -> bool:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return True

    create_subscription = delete_subscription = skip = set_replicated = _written  # type: ignore[assignment]
    reset_cursor = set_subscription_properties = expire = _written  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/subscription/new", "latest"),
        ("DELETE", "/subscription/s", None),
        ("POST", "/subscription/s/skip_all", None),
        ("POST", "/subscription/s/replicatedSubscriptionStatus", True),
        ("POST", "/subscription/s/resetcursor/1", None),
        ("PUT", "/subscription/s/properties", {"a": "b"}),
        ("POST", "/subscription/s/expireMessages/1", None),
        ("POST", "/all_subscription/expireMessages/1", None),
    ],
)
def test_partitions_share_a_write(method: str, path: str, body: object) -> None:
    """One after the other, a thousand partitions waited for a thousand writes."""
    made = world(Settings())
    broker = CountingBroker(made.resources)
    at_once(made.resources.partitioned.create(PARENT, 30))
    for part in PARENT.partitions(30):
        broker.topics[part] = {"s": EARLIEST}
    rest = RestClient(create_app(broker.ports(), made.resources, Settings()))
    assert rest.request(method, PT + path, json=body).status_code == 204
    assert broker.most == PARTS_PER_TURN


def test_the_first_error_is_raised_when_those_that_began_have_ended() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def one(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0)
        ended.append(number)
        if number in (3, 5):
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match=r"^3$"):
        asyncio.run(all_of(one(number) for number in range(100)))
    assert (begun, ended) == (list(range(PARTS_PER_TURN)), list(range(PARTS_PER_TURN)))


@pytest.mark.parametrize("members", [0, 1, 20, 21, 100])
@pytest.mark.parametrize("given", [True, False])
def test_many_members_come_in_pieces(members: int, given: bool) -> None:
    whole = {f"n{i}é": {"i": i, "text": '"}\ud800' if i == 3 else "}"} for i in range(members)}

    async def run() -> None:
        made = with_many({"a": 1, "parts": whole, "m": "é"}, "parts", whole if given else None)
        with turns_of_others() as turns:
            sent = b"".join([bytes(piece) async for piece in made.pieces]) if isinstance(made, Streamed) else made.body  # type: ignore[arg-type]
        assert json.loads(bytes(sent)) == {"a": 1, "m": "é", "parts": whole}
        assert turns.count >= members // 20 - 1

    asyncio.run(run())


def test_a_subscription_is_made_where_some_partitions_have_it() -> None:
    """It is refused only if all have it, so that asking again finishes what stopped half way."""
    made = world(Settings())
    at_once(made.resources.partitioned.create(PARENT, 3))
    for partition in PARENT.partitions(3):
        made.broker.topics[partition] = {}
    made.broker.topics[PARENT.partition(1)]["s"] = EARLIEST
    assert made.rest.put(PT + "/subscription/s", json="latest").status_code == 204
    assert all("s" in made.broker.topics[partition] for partition in PARENT.partitions(3))
    refused = made.rest.put(PT + "/subscription/s", json="latest")
    assert (refused.status_code, refused.json()["reason"]) == (409, "Subscription already exists for topic")
