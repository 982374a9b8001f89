"""Ends, properties and upkeep of topics over REST, seen by real clients (rules 4.5 to 4.7, 8.2, 11.4, 11.5, 16.4)."""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClientError, payload_of
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

T = "persistent://public/default/t"
PENDING_ACK = "a__transaction_pending_ack"
SNAPSHOTS = "__transaction_buffer_snapshot"
URL = f"{TOPIC}/t"
NAMESPACE = "/admin/v2/namespaces/public/default"


async def publish(
    broker: RealBroker, topic: str, *payloads: bytes, published: int | None = None
) -> list[tuple[int, int]]:
    """Publish ``payloads``; return their positions."""
    client = await broker.client()
    producer = await client.producer(topic)
    places = []
    for i, payload in enumerate(payloads):
        time = broker.node.broker.service.clock.now_ms() if published is None else published
        entry = build_entry(EntryMetadata("p", i, time), payload)
        got = (await producer.receipt(producer.send(b"", entry=entry))).message_id
        assert got is not None
        places.append((got.ledger, got.entry))
    await client.close()
    return places


async def refused(opening: Awaitable[Any]) -> RawClientError:
    with pytest.raises(RawClientError) as caught:
        await opening
    return caught.value


def test_a_terminated_topic_stays_terminated_after_a_restart(tmp_path: Path) -> None:
    """A terminated topic takes no producer and shows its end to consumers, also after a restart
    (rules 4.7.1, 5.9.11, 3.1.6).
    """

    async def first(broker: RealBroker) -> None:
        client = await broker.client()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        last = await producer.publish(b"last")
        expected = {
            "ledgerId": last.ledger, "entryId": last.entry, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0,
        }  # fmt: skip
        assert await broker.ask("POST", f"{URL}/terminate") == (200, expected)
        await client.hear(c.CommandCloseProducer)
        got = await consumer.receive()
        await consumer.ack(got.message_id)
        await client.hear(c.CommandReachedEndOfTopic)
        assert await broker.ask("POST", f"{URL}/terminate") == (200, expected)
        error = await refused(client.producer(T))
        assert error.code is ServerError.TopicTerminatedError
        await client.close()

    async def second(broker: RealBroker) -> None:
        client = await broker.client()
        assert (await refused(client.producer(T))).code is ServerError.TopicTerminatedError
        consumer = await client.subscribe(T, "new", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        got = await consumer.receive()
        assert payload_of(got.entry) == b"last"
        await consumer.ack(got.message_id)
        await client.hear(c.CommandReachedEndOfTopic)
        assert (await broker.ask("GET", f"{URL}/properties")) == (200, {})
        await client.close()

    run_on_broker(tmp_path, first)
    run_on_broker(tmp_path, second)


def test_ends_of_a_partitioned_topic_reach_all_partitions(tmp_path: Path) -> None:
    """Operations on a partitioned topic go to all its partitions (rule 11.4.9)."""

    async def scenario(broker: RealBroker) -> None:
        url = f"{TOPIC}/pt"
        assert (await broker.ask("PUT", f"{url}/partitions", 2))[0] == 204
        assert await broker.ask("POST", f"{url}/terminate") == (
            405,
            {"reason": "Termination of a partitioned topic is not allowed"},
        )
        status, ids = await broker.ask("POST", f"{url}/terminate/partitions")
        assert (status, list(ids)) == (200, ["0", "1"])
        assert (ids["1"]["entryId"], ids["1"]["partitionIndex"]) == (-1, -1)
        assert (await broker.ask("PUT", f"{URL}"))[0] == 204
        assert (await broker.ask("POST", f"{URL}/terminate/partitions"))[0] == 405
        assert (await broker.ask("POST", f"{TOPIC}/none/terminate"))[0] == 404
        assert (await broker.ask("POST", f"{url}/createMissedPartitions"))[0] == 204
        assert (await broker.ask("POST", f"{URL}/createMissedPartitions"))[0] == 404

    run_on_broker(tmp_path, scenario)


def test_truncation_deletes_what_is_stored(tmp_path: Path) -> None:
    """Truncation moves every cursor to the end and deletes what is stored (rule 4.2.4)."""

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{URL}/subscription/s", "earliest")
        await publish(broker, T, b"a", b"b")
        assert (await broker.ask("DELETE", f"{URL}/truncate"))[0] == 204
        stats = await broker.stats("t")
        assert (stats["subscriptions"]["s"]["msgBacklog"], stats["storageSize"], stats["backlogSize"]) == (0, 0, 0)
        await publish(broker, T, b"c")
        client = await broker.client()
        consumer = await client.subscribe(T, "late", initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        assert payload_of((await consumer.receive()).entry) == b"c"
        await client.close()

    run_on_broker(tmp_path, scenario)


def test_properties_of_topics_and_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    async def first(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL, {"a": "b"}))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/properties", {"c": "d"}))[0] == 204
        assert await broker.ask("GET", f"{URL}/properties") == (200, {"a": "b", "c": "d"})
        assert (await broker.ask("DELETE", f"{URL}/properties?key=a"))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s"))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s/properties", {"x": "y"}))[0] == 204
        assert (await broker.ask("PUT", f"{TOPIC}/pt/partitions", 2))[0] == 204
        assert (await broker.ask("PUT", f"{TOPIC}/pt/properties", {"p": "q"}))[0] == 204
        assert (await broker.ask("GET", f"{TOPIC}/pt/subscription/s/properties"))[0] == 404

    async def second(broker: RealBroker) -> None:
        assert await broker.ask("GET", f"{URL}/properties") == (200, {"c": "d"})
        assert await broker.ask("GET", f"{URL}/subscription/s/properties") == (200, {"x": "y"})
        assert await broker.ask("GET", f"{TOPIC}/pt/properties") == (200, {"p": "q"})

    run_on_broker(tmp_path, first)
    run_on_broker(tmp_path, second)


def test_expiry_by_hand_stops_at_the_first_younger_message(tmp_path: Path) -> None:
    """Expiry by hand acknowledges the old messages before the first younger one (rules 11.5.6, 4.5.5)."""

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{URL}/subscription/s", "earliest")
        old = await publish(broker, T, b"old1", b"old2", published=1000)
        young = await publish(broker, T, b"young", b"younger")
        await publish(broker, T, b"old again", published=1000)
        path = f"{URL}/subscription/s/expireMessages"
        assert (await broker.ask("POST", f"{path}/3600"))[0] == 204
        assert (await broker.ask("POST", f"{URL}/all_subscription/expireMessages/3600"))[0] == 204, "there is a backlog"
        stats = (await broker.stats("t"))["subscriptions"]["s"]
        assert (stats["msgBacklog"], stats["totalMsgExpired"]) == (3, len(old))
        assert stats["lastExpireTimestamp"] > 0
        await broker.node.broker.rates.look()
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgRateExpired"] > 0
        assert (await broker.ask("POST", path, {"ledgerId": young[0][0], "entryId": young[0][1]}))[0] == 204
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgBacklog"] == 2
        reset = {"ledgerId": old[0][0], "entryId": old[0][1], "isExcluded": True}
        assert (await broker.ask("POST", f"{URL}/subscription/s/resetcursor", reset))[0] == 204
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgBacklog"] == 4
        status, said = await broker.ask("POST", f"{URL}/subscription/none/expireMessages/1")
        assert (status, said["reason"]) == (404, f"Subscription none not found for topic {T}")

    run_on_broker(tmp_path, scenario)


def test_a_topic_without_messages_reaches_as_far_as_what_is_before_them(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        path = f"{URL}/subscription/s/expireMessages"
        await broker.ask("PUT", f"{URL}/subscription/s", "earliest")
        for ledger, entry, status in ((-1, -1, 204), (2**40, 0, 409)):
            assert (await broker.ask("POST", path, {"ledgerId": ledger, "entryId": entry}))[0] == status
        ids = await publish(broker, T, b"trimmed")
        last = {"ledgerId": ids[0][0], "entryId": ids[0][1]}
        assert (await broker.ask("POST", path, last))[0] == 204
        await broker.ask("POST", f"{URL}/trim")
        assert (await broker.ask("POST", path, last))[0] == 204
        assert (await broker.ask("POST", path, {**last, "entryId": last["entryId"] + 1}))[0] == 409

    run_on_broker(tmp_path, scenario)


def test_expiry_by_hand_says_whether_there_was_anything_to_look_at(tmp_path: Path) -> None:
    """As Apache Pulsar 4.0.8 does: a backlog that is young is no refusal, unless consumers are at it (rule 11.5.6)."""

    async def scenario(broker: RealBroker) -> None:
        for name in ("s", "caught"):
            await broker.ask("PUT", f"{URL}/subscription/{name}", "earliest")
        ids = await publish(broker, T, *(b"x%d" % number for number in range(3)))
        await broker.ask("POST", f"{URL}/subscription/caught/skip_all")
        ledger, entry = ids[0][:2]

        async def expired(path: str, body: object = None) -> tuple[int, str]:
            status, said = await broker.ask("POST", f"{URL}/{path}", body)
            return status, said["reason"].partition(" due to ")[0] if status >= 400 else ""

        by_time = f"Expire message by timestamp not issued on topic {T} for subscription "
        by_place = f"Expire message by position not issued on topic {T} for subscription s"
        assert await expired("subscription/s/expireMessages/3600") == (204, "")
        assert await expired("subscription/caught/expireMessages/3600") == (409, f"{by_time}caught")
        at, beyond = ({"ledgerId": ledger, "entryId": place} for place in (entry, entry + 3))
        for _ in range(2):
            assert await expired("subscription/s/expireMessages", at) == (204, "")
        assert await expired("subscription/s/expireMessages", {**at, "ledgerId": -1, "entryId": -1}) == (204, "")
        assert await expired("subscription/s/expireMessages", beyond) == (409, by_place)
        assert await expired("subscription/s/expireMessages", "latest") == (409, by_place)
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgBacklog"] == 2

        # all of them are done before the refusal, which names the first that had nothing
        await publish(broker, T, b"old", published=1000)
        await broker.ask("POST", f"{URL}/subscription/s/skip/2")
        await broker.ask("POST", f"{URL}/subscription/caught/skip_all")
        assert await expired("all_subscription/expireMessages/3600") == (409, f"{by_time}caught")
        assert (await broker.stats("t"))["subscriptions"]["s"]["msgBacklog"] == 0

        await publish(broker, T, b"young")
        client = await broker.client()
        await client.subscribe(T, "s")
        assert await expired("subscription/s/expireMessages/3600") == (409, f"{by_time}s")

    run_on_broker(tmp_path, scenario)


def test_expiry_leaves_the_cursor_of_compaction(tmp_path: Path) -> None:
    """By hand it is refused with the next step; for all subscriptions it is left out."""

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{URL}/subscription/s", "earliest")
        await broker.ask("PUT", f"{NAMESPACE}/compactionThreshold", 100)
        await publish(broker, T, b"old", published=1000)
        status, said = await broker.ask("POST", f"{URL}/subscription/__compaction/expireMessages/3600")
        assert status == 409
        assert said["reason"].endswith(f"magnetar admin topics compact {T}")
        assert (await broker.ask("POST", f"{URL}/all_subscription/expireMessages/3600"))[0] == 204
        left = (await broker.stats("t"))["subscriptions"]
        assert (left["s"]["msgBacklog"], left["__compaction"]["msgBacklog"]) == (0, 1)

    run_on_broker(tmp_path, scenario)


def test_a_partitioned_topic_is_named_where_a_subscription_is_missing(tmp_path: Path) -> None:
    """Nothing is done then; what one partition has nothing of is refused after the others (rule 11.5.6)."""

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{TOPIC}/parts/partitions", 2)
        await broker.ask("PUT", f"{TOPIC}/parts/subscription/s", "earliest")
        parted = "persistent://public/default/parts"
        await publish(broker, f"{parted}-partition-1", b"old", published=1000)
        for what in ("expireMessages/1", "skip_all"):
            status, said = await broker.ask("POST", f"{TOPIC}/parts/subscription/none/{what}")
            assert (status, said["reason"]) == (404, f"Subscription none not found for topic {parted}")
        status, said = await broker.ask("POST", f"{TOPIC}/parts/subscription/s/expireMessages/1")
        assert (status, f"topic {parted}-partition-0 for" in said["reason"]) == (409, True)
        assert (await broker.stats("parts-partition-1"))["subscriptions"]["s"]["msgBacklog"] == 0

    run_on_broker(tmp_path, scenario)


def test_operations_on_a_namespace_reach_all_its_topics(tmp_path: Path) -> None:
    """Unload, clear and unsubscribe work on all topics of a namespace; an unload loses nothing (rules 11.3.8, 16.4)."""

    async def scenario(broker: RealBroker) -> None:
        for name in ("a", "b"):
            await broker.ask("PUT", f"{TOPIC}/{name}/subscription/s", "earliest")
            await publish(broker, f"persistent://public/default/{name}", b"x", b"y")
        assert (await broker.ask("PUT", f"{NAMESPACE}/unload"))[0] == 204
        assert broker.node.broker.service.topics == {}
        for name in ("a", "b"):
            assert (await broker.stats(name))["subscriptions"]["s"]["msgBacklog"] == 2
        bundles = (await broker.ask("GET", f"{NAMESPACE}/bundles"))[1]["boundaries"]
        for low, high in pairwise(bundles):
            assert (await broker.ask("POST", f"{NAMESPACE}/{low}_{high}/clearBacklog"))[0] == 204
        assert (await broker.stats("a"))["subscriptions"]["s"]["msgBacklog"] == 0
        assert (await broker.stats("b"))["subscriptions"]["s"]["msgBacklog"] == 0
        assert (await broker.ask("PUT", f"{NAMESPACE}/0x00000000_0x50000000/unload"))[0] == 412
        assert (await broker.ask("POST", f"{NAMESPACE}/unsubscribe/s"))[0] == 204
        assert (await broker.stats("a"))["subscriptions"] == {}

    run_on_broker(tmp_path, scenario)


def test_system_topics_are_not_for_clients(tmp_path: Path) -> None:
    """System topics that only the broker writes cannot be made over REST, nor by clients (rule 8.2)."""

    async def scenario(broker: RealBroker) -> None:
        snapshots, pending = (f"persistent://public/default/{name}" for name in (SNAPSHOTS, PENDING_ACK))
        own = {"reason": f"{snapshots} is a system topic, which only the broker makes"}
        for path in ("", "/partitions"):
            assert (await broker.ask("PUT", f"{TOPIC}/{SNAPSHOTS}{path}", 2 if path else None)) == (409, own)
            status, said = await broker.ask("PUT", f"{TOPIC}/{PENDING_ACK}{path}", 2 if path else None)
            assert (status, said) == (400, {"reason": "Cannot create topic in system topic format!"})
        # as Apache Pulsar 4.0.8 answers (probe system-topics)
        never = f"Can not create transaction system topic {pending}"
        assert (await broker.ask("PUT", f"{TOPIC}/{PENDING_ACK}/subscription/s")) == (409, {"reason": never})
        client = await broker.client()
        for opened in (client.producer(pending), client.subscribe(pending, "s")):
            error = await refused(opened)
            assert (error.code, error.message) == (ServerError.NotAllowedError, never)
        assert (await refused(client.producer(snapshots))).code is ServerError.TopicNotFound
        answer = await client.partitions(snapshots)
        assert answer.error is ServerError.TopicNotFound
        assert answer.message == f"Topic {snapshots} not found: it is a system topic, which only the broker makes"
        assert (await client.partitions(pending)).partitions == 0
        await client.close()

    run_on_broker(tmp_path, scenario)


def test_topics_per_namespace(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("POST", f"{NAMESPACE}/maxTopicsPerNamespace", 2))[0] == 204
        assert (await broker.ask("PUT", URL))[0] == 204
        full = {"reason": "Exceed maximum number of topics in namespace."}
        assert await broker.ask("PUT", f"{TOPIC}/pt/partitions", 2) == (412, full)
        assert (await broker.ask("PUT", f"{TOPIC}/u"))[0] == 204
        assert await broker.ask("PUT", f"{TOPIC}/v") == (409, full)
        assert await broker.ask("PUT", f"{TOPIC}/v/subscription/s") == (409, full)
        client = await broker.client()
        await refused(client.producer("persistent://public/default/w"))
        await client.close()

    run_on_broker(tmp_path, scenario)


QUOTA = {"limitSize": 400, "limitTime": -1}


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("producer_request_hold", ServerError.ProducerBlockedQuotaExceededError),
        ("producer_exception", ServerError.ProducerBlockedQuotaExceededException),
    ],
)
def test_a_topic_over_its_quota_refuses_producers(tmp_path: Path, policy: str, code: ServerError) -> None:
    """The check disconnects producers of a topic over its quota; new ones are refused until the backlog shrinks
    (rules 3.1.8, 4.6.4).
    """

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", f"{URL}/subscription/s", "earliest")
        assert (await broker.ask("POST", f"{URL}/backlogQuota", {**QUOTA, "policy": policy}))[0] == 204
        client = await broker.client()
        producer = await client.producer(T)
        for _ in range(4):
            await producer.publish(b"x" * 100)
        await client.hear(c.CommandCloseProducer)
        error = await refused(client.producer(T))
        assert error.code is code
        assert error.message.endswith("Cannot create producer on topic with backlog quota exceeded")
        assert (await broker.stats("t"))["backlogQuotaLimitSize"] == 400
        assert (await broker.ask("POST", f"{URL}/subscription/s/skip_all"))[0] == 204
        await client.producer(T)
        await client.close()

    run_on_broker(tmp_path, scenario, backlogQuotaCheckIntervalInSeconds=1)
