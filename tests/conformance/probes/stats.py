"""Topic stats: which names they have and the counters that are exact."""

from __future__ import annotations

from tests.conformance.answers import Json, select, shape
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, open_producer, place, produce, produce_batch, subscribe, take
from tests.conformance.security_stage import Stage
from tests.conformance.tokens import SUPERUSER

TOPIC = (
    "msgInCounter", "bytesInCounter", "msgOutCounter", "bytesOutCounter", "storageSize", "backlogSize",
    "waitingPublishers", "deduplicationStatus", "msgChunkPublished",
)  # fmt: skip
SUBSCRIPTION = (
    "msgOutCounter", "bytesOutCounter", "msgBacklog", "msgBacklogNoDelayed", "unackedMessages", "type", "isDurable",
    "nonContiguousDeletedMessagesRanges", "blockedSubscriptionOnUnackedMsgs", "msgDelayed", "totalMsgExpired",
    "activeConsumerName", "allowOutOfOrderDelivery", "keySharedMode",
)  # fmt: skip
CONSUMER = ("consumerName", "availablePermits", "unackedMessages", "msgOutCounter", "avgMessagesPerEntry")
PUBLISHER = ("accessMode", "producerName", "producerId", "supportsPartialProducer")


@probe("11.4.11", "5.10.1", "5.10.2", "11.4.10", "5.7.12", "4.6.8")
def stats_shape(broker: Broker) -> Json:
    """Every name in the stats of a topic with a producer, a subscription of each type and a consumer, and its kind."""
    wire = broker.wire()
    open_producer(wire, broker.topic(), producer_name="p", metadata=[{"key": "a", "value": "b"}])
    for number, kind in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        subscribe(wire, broker.topic(), kind, number, subscription=kind, consumer_name="c", permits=10)
    wire.publish(1, 0, "m")
    take(wire, 4, 3.0)
    stats = broker.topic_rest("GET", "t", "/stats").body
    subscriptions = stats.pop("subscriptions")
    common = set.intersection(*(set(each) for each in subscriptions.values()))
    common_consumer = set.intersection(*(set(each["consumers"][0]) for each in subscriptions.values()))
    said: dict[str, Json] = {"topic": shape(stats)}
    shared = dict(subscriptions["Shared"])
    consumer = shared.pop("consumers")[0]
    said["subscription"] = shape({name: value for name, value in shared.items() if name in common})
    said["consumer"] = shape({name: value for name, value in consumer.items() if name in common_consumer})
    for kind, each in sorted(subscriptions.items()):
        said[f"{kind} also"] = [sorted(set(each) - common), sorted(set(each["consumers"][0]) - common_consumer)]
    return said


@probe("11.4.11", "5.10.1", "5.10.3", "11.4.13", "3.5.5", "3.4.11")
def stats_counters(broker: Broker) -> Json:
    """The exact counters: fresh, after messages and a batch, after acks with a hole."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    said: dict[str, Json] = {}

    def note(name: str) -> None:
        stats = broker.topic_rest("GET", "t", "/stats").body
        subscription = stats["subscriptions"]["s"]
        said[name] = {
            "topic": select(stats, TOPIC),
            "subscription": select(subscription, SUBSCRIPTION),
            "consumer": select(subscription["consumers"][0], CONSUMER),
        }

    note("fresh")
    # the size of what is stored must not depend on the clock or on a generated name
    produce(wire, broker.topic(), ["aaaa", "bbbb", "cccc"], publish_time=1700000000000)
    got = take(wire, 3)
    note("three messages")
    ack(wire, [place(got[1])])
    note("the second acked")
    ack(wire, [place(got[0])])
    note("the first acked")
    produce_batch(wire, broker.topic(), [["x", "y"]], 2)
    take(wire, 1)
    stats = broker.topic_rest("GET", "t", "/stats").body
    said["batch of two"] = {
        "msgInCounter": stats["msgInCounter"],
        "subscription": select(stats["subscriptions"]["s"], ("msgOutCounter", "msgBacklog", "unackedMessages")),
    }
    return said


@probe("5.10.1", "4.3.5")
def stats_without_consumer(broker: Broker) -> Json:
    """A subscription whose consumer left, one created by REST that never had any, and the topic's publishers."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Failover")
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    open_producer(wire, broker.topic(), producer_name="p")
    said: dict[str, Json] = {"PUT": broker.topic_rest("PUT", "t", "/subscription/made").told()}
    stats = broker.topic_rest("GET", "t", "/stats").body
    for name in ("s", "made"):
        said[name] = {**select(stats["subscriptions"][name], SUBSCRIPTION), "consumers": 0}
    said["publishers"] = [select(each, PUBLISHER) for each in stats["publishers"]]
    return said


@probe("11.4.4", "11.4.9", "11.4.12")
def stats_of_partitioned(broker: Broker) -> Json:
    """Stats of a partitioned parent, of a missing topic, and partitioned-stats."""
    broker.topic_rest("PUT", "t", "/partitions", 2)
    wire = broker.wire()
    produce(wire, broker.topic("t-partition-0"), ["m"])
    produce(wire, broker.topic("t-partition-1"), ["m", "m"], 2)
    whole = broker.topic_rest("GET", "t", "/partitioned-stats?perPartition=true").body
    return {
        "parent": broker.topic_rest("GET", "t", "/stats").told(),
        "missing": broker.topic_rest("GET", "missing", "/stats").told(),
        "metadata": whole["metadata"],
        "msgInCounter": whole["msgInCounter"],
        "partitions": {name: each["msgInCounter"] for name, each in sorted(whole["partitions"].items())},
    }


@probe("4.2.6")
def internal_stats(broker: Broker) -> Json:
    """The names in internalStats and its exact figures."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=10)
    produce(wire, broker.topic(), ["0", "1", "2"])
    got = take(wire, 3)
    ack(wire, [place(got[1])])
    stats = broker.topic_rest("GET", "t", "/internalStats").body
    exact = select(
        stats, ("entriesAddedCounter", "numberOfEntries", "currentLedgerEntries", "pendingAddEntriesCount", "state")
    )
    cursor = stats["cursors"]["s"]
    holes = cursor["individuallyDeletedMessages"].replace(str(place(got[0])["ledgerId"]), "L0")
    return {"exact": exact, "shape": shape({**stats, "cursors": {"s": cursor}}), "holes": holes}


@probe("5.10.2", "11.4.11", profile="security")
def stats_roles(broker: Broker) -> Json:
    """The role behind a consumer in statistics: its own, that of the proxy before it, and none of a producer."""
    stage = Stage(broker, "t", "p-t")
    wires = {
        "ns-consumer": stage.login("ns-consumer"),
        "proxy": stage.login("proxy", original_principal="ns-consumer"),
    }
    said: dict[str, Json] = {}
    for domain in ("persistent", "non-persistent"):
        name = stage.name("t", domain)
        sender = stage.login("ns-producer")
        opened = stage.producer(sender, name, producer_name=f"of-{domain}").kind
        joined = [
            stage.consumer(wire, name, role, consumer_id).kind
            for consumer_id, (role, wire) in enumerate(wires.items(), 2 * len(said))
        ]
        found = stage.rest("GET", f"{name.replace('://', '/')}/stats", SUPERUSER).body
        consumers = {key: each["consumers"][0].get("appId") for key, each in sorted(found["subscriptions"].items())}
        said[domain] = [opened, joined, consumers, ["appId" in each for each in found["publishers"]]]
    stage.consumer(wires["ns-consumer"], stage.name("p-t-partition-0"), "s", 9)
    path = f"{stage.name('p-t').replace('://', '/')}/partitioned-stats?perPartition=true"
    found = stage.rest("GET", path, SUPERUSER).body
    part = found["partitions"][stage.name("p-t-partition-0")]
    said["together, of the partition"] = [
        each["subscriptions"]["s"]["consumers"][0].get("appId") for each in (found, part)
    ]
    return said
