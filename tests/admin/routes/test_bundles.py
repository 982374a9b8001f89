"""Bundles: how they are divided, given up and listed; and all routes of bundles agree on what is one."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest

from magnetar.admin.routes.namespaces.bundle_division import BUNDLES_MAX, COUNT, POSITIONS, RANGE, divided
from magnetar.config.settings import Settings
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient

NS = "/admin/v2/namespaces/ref/main"
FIRST = "0x00000000_0x40000000"
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


def fqn(name: str) -> str:
    return f"persistent://ref/main/{name}"


@pytest.fixture(scope="module")
def shared() -> World:
    """One application for all tests here."""
    return world(Settings())


@pytest.fixture
def broker(shared: World) -> FakeBroker:
    shared.broker.topics, shared.broker.unloaded = {}, []
    return shared.broker


@pytest.fixture
def rest(shared: World, broker: FakeBroker) -> RestClient:
    """The namespace ref/main is as new: four bundles, no topics."""
    for path in (NS, "/admin/v2/namespaces/ref/one"):
        shared.rest.delete(path)
    assert shared.rest.put(NS).status_code == 204
    return shared.rest


@pytest.fixture
def topics(rest: RestClient, broker: FakeBroker) -> list[TopicName]:
    """Eight topics of the namespace, one of another, and one that is not persistent."""
    mine = [TopicName.parse(fqn(name)) for name in NAMES]
    mine.append(TopicName.parse("non-persistent://ref/main/np"))
    none: dict[str, Position] = {}
    broker.topics = dict.fromkeys([*mine, TopicName.parse("persistent://public/default/a")], none)
    return mine


def said(rest: RestClient, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status, and the reason or the whole answer."""
    answered = rest.request(method, path, json=body)
    found: Any = answered.json() if answered.content else None
    return answered.status_code, found["reason"] if answered.status_code >= 400 else found


def boundaries(rest: RestClient) -> list[str]:
    found = rest.get(NS + "/bundles").json()
    assert found["numBundles"] == len(found["boundaries"]) - 1
    return list(found["boundaries"])


def within(topics: list[TopicName], low: int, high: int) -> set[str]:
    return {topic.fqn for topic in topics if low <= crc32(topic.fqn.encode()) < high}


def test_a_split_halves_a_bundle_and_every_route_follows(rest: RestClient, topics: list[TopicName]) -> None:
    quota = "/admin/v2/resource-quotas/ref/main/"
    assert said(rest, "POST", quota + FIRST, {})[0] == 204
    assert said(rest, "PUT", f"{NS}/{FIRST}/split") == (204, None)
    assert boundaries(rest) == ["0x00000000", "0x20000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    gone = (
        "Invalid upper boundary for bundle ref/main/0x00000000_0x40000000. Expected upper boundary of "
        "ref/main/0x00000000_0x20000000"
    )
    for method, path in (
        ("PUT", f"{NS}/{FIRST}/unload"),
        ("POST", f"{NS}/{FIRST}/clearBacklog"),
        ("POST", f"{NS}/{FIRST}/unsubscribe/s"),
        ("PUT", f"{NS}/{FIRST}/split"),
        ("DELETE", f"{NS}/{FIRST}"),
        ("GET", f"{NS}/{FIRST}/topicHashPositions"),
        ("GET", f"/admin/v2/non-persistent/ref/main/{FIRST}"),
        ("GET", quota + FIRST),
    ):
        assert said(rest, method, path) == (412, gone), path
    for topic in topics:
        bundle = rest.get(f"/lookup/v2/topic/{topic.domain}/ref/main/{topic.local_name}/bundle").text
        low, _, high = bundle.partition("_")
        assert low in boundaries(rest)
        assert topic.fqn in within(topics, int(low, 16), int(high, 16))
        shown = rest.get(f"{NS}/{bundle}/topicHashPositions").json()["topicHashPositions"]
        assert shown[topic.fqn] == crc32(topic.fqn.encode())
        assert set(shown) == within(topics, int(low, 16), int(high, 16))
    assert said(rest, "GET", quota + "0x00000000_0x20000000")[1]["msgRateIn"] == 40.0


def test_split_in_the_middle_of_its_topics(rest: RestClient, topics: list[TopicName]) -> None:
    low, high = 0x80000000, 0xC0000000
    hashes = sorted(crc32(name.encode()) for name in within(topics, low, high))
    assert len(hashes) >= 2
    middle = hashes[len(hashes) // 2 - 1] + (hashes[len(hashes) // 2] - hashes[len(hashes) // 2 - 1]) // 2
    path = f"{NS}/0x80000000_0xc0000000/split?splitAlgorithmName=topic_count_equally_divide&unload=true"
    assert said(rest, "PUT", path) == (204, None)
    assert f"0x{middle:08x}" in boundaries(rest)


def test_unload_takes_the_topics_of_the_bundle(rest: RestClient, broker: FakeBroker, topics: list[TopicName]) -> None:
    assert said(rest, "PUT", f"{NS}/{FIRST}/split?unload=true") == (204, None)
    assert set(map(fqn, broker.unloaded)) == within(topics, 0, 0x40000000)


def test_split_at_positions(rest: RestClient) -> None:
    path = f"{NS}/0xc0000000_0xffffffff/split?splitAlgorithmName=specified_positions_divide"
    inside = [3500000001, 3500000000, "3500000000"]
    assert said(rest, "PUT", path, [*inside, 5, 0xC0000000, 0xFFFFFFFF, -1, 2**40]) == (204, None)
    assert boundaries(rest)[-4:] == ["0xc0000000", "0xd09dc300", "0xd09dc301", "0xffffffff"]
    assert said(rest, "PUT", f"{NS}/0xd09dc300_0xd09dc301/split") == (
        412,
        "the bundle 0xd09dc300_0xd09dc301 is too small to be split",
    )


def test_a_topic_on_a_boundary_belongs_to_the_bundle_that_begins_there(
    rest: RestClient, topics: list[TopicName]
) -> None:
    topic = topics[0]
    place = crc32(topic.fqn.encode())
    bundle = rest.get("/lookup/v2/topic/persistent/ref/main/a/bundle").text
    path = f"{NS}/{bundle}/split?splitAlgorithmName=specified_positions_divide"
    assert said(rest, "PUT", path, [place]) == (204, None)
    low, _, high = bundle.partition("_")
    below, above = f"{low}_0x{place:08x}", f"0x{place:08x}_{high}"
    assert rest.get("/lookup/v2/topic/persistent/ref/main/a/bundle").text == above
    assert topic.fqn in rest.get(f"{NS}/{above}/topicHashPositions").json()["topicHashPositions"]
    assert topic.fqn not in rest.get(f"{NS}/{below}/topicHashPositions").json()["topicHashPositions"]
    assert topic.fqn in rest.get(f"/admin/v2/persistent/ref/main?bundle={above}").json()


def test_the_largest_and_the_hottest_bundle(rest: RestClient, broker: FakeBroker, topics: list[TopicName]) -> None:
    by_bundle = [len(within(topics, low, low + 0x40000000)) for low in range(0, 1 << 32, 0x40000000)]
    assert said(rest, "PUT", f"{NS}/LARGEST/split") == (204, None)
    assert len(boundaries(rest)) == 6
    low = by_bundle.index(max(by_bundle)) * 0x40000000
    middle = low + ((0xFFFFFFFF if low == 0xC0000000 else low + 0x40000000) - low) // 2
    assert f"0x{middle:08x}" in boundaries(rest)
    assert said(rest, "PUT", f"{NS}/HOT/split") == (204, None)
    assert len(boundaries(rest)) == 7
    broker.topics = {}
    for word in ("LARGEST", "HOT"):
        assert said(rest, "PUT", f"{NS}/{word}/split") == (404, f"Bundle range {word} not found")


@pytest.mark.parametrize(
    ("bundle", "query", "body", "status", "reason"),
    [
        ("x", "", None, 412, "Invalid bundle range: x"),
        ("0x00000000", "", None, 412, "Invalid bundle range: 0x00000000"),
        ("largest", "", None, 412, "Invalid bundle range: largest"),
        ("0x0_0x1_0x2", "", None, 412, "Invalid bundle range: 0x0_0x1_0x2"),
        ("0x00000001_0x40000000", "", None, 412,
         "Cannot find bundle ref/main/0x00000001_0x40000000 in the bundles list"),
        ("0xffffffff_0xffffffff", "", None, 412,
         "Cannot find bundle ref/main/0xffffffff_0xffffffff in the bundles list"),
        (FIRST, "nope", None, 412,
         "Unsupported namespace bundle split algorithm, supported algorithms are [range_equally_divide, "
         "topic_count_equally_divide, specified_positions_divide, flow_or_qps_equally_divide]"),
        (FIRST, "specified_positions_divide", [], 412,
         "With specified_positions_divide split algorithm, splitBoundaries must not be empty"),
        (FIRST, "specified_positions_divide", [None], 400,
         "expected a position in the hash space as a JSON number, got null"),
        (FIRST, "specified_positions_divide", [1.5], 400,
         "expected a position in the hash space as a JSON number, got 1.5"),
        (FIRST, "specified_positions_divide", {"a": 1}, 400,
         'expected a list of positions in the hash space, got {"a": 1}'),
        (FIRST, "specified_positions_divide", [1] * 65537, 400,
         "expected 65536 positions in the hash space at most, got 65537"),
        (FIRST, "flow_or_qps_equally_divide", None, 412,
         "flow_or_qps_equally_divide needs the rates that a load manager measures, which a request does not bring; "
         "name another algorithm: range_equally_divide, topic_count_equally_divide or specified_positions_divide"),
    ],
)  # fmt: skip
def test_a_split_that_is_refused_changes_nothing(
    rest: RestClient, bundle: str, query: str, body: object, status: int, reason: str
) -> None:
    before = boundaries(rest)
    assert said(rest, "PUT", f"{NS}/{bundle}/split?splitAlgorithmName={query}", body) == (status, reason)
    assert boundaries(rest) == before


def test_missing_namespaces(rest: RestClient) -> None:
    missing = "/admin/v2/namespaces/ref/nope/"
    assert said(rest, "PUT", f"{missing}{FIRST}/split") == (404, "Namespace not found")
    for method, path in (("DELETE", missing + FIRST), ("GET", f"{missing}{FIRST}/topicHashPositions")):
        assert said(rest, method, path) == (404, "Namespace does not exist")


def test_deleting_a_bundle_lets_its_topics_go_and_keeps_it(
    rest: RestClient, broker: FakeBroker, topics: list[TopicName]
) -> None:
    assert within(topics, 0, 0x40000000)
    assert said(rest, "DELETE", f"{NS}/{FIRST}") == (409, "Cannot delete non empty bundle")
    assert broker.unloaded == []
    assert said(rest, "DELETE", f"{NS}/{FIRST}?force=true") == (204, None)
    assert set(map(fqn, broker.unloaded)) == within(topics, 0, 0x40000000)
    assert len(broker.topics) == len(topics) + 1
    broker.topics = {}
    assert said(rest, "DELETE", f"{NS}/{FIRST}") == (204, None)
    assert len(boundaries(rest)) == 5


def test_positions_of_named_topics(rest: RestClient, topics: list[TopicName]) -> None:
    whole = "/admin/v2/namespaces/ref/one"
    assert said(rest, "PUT", whole, {"bundles": {"numBundles": 1}})[0] == 204
    path = f"{NS}/0x80000000_0xc0000000/topicHashPositions"
    inside = sorted(within(topics, 0x80000000, 0xC0000000))
    asked = "&topics=".join([*inside[:1], fqn("absent"), "persistent://public/default/a"])
    shown = rest.get(f"{path}?topics={asked}").json()
    assert shown == {
        "namespace": "ref/main",
        "bundle": "0x80000000_0xc0000000",
        "topicHashPositions": {inside[0]: crc32(inside[0].encode())},
    }
    assert said(rest, "GET", path + "?topics=")[0] == 400
    assert said(rest, "GET", path + "?topics=x" * 1 + "&topics=x" * 1000)[0] == 400
    empty = rest.get(whole + "/0x00000000_0xffffffff/topicHashPositions").json()["topicHashPositions"]
    assert empty == {}


def test_the_non_persistent_topics_of_a_bundle(rest: RestClient, topics: list[TopicName]) -> None:
    name = "non-persistent://ref/main/np"
    own = crc32(name.encode()) >> 30
    for quarter in range(4):
        high = 0xFFFFFFFF if quarter == 3 else (quarter + 1) << 30
        listed = rest.get(f"/admin/v2/non-persistent/ref/main/0x{quarter << 30:08x}_0x{high:08x}").json()
        assert listed == ([name] if quarter == own else [])


def test_boundaries_stay_ordered_and_bounded() -> None:
    whole = [0, 0xFFFFFFFF]
    assert divided(whole, 0, 0xFFFFFFFF, RANGE, [], []) == [0, 0x7FFFFFFF, 0xFFFFFFFF]
    assert divided(whole, 0, 0xFFFFFFFF, COUNT, [7], []) == whole
    assert divided(whole, 0, 0xFFFFFFFF, COUNT, [9, 7, 100], []) == [0, 8, 0xFFFFFFFF]
    assert divided(whole, 0, 0xFFFFFFFF, COUNT, [7, 7], []) == [0, 7, 0xFFFFFFFF]
    assert divided(whole, 0, 0xFFFFFFFF, COUNT, [30, 10, 1, 2, 20], []) == [0, 6, 0xFFFFFFFF]
    with pytest.raises(PreconditionFailedError, match="65536 bundles at most"):
        divided(whole, 0, 0xFFFFFFFF, POSITIONS, [], list(range(1, BUNDLES_MAX + 1)))
