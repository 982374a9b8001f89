"""Topics, partitions, subscriptions, statistics, look-ups over REST: rules 11.4, 11.5, 2.14, 2.20."""

from __future__ import annotations

import asyncio
import json

import pytest

from magnetar.admin.application import create_app
from magnetar.admin.http.bodies import Streamed, listed
from magnetar.admin.ports import StatsOptions
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.ids import EARLIEST, LATEST, Position
from magnetar.model.names import TopicName
from magnetar.model.policies import PartitionedTopic
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.loop_turns import turns_of_others
from tests.support.partitioned_record import left_behind

T = "/admin/v2/persistent/ref/main/"
NO_PARTITION = "Partitioned Topic Name should not contain '-partition-'"
TOO_MANY = (
    "Number of partitions should be less than or equal to 10000, which is as many as a broker serves of one topic, "
    "whatever maxNumPartitionsPerPartitionedTopic is"
)
JSON = {"content-type": "application/json"}


def add_topics(broker: FakeBroker, resources: Resources) -> None:
    plain, parent = TopicName.parse("ref/main/plain"), TopicName.parse("ref/main/pt4")
    at_once(resources.partitioned.create(parent, 4))
    broker.topics[plain] = {"s1": EARLIEST}
    for partition in parent.partitions(4):
        broker.topics[partition] = {"p1": EARLIEST}
    broker.topics[TopicName.parse("non-persistent://ref/main/np")] = {}


@pytest.fixture
def own_world(settings: Settings) -> World:
    made = world(settings)
    add_topics(made.broker, made.resources)
    return made


@pytest.fixture(scope="module")
def refusing() -> RestClient:
    made = world(Settings())
    add_topics(made.broker, made.resources)
    return made.rest


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("PUT", "plain", {}, 409, "This topic already exists"),
        ("PUT", "pt4", {}, 409, "This topic already exists"),
        (
            "PUT",
            "x-partition-1",
            {},
            412,
            "Can't create topic x-partition-1 with \"-partition-\" followed by numeric value if there isn't a "
            "partitioned topic x created.",
        ),
        (
            "DELETE",
            "pt4",
            None,
            409,
            "persistent://ref/main/pt4 is a partitioned topic, instead of calling delete topic, please call "
            "delete-partitioned-topic.",
        ),
        ("DELETE", "nope", None, 404, "Topic persistent://ref/main/nope not found"),
        ("DELETE", "nope?force=true", None, 404, "Topic persistent://ref/main/nope not found"),
        ("PUT", "nope/unload", None, 404, "Topic persistent://ref/main/nope not found"),
        ("PUT", "pt4/partitions", 4, 409, "This topic already exists"),
        ("PUT", "plain/partitions", 4, 409, "This topic already exists"),
        ("PUT", "pz/partitions", 0, 406, "Number of partitions should be more than 0"),
        ("PUT", "pz/partitions", -1, 406, "Number of partitions should be more than 0"),
        ("PUT", "pz/partitions", 10_001, 406, TOO_MANY),
        ("PUT", "pz/partitions", 1_000_000_000, 406, TOO_MANY),
        ("PUT", "pz/partitions", {"partitions": 1_000_000_000, "properties": {}}, 406, TOO_MANY),
        ("POST", "pt4/partitions", 1_000_000_000, 406, TOO_MANY),
        ("PUT", "x-partition-1/partitions", 2, 412, NO_PARTITION),
        ("PUT", "x-partition-1-x/partitions", 2, 412, NO_PARTITION),
        ("POST", "x-partition-1/partitions", 2, 412, NO_PARTITION),
        ("POST", "x-partition-1-x/createMissedPartitions", None, 412, NO_PARTITION),
        ("DELETE", "x-partition-1/partitions", None, 412, NO_PARTITION),
        ("DELETE", "pt4-partition-1/partitions", None, 412, NO_PARTITION),
        ("DELETE", "x-partition-1-x/partitions", None, 404, "Topic persistent://ref/main/x-partition-1-x not found."),
        ("GET", "pt4-partition-1/partitioned-stats", None, 412, NO_PARTITION),
        ("POST", "pt4/partitions", 2, 422, "Desired partitions 2 can't be less than the current partitions 4."),
        ("POST", "plain/partitions", 4, 409, "Topic persistent://ref/main/plain is not the partitioned topic."),
        ("POST", "nope/partitions", 4, 409, "Topic persistent://ref/main/nope is not the partitioned topic."),
        ("GET", "nope/partitions", None, 404, "Topic persistent://ref/main/nope not found"),
        ("DELETE", "nope/partitions", None, 404, "Topic persistent://ref/main/nope not found."),
        (
            "DELETE",
            "plain/partitions",
            None,
            409,
            "persistent://ref/main/plain is a non-partitioned topic. Instead of calling delete-partitioned-topic "
            "please call delete.",
        ),
        ("GET", "nope/stats", None, 404, "Topic persistent://ref/main/nope not found"),
        ("GET", "pt4/stats", None, 404, "Topic persistent://ref/main/pt4 not found"),
        ("GET", "pt4-partition-9/stats", None, 404, "Topic partitions were not yet created"),
        ("GET", "nope/internalStats", None, 404, "Topic persistent://ref/main/nope not found"),
        ("GET", "nope/partitioned-stats", None, 404, "Partitioned Topic persistent://ref/main/nope not found"),
        ("GET", "plain/partitioned-stats", None, 404, "Partitioned Topic persistent://ref/main/plain not found"),
        ("GET", "nope/subscriptions", None, 404, "Topic persistent://ref/main/nope not found"),
        ("PUT", "plain/subscription/s1", "earliest", 409, "Subscription already exists for topic"),
        (
            "DELETE",
            "plain/subscription/nope",
            None,
            404,
            "Subscription nope not found for topic persistent://ref/main/plain",
        ),
        ("DELETE", "pt4/subscription/nope", None, 404, "Subscription not found"),
        ("DELETE", "nope/subscription/s1", None, 404, "Topic persistent://ref/main/nope not found"),
    ],
)
def test_refusals_have_pulsars_status_and_reason(
    refusing: RestClient, method: str, path: str, body: object, status: int, reason: str
) -> None:
    refused = refusing.request(method, T + path, json=body)
    assert (refused.status_code, refused.json()) == (status, {"reason": reason})


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("PUT", "/admin/v2/persistent/ref/nope/t", 404, "Namespace not found"),
        ("PUT", "/admin/v2/persistent/nope/ns/t", 404, "Namespace not found"),
        ("PUT", "/admin/v2/persistent/ref/b@d/t", 412, "Namespace name is not valid"),
        ("GET", "/admin/v2/persistent/ref/nope", 404, "Namespace does not exist"),
        ("GET", "/admin/v2/persistent/ref/nope/partitioned", 404, "Namespace does not exist"),
        ("GET", "/lookup/v2/topic/persistent/ref/nope/t", 404, "Namespace not found"),
        (
            "PUT",
            "/admin/v2/non-persistent/ref/main/np/subscription/s",
            400,
            "Create subscription on non-persistent topic can only be done through client",
        ),
    ],
)
def test_refusals_for_names_outside_the_namespace(
    refusing: RestClient, method: str, path: str, status: int, reason: str
) -> None:
    refused = refusing.request(method, path)
    assert (refused.status_code, refused.json()) == (status, {"reason": reason})


def test_a_plain_topic_is_created_listed_and_deleted(rest: RestClient, broker: FakeBroker) -> None:
    topic = TopicName.parse("ref/main/tnew")
    assert rest.put(T + "tnew", json={"a": "b"}).status_code == 204
    assert broker.properties[topic] == {"a": "b"}
    broker.clients[topic] = 4
    refused = rest.delete(T + "tnew")
    assert (refused.status_code, refused.json()["reason"]) == (412, "Topic has 4 connected producers/consumers")
    assert rest.delete(T + "tnew?force=true").status_code == 204
    assert topic not in broker.topics


def test_names_are_decoded_part_by_part(rest: RestClient, broker: FakeBroker) -> None:
    assert rest.put(T + "a%20b%C3%A9%2525").status_code == 204
    assert TopicName.parse("persistent://ref/main/a bé%25") in broker.topics
    assert rest.put(T + "a%2Fb").status_code == 412


def test_a_partitioned_topic_is_created_grown_and_deleted(
    rest: RestClient, broker: FakeBroker, resources: Resources
) -> None:
    """The body of a partitioned topic is its number of partitions as bare JSON (rule 11.1.4)."""
    topic = TopicName.parse("ref/main/new")
    assert rest.put(T + "new/partitions", content=b"3", headers=JSON).status_code == 204
    assert rest.get(T + "new/partitions").json() == {"partitions": 3, "deleted": False}
    assert all(map(broker.topic_exists, topic.partitions(3)))
    assert rest.post(T + "new/partitions", content=b"3", headers=JSON).status_code == 204
    assert rest.post(T + "new/partitions", content=b"5", headers=JSON).status_code == 204
    assert all(map(broker.topic_exists, topic.partitions(5)))
    assert "persistent://ref/main/new" in rest.get("/admin/v2/persistent/ref/main/partitioned").json()
    assert rest.get("/admin/v2/non-persistent/ref/main/partitioned").json() == []
    broker.clients[topic.partition(4)] = 1
    refused = rest.delete(T + "new/partitions")
    assert (refused.status_code, refused.json()["reason"]) == (412, "Topic has active producers/subscriptions")
    assert all(map(broker.topic_exists, topic.partitions(5))), "a refused removal removes nothing"
    assert rest.delete(T + "new/partitions?force=true").status_code == 204
    assert resources.partitioned.count(topic) == 0
    assert not any(map(broker.topic_exists, topic.partitions(5)))


def test_no_way_to_more_partitions_than_a_broker_serves(rest: RestClient, resources: Resources) -> None:
    default = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 1_000_000_000}
    refused = rest.post("/admin/v2/namespaces/ref/main/autoTopicCreation", json=default)
    assert refused.status_code == 412
    assert "[defaultNumPartitions] cannot be more than 10000" in refused.json()["reason"]
    unstored = rest.put(T.replace("persistent", "non-persistent") + "np2/partitions", content=b"20000", headers=JSON)
    assert (unstored.status_code, unstored.json()["reason"]) == (406, TOO_MANY)
    assert rest.post("/admin/v2/namespaces/ref/main/maxTopicsPerNamespace", content=b"12", headers=JSON).is_success
    assert rest.post(T + "pt4/partitions", content=b"9", headers=JSON).status_code == 204
    assert rest.post(T + "pt4/partitions", content=b"12", headers=JSON).status_code == 412
    early = TopicName.parse("ref/main/early")
    at_once(left_behind(resources.partitioned, early, PartitionedTopic(1_000_000_000)))
    for call in (rest.post(T + "early/createMissedPartitions"), rest.put(T + "early/subscription/s")):
        assert (call.status_code, "delete it" in call.text) == (406, True)
    assert rest.get(T + "early/partitioned-stats").json()["partitions"] == {}
    assert rest.delete(T + "early/partitions").status_code == 204
    assert resources.partitioned.count(early) == 0


def test_partitions_with_properties(rest: RestClient) -> None:
    sent = rest.put(
        T + "vendor/partitions",
        content=b'{"partitions": 2, "properties": {"a": "b"}}',
        headers={"content-type": "application/vnd.partitioned-topic-metadata+json"},
    )
    assert sent.status_code == 204
    assert rest.get(T + "vendor/partitions").json() == {
        "partitions": 2,
        "deleted": False,
        "properties": {"a": "b"},
    }


@pytest.mark.parametrize(
    "content", [b'"x"', b"", b"null", b"true", b"1.5", b"{}", b'{"partitions": 1, "properties": 1}']
)
def test_partition_bodies_that_are_no_count(refusing: RestClient, content: bytes) -> None:
    refused = refusing.put(T + "pz/partitions", content=content, headers=JSON)
    assert refused.status_code == 400
    assert "expected" in refused.json()["reason"]


def test_topics_without_partitions_have_zero(rest: RestClient) -> None:
    """A topic that is not partitioned has 0 partitions (rules 2.7, 2.20)."""
    assert rest.get(T + "plain/partitions").json() == {"partitions": 0, "deleted": False}
    assert rest.get(T + "pt4-partition-0/partitions").json() == {"partitions": 0, "deleted": False}
    missing = rest.get(T + "nope2/partitions?checkAllowAutoCreation=true")
    assert missing.json() == {"partitions": 0, "deleted": False}


def test_unload_fans_out(rest: RestClient, broker: FakeBroker) -> None:
    assert rest.put(T + "pt4/unload").status_code == 204
    assert rest.put(T + "plain/unload").status_code == 204
    assert broker.unloaded == [*(f"pt4-partition-{i}" for i in range(4)), "plain"]


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"", LATEST),
        (b"null", LATEST),
        (b'"latest"', LATEST),
        (b'"earliest"', EARLIEST),
        (b'{"ledgerId": 3, "entryId": 4, "partitionIndex": -1}', Position(3, 4)),
        (b'{"ledgerId": 9223372036854775807, "entryId": 9223372036854775807}', LATEST),
        (b'{"ledgerId": -1, "entryId": -1}', EARLIEST),
    ],
)
def test_a_subscription_begins_at_the_given_message(
    rest: RestClient, broker: FakeBroker, content: bytes, start: Position
) -> None:
    assert rest.put(T + "plain/subscription/s%2F2", content=content, headers=JSON).status_code == 204
    assert broker.topics[TopicName.parse("ref/main/plain")]["s/2"] == start


def test_subscriptions_of_a_partitioned_topic(rest: RestClient, broker: FakeBroker) -> None:
    assert rest.put(T + "pt4/subscription/p2").status_code == 204
    assert rest.get(T + "pt4/subscriptions").json() == ["p1", "p2"]
    assert rest.get(T + "plain/subscriptions").json() == ["s1"]
    broker.busy_subscriptions.add("p2")
    refused = rest.delete(T + "pt4/subscription/p2")
    assert (refused.status_code, refused.json()["reason"]) == (412, "Subscription has active connected consumers")
    assert rest.delete(T + "pt4/subscription/p2?force=true").status_code == 204
    assert rest.get(T + "pt4/subscriptions").json() == ["p1"]


def test_options_of_statistics(rest: RestClient, broker: FakeBroker) -> None:
    stats = rest.get(T + "plain/stats?getPreciseBacklog=zzz&excludeConsumers=true").json()
    assert stats["publishers"][0]["producerName"] == "p"
    assert broker.options == StatsOptions(exclude_consumers=True)
    rest.get(T + "plain/stats?getPreciseBacklog=True&subscriptionBacklogSize=false&excludePublishers=true")
    assert broker.options == StatsOptions(
        precise_backlog=True, subscription_backlog_size=False, exclude_publishers=True
    )
    assert rest.get(T + "plain/internalStats").json()["state"] == "LedgerOpened"


def test_partitioned_stats_add_up(rest: RestClient) -> None:
    """Statistics of a partitioned topic are the sums of those of its partitions (rule 11.4.12)."""
    stats = rest.get(T + "pt4/partitioned-stats").json()
    assert stats["metadata"] == {"partitions": 4, "deleted": False}
    assert sorted(stats["partitions"]) == [f"persistent://ref/main/pt4-partition-{i}" for i in range(4)]
    assert (stats["msgRateIn"], stats["msgInCounter"], stats["averageMsgSize"]) == (6.0, 40, 5.5)
    assert stats["publishers"] == [{"msgRateIn": 6.0, "producerId": 7}]
    assert stats["subscriptions"]["p1"] == {
        "type": "Shared",
        "msgBacklog": 12,
        "isDurable": True,
        "lastAckedTimestamp": 0,
        "consumers": [{"consumerName": "c", "unackedMessages": 8}],
    }
    assert stats["earliestMsgPublishTimeInBacklogs"] == 1795266547904
    assert "ownerBroker" not in stats
    assert rest.get(T + "pt4/partitioned-stats?perPartition=false").json()["partitions"] == {}
    internal = rest.get(T + "pt4/partitioned-internalStats").json()
    assert len(internal["partitions"]) == 4


def test_partitioned_stats_without_any_partition_yet(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics.clear()
    stats = rest.get(T + "pt4/partitioned-stats").json()
    assert stats == {
        "publishers": [],
        "subscriptions": {},
        "metadata": {"partitions": 4, "deleted": False},
        "partitions": {},
    }


def test_lookup_answers_the_addresses_of_the_broker(rest: RestClient) -> None:
    """Lookup over HTTP answers the addresses; an unknown listener is answered as Pulsar does (rule 2.20)."""
    assert rest.get("/lookup/v2/topic/persistent/ref/main/plain").json() == {
        "brokerUrl": "pulsar://127.0.0.1:6650",
        "httpUrl": "http://127.0.0.1:8080",
        "nativeUrl": "pulsar://127.0.0.1:6650",
        "brokerUrlSsl": "",
    }
    refused = rest.get("/lookup/v2/topic/persistent/ref/main/plain?listenerName=nope")
    assert refused.status_code == 500
    assert refused.json()["reason"].endswith("Message: the broker do not have nope listener")


def test_bundle(rest: RestClient, resources: Resources) -> None:
    """Two names fall into the bundles that Apache Pulsar reported for them (rule 14.15)."""
    at_once(resources.namespaces.create("ref", "sc2"))
    path = "/lookup/v2/topic/persistent/ref/{}/bundle"
    assert rest.get(path.format("main/plain")).text == "0x40000000_0x80000000"
    assert rest.get(path.format("sc2/t")).text == "0xc0000000_0xffffffff"
    assert rest.get(path.format("nope/t")).text == "0x00000000_0xffffffff"


def test_a_long_list_comes_in_pieces() -> None:
    pieces = [[f'persistent://ref/main/{piece}-{number}é"' for number in range(300)] for piece in "abc"]

    class Many(FakeBroker):
        def names_of(self, *asked: object, system: bool) -> list[list[str]]:
            return [[], *pieces, []]

    made = world(Settings())
    many = Many(made.resources)
    rest = RestClient(create_app(many.ports(), made.resources, Settings()))
    for path in ("/admin/v2/persistent/ref/main", "/admin/v2/namespaces/ref/main/topics"):
        shown = rest.get(path)
        assert (shown.status_code, shown.headers["content-type"]) == (200, "application/json")
        assert shown.json() == [name for piece in pieces for name in piece]
        assert "content-length" not in shown.headers
    sent: list[str] = []

    async def run() -> int:
        answer = listed([*pieces, []])
        assert isinstance(answer, Streamed)
        with turns_of_others() as turns:
            sent.extend([str(part) async for part in answer.pieces])
        return turns.count

    assert asyncio.run(run()) >= 3
    assert json.loads("".join(sent)) == [name for piece in pieces for name in piece]
    assert len(sent) == 4


def test_shadow_topics_are_refused(rest: RestClient) -> None:
    shadow = {"PULSAR.SHADOW_SOURCE": "persistent://ref/main/t"}
    topic = "/admin/v2/persistent/ref/main/shadow"
    for refused in (
        rest.put(topic, json=shadow),
        rest.put(topic + "/partitions", json={"partitions": 2, "properties": shadow}),
    ):
        assert refused.status_code == 501
        assert "shadow topics are not available" in refused.json()["reason"]
    assert rest.get(topic + "/partitions").status_code == 404
