"""Two administrators at once, and topics that are deleted while the body of a request about them is on its way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from magnetar.admin.application import RestApplication, create_app
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import asked
from tests.support.late_metadata import made_late

TOPIC = TopicName.parse("persistent://public/default/t")
NAMESPACE_PATH = "/admin/v2/namespaces/public/default"
TOPIC_PATH = "/admin/v2/persistent/public/default/t"


async def made(store: MemoryMetadataStore) -> tuple[RestApplication, FakeBroker, Resources]:
    settings = Settings()
    resources = Resources(store, settings)
    await resources.ensure_defaults()
    broker = FakeBroker(resources, settings)
    await broker.create_topic(TOPIC, {})
    return create_app(broker.ports(), resources, settings), broker, resources


RATE = {"dispatchThrottlingRateInMsg": 7}
QUOTA = {"limitSize": 5, "policy": "producer_exception"}


@pytest.mark.parametrize(
    ("first", "second", "shown", "expected"),
    [
        (
            ("PUT", NAMESPACE_PATH + "/property/a/1"), ("PUT", NAMESPACE_PATH + "/property/b/2"),
            NAMESPACE_PATH + "/properties", {"a", "b"},
        ),
        (
            ("PUT", NAMESPACE_PATH + "/properties", {"a": "1"}), ("PUT", NAMESPACE_PATH + "/properties", {"b": "2"}),
            NAMESPACE_PATH + "/properties", {"a", "b"},
        ),
        (
            ("POST", NAMESPACE_PATH + "/backlogQuota", QUOTA),
            ("POST", NAMESPACE_PATH + "/backlogQuota?backlogQuotaType=message_age", QUOTA),
            NAMESPACE_PATH + "/backlogQuotaMap", {"destination_storage", "message_age"},
        ),
        (
            ("POST", TOPIC_PATH + "/backlogQuota", QUOTA),
            ("POST", TOPIC_PATH + "/backlogQuota?backlogQuotaType=message_age", QUOTA),
            TOPIC_PATH + "/backlogQuotaMap", {"destination_storage", "message_age"},
        ),
        (
            ("POST", TOPIC_PATH + "/a/dispatchRate", RATE), ("POST", TOPIC_PATH + "/b/dispatchRate", RATE),
            "", {"a", "b"},
        ),
    ],
)  # fmt: skip
def test_what_two_administrators_set_at_once_is_set_both(
    first: tuple[Any, ...], second: tuple[Any, ...], shown: str, expected: set[str]
) -> None:
    """Metadata that several brokers share take a while to be written, and each of these is a part of one record."""

    async def run() -> None:
        store = MemoryMetadataStore()
        app, _, resources = await made(store)
        made_late(store, lambda: asyncio.sleep(0))
        answers = await asyncio.gather(asked(app, *first), asked(app, *second))
        assert [status for status, _ in answers] == [204, 204]
        own: Any = resources.topic_policies.get(TOPIC).get("subscriptionDispatchRates")
        assert set((await asked(app, "GET", shown))[1] if shown else own) == expected

    asyncio.run(run())


def test_properties_of_a_topic_that_come_while_others_are_on_their_way_stay() -> None:
    async def run() -> None:
        app, broker, _ = await made(MemoryMetadataStore())

        async def other() -> None:
            assert (await asked(app, "PUT", TOPIC_PATH + "/properties", {"b": "2"}))[0] == 204

        assert (await asked(app, "PUT", TOPIC_PATH + "/properties", {"a": "1"}, other))[0] == 204
        assert broker.topic_properties(TOPIC) == {"a": "1", "b": "2"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}),
        ("PUT", "/schemaCompatibilityStrategy", "FULL"),
        ("POST", "/messageTTL", None),
        ("POST", "/backlogQuota", QUOTA),
        ("POST", "/s/dispatchRate", RATE),
        ("POST", "/permissions/alice", ["produce"]),
    ],
)
def test_nothing_is_set_on_a_topic_that_goes_while_the_body_comes(method: str, path: str, body: object) -> None:
    """The next topic of that name would have it: a policy, or a grant to somebody whom its owner does not know."""

    async def run() -> None:
        app, broker, resources = await made(MemoryMetadataStore())

        async def deleted() -> None:
            if broker.topic_exists(TOPIC):
                await broker.delete_topic(TOPIC, force=True)

        status, found = await asked(app, method, TOPIC_PATH + path, body, deleted)
        assert (status, list(found)) == (404, ["reason"])
        assert not resources.topic_policies.get(TOPIC)
        assert TOPIC.fqn not in json.dumps(resources.namespaces.policies(TOPIC.namespace))

    asyncio.run(run())
