"""Non-persistent topics: publishing, the four subscription types, what is a no-op there, statistics and REST."""

from __future__ import annotations

from tests.conformance.answers import Json, select, shape
from tests.conformance.probe import NAMESPACE, Broker, probe
from tests.conformance.probes.stats import CONSUMER, PUBLISHER, SUBSCRIPTION, TOPIC
from tests.conformance.roles import more, open_producer, place, produce, subscribe, take, texts
from tests.conformance.wire import Wire


def topic(broker: Broker, name: str = "t") -> str:
    return broker.topic(name, "non-persistent")


def rest(broker: Broker, method: str, name: str, path: str, body: Json = None) -> Json:
    return broker.rest(method, f"non-persistent/{NAMESPACE}/{broker.local(name)}{path}", body).told()


def send(broker: Broker, wire: Wire, first: int, count: int, **metadata: Json) -> list[Json]:
    """Publish ``m<first>`` and so on to producer 1; the receipts."""
    receipts = []
    for number in range(first, first + count):
        wire.publish(1, number, f"m{number}", **metadata)
        receipts.append(broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR")))
    return receipts


@probe("13.2", "13.3", "13.5", "13.6")
def np_publish(broker: Broker) -> Json:
    """Receipts and ids, before anybody listens, to a consumer without permits, and to one with few."""
    wire, other = broker.wire(), broker.wire()
    said: dict[str, Json] = {"producer": broker.say(open_producer(wire, topic(broker)))}
    said["nobody"] = send(broker, wire, 0, 1)
    said["subscribe"] = broker.say(subscribe(other, topic(broker)))
    said["no permits"] = send(broker, wire, 1, 1)
    other.send("FLOW", consumer_id=1, messagePermits=2)
    other.alive()
    said["few permits"] = send(broker, wire, 2, 4)
    got = take(other, 2)
    said["got"] = [broker.say(each) for each in got]
    said["ids"] = [broker.normal.position(each.get("message_id")) for each in got]
    other.send("FLOW", consumer_id=1, messagePermits=10)
    other.alive()
    wire.publish_batch(1, 100, ["a", "b", "c"])
    said["batch"] = [broker.say(wire.receive("SEND_RECEIPT")), texts(take(other, 1))]
    return said


@probe("13.4")
def np_exclusive_batches(broker: Broker) -> Json:
    """Batches may overdraw permits; what comes then is lost."""
    wire, other = broker.wire(), broker.wire()
    open_producer(wire, topic(broker))
    subscribe(other, topic(broker), permits=2)
    other.alive()
    for number in range(3):
        wire.publish_batch(1, number, [f"{number}a", f"{number}b", f"{number}c"])
        wire.receive("SEND_RECEIPT")
    said: dict[str, Json] = {"got": more(other)}
    other.send("FLOW", consumer_id=1, messagePermits=2)
    other.alive()
    send(broker, wire, 10, 3)
    said["then"] = more(other)
    return said


@probe("13.4")
def np_shared(broker: Broker) -> Json:
    """Round robin one by one, over those with permits; none left is lost."""
    wire = broker.wire()
    open_producer(wire, topic(broker))
    consumers = [broker.wire() for _ in range(3)]
    for number, (consumer, permits) in enumerate(zip(consumers, (10, 1, 10), strict=True)):
        subscribe(consumer, topic(broker), "Shared", 1, consumer_name=f"c{number}", permits=permits)
        consumer.alive()
    send(broker, wire, 0, 7)
    return sorted([more(consumer) for consumer in consumers])


@probe("13.4", "0.18")
def np_key_shared(broker: Broker) -> Json:
    """Keys go to their consumer; those of one without permits are lost."""
    wire = broker.wire()
    open_producer(wire, topic(broker))
    consumers = [broker.wire() for _ in range(2)]
    for number, (consumer, permits) in enumerate(zip(consumers, (100, 0), strict=True)):
        subscribe(consumer, topic(broker), "Key_Shared", 1, consumer_name=f"c{number}", permits=permits)
        consumer.alive()
    for number in range(12):
        wire.publish(1, number, f"k{number % 6}-{number}", partition_key=f"k{number % 6}")
        wire.receive("SEND_RECEIPT")
    return [more(consumer) for consumer in consumers]


@probe("13.4", "5.4.5")
def np_failover(broker: Broker) -> Json:
    """Who is notified of what, who gets what, and how fast another takes over."""
    wire = broker.wire()
    open_producer(wire, topic(broker))
    first, second = broker.wire(), broker.wire()
    subscribe(first, topic(broker), "Failover", 1, consumer_name="b", permits=10)
    said: dict[str, Json] = {"first joins": [broker.say(each) for each in first.rest()]}
    subscribe(second, topic(broker), "Failover", 1, consumer_name="a", permits=10)
    said["second joins"] = [[broker.say(each) for each in one.rest()] for one in (first, second)]
    send(broker, wire, 0, 2)
    said["got"] = [more(first), more(second)]
    second.request("CLOSE_CONSUMER", consumer_id=1)
    send(broker, wire, 2, 2)
    said["after the second left"] = [broker.say(each) for each in first.rest()]
    return said


@probe("13.1", "5.1.2", "5.3.1")
def np_types(broker: Broker) -> Json:
    """Other types and other durability on one subscription."""
    wire = broker.wire()
    said: dict[str, Json] = {"first": broker.say(subscribe(wire, topic(broker), "Exclusive", 1, durable=False))}
    for number, kind in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared"), 2):
        said[kind] = broker.say(subscribe(wire, topic(broker), kind, number))
    said["reserved"] = broker.say(subscribe(wire, topic(broker), "Shared", 9, subscription="pulsar.dedup"))
    said["empty"] = broker.say(subscribe(wire, topic(broker), "Shared", 10, subscription=""))
    return said


def subscriptions(broker: Broker, name: str = "t") -> Json:
    stats = broker.rest("GET", f"non-persistent/{NAMESPACE}/{broker.local(name)}/stats").body
    return {name: len(each["consumers"]) for name, each in stats["subscriptions"].items()}


@probe("13.6")
def np_subscription_life(broker: Broker) -> Json:
    """What is left of a subscription when its consumers go in each way."""
    wire = broker.wire()
    open_producer(wire, topic(broker))
    said: dict[str, Json] = {}
    for number, durable in enumerate((True, False)):
        word = "durable" if durable else "non-durable"
        subscribe(wire, topic(broker), "Shared", 1, subscription=f"s{number}", durable=durable)
        subscribe(wire, topic(broker), "Shared", 2, subscription=f"s{number}", durable=durable)
        said[f"{word} two"] = subscriptions(broker)
        wire.request("CLOSE_CONSUMER", consumer_id=1)
        said[f"{word} one"] = subscriptions(broker)
        wire.request("CLOSE_CONSUMER", consumer_id=2)
        said[f"{word} none"] = subscriptions(broker)
    other = broker.wire()
    subscribe(other, topic(broker), "Shared", 1, subscription="lost")
    other.close()
    wire.alive()
    said["list"] = rest(broker, "GET", "t", "/subscriptions")
    return said


@probe("13.5", "13.11", "5.9.9")
def np_no_ops(broker: Broker) -> Json:
    """ACK, REDELIVER, SEEK, GET_LAST_MESSAGE_ID, CONSUMER_STATS and UNSUBSCRIBE."""
    wire, sender = broker.wire(), broker.wire()
    open_producer(sender, topic(broker))
    subscribe(wire, topic(broker), "Shared", permits=10)
    wire.alive()
    send(broker, sender, 0, 2)
    got = take(wire, 2)
    said: dict[str, Json] = {"got": texts(got)}
    wire.send("ACK", consumer_id=1, ack_type="Individual", message_id=[place(got[0])], request_id=900)
    said["ack"] = broker.say(wire.receive("ACK_RESPONSE"))
    wire.send("ACK", consumer_id=1, ack_type="Cumulative", message_id=[place(got[0])], request_id=901)
    said["cumulative"] = broker.say(wire.receive("ACK_RESPONSE"))
    wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
    said["redelivered"] = more(wire)
    said["last"] = broker.say(wire.request("GET_LAST_MESSAGE_ID", consumer_id=1))
    said["seek"] = broker.say(wire.request("SEEK", consumer_id=1, message_id={"ledgerId": 0, "entryId": 0}))
    said["seek time"] = broker.say(wire.request("SEEK", consumer_id=1, message_publish_time=1))
    said["seek nowhere"] = broker.say(wire.request("SEEK", consumer_id=1))
    said["then"] = [broker.say(each) for each in wire.rest()]
    stats = broker.say(wire.request("CONSUMER_STATS", consumer_id=1))
    if isinstance(stats, dict):
        found = stats.get("CONSUMER_STATS_RESPONSE", stats)
        stats = sorted(found) if isinstance(found, dict) else found
    said["stats"] = stats
    subscribe(wire, topic(broker), "Shared", 2)
    said["unsubscribe, two"] = broker.say(wire.request("UNSUBSCRIBE", consumer_id=1))
    wire.request("CLOSE_CONSUMER", consumer_id=2)
    said["unsubscribe"] = broker.say(wire.request("UNSUBSCRIBE", consumer_id=1))
    said["left"] = subscriptions(broker)
    return said


@probe("3.1.9", "13.9")
def np_producers(broker: Broker) -> Json:
    """An initial subscription, a taken name, a closed producer."""
    wire = broker.wire()
    said: dict[str, Json] = {
        "initial": broker.say(open_producer(wire, topic(broker), 1, initial_subscription_name="first")),
        "subscriptions": rest(broker, "GET", "t", "/subscriptions"),
        "named": broker.say(open_producer(wire, topic(broker), 2, producer_name="mine")),
        "again": broker.say(open_producer(broker.wire(), topic(broker), 2, producer_name="mine")),
    }
    said["close"] = broker.say(wire.request("CLOSE_PRODUCER", producer_id=2))
    said["after close"] = broker.say(open_producer(wire, topic(broker), 3, producer_name="mine"))
    return said


@probe("13.8", "11.4.11")
def np_stats(broker: Broker) -> Json:
    """Names and exact counters of the statistics; internal statistics."""
    wire = broker.wire()
    open_producer(wire, topic(broker), producer_name="p")
    for number, kind in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        subscribe(wire, topic(broker), kind, number, subscription=kind, consumer_name="c", permits=2)
    wire.alive()
    for number in range(3):
        wire.publish(1, number, f"m{number}", publish_time=1)
    wire.publish_batch(1, 3, ["a", "b"], publish_time=1)
    take(wire, 8, 2.0)
    stats = broker.rest("GET", f"non-persistent/{NAMESPACE}/{broker.local()}/stats").body
    said: dict[str, Json] = {"counters": select(stats, TOPIC)}
    parts = stats.pop("subscriptions")
    for kind, each in parts.items():
        said[kind] = {
            "subscription": select(each, SUBSCRIPTION),
            "consumers": [select(one, CONSUMER) for one in each["consumers"]],
            "names": sorted(each),
            "consumer names": sorted(each["consumers"][0]),
        }
    said["publisher"] = [select(one, PUBLISHER) for one in stats["publishers"]]
    said["shape"] = shape(stats)
    said["internal"] = rest(broker, "GET", "t", "/internalStats")
    return said


@probe("13.11", "11.4.1", "4.7.2")
def np_rest(broker: Broker) -> Json:
    """What REST answers for a non-persistent topic with a consumer."""
    wire = broker.wire()
    subscribe(wire, topic(broker), "Shared")
    said: dict[str, Json] = {}
    for method, path, body in (
        ("PUT", "", None),
        ("GET", "/subscriptions", None),
        ("GET", "/partitions", None),
        ("GET", "/lastMessageId", None),
        ("GET", "/messageid/1", None),
        ("POST", "/terminate", None),
        ("DELETE", "/truncate", None),
        ("GET", "/partitioned-stats", None),
        ("PUT", "/subscription/x", "latest"),
        ("POST", "/subscription/s/skip_all", None),
        ("POST", "/subscription/s/skip/1", None),
        ("POST", "/subscription/s/resetcursor/1", None),
        ("DELETE", "/subscription/missing", None),
        ("DELETE", "/subscription/s", None),
        ("DELETE", "/subscription/s?force=true", None),
        ("GET", "/stats?excludeConsumers=true&excludePublishers=true", None),
        ("DELETE", "", None),
        ("PUT", "/unload", None),
        ("DELETE", "?force=true", None),
    ):
        answer = rest(broker, method, "t", path, body)
        if answer["status"] == 500:
            answer = {"status": 500}
        if "stats" in path and isinstance(answer, dict):
            found = answer.get("body", {})
            answer = {"status": answer["status"], "subscriptions": sorted(found.get("subscriptions", {}))}
        said[f"{method} {path}"] = answer
    said["told"] = [broker.say(each) for each in wire.rest()]
    return said


@probe("13.1", "11.4.1")
def np_life(broker: Broker) -> Json:
    """Created by REST, listed, looked up, missing, deleted."""
    said: dict[str, Json] = {
        "create": rest(broker, "PUT", "t", ""),
        "again": rest(broker, "PUT", "t", ""),
        "stats": rest(broker, "GET", "missing", "/stats"),
        "delete missing": rest(broker, "DELETE", "missing", ""),
        "partitions of missing": rest(broker, "GET", "missing", "/partitions"),
    }
    wire = broker.wire()
    for name in ("t", "missing"):
        answer = wire.request("LOOKUP", topic=topic(broker, name))
        said[f"lookup {name}"] = str(answer.get("response"))
        said[f"metadata {name}"] = broker.say(wire.request("PARTITIONED_METADATA", topic=topic(broker, name)))
    for path in (f"non-persistent/{NAMESPACE}", f"persistent/{NAMESPACE}", f"namespaces/{NAMESPACE}/topics?mode=ALL",
                 f"namespaces/{NAMESPACE}/topics?mode=NON_PERSISTENT", f"namespaces/{NAMESPACE}/topics"):  # fmt: skip
        listed = broker.rest("GET", path).body
        said[path] = sorted(name for name in listed if f"/{broker.probe_id}-" in name)
    said["delete"] = rest(broker, "DELETE", "t", "")
    return said


@probe("13.1", "2.13", "11.4.1")
def np_partitioned(broker: Broker) -> Json:
    """A partitioned non-persistent topic: metadata, partitions, growth, statistics, deletion."""
    said: dict[str, Json] = {
        "create": rest(broker, "PUT", "t", "/partitions", 2),
        "get": rest(broker, "GET", "t", "/partitions"),
        "again": rest(broker, "PUT", "t", "/partitions", 2),
    }
    wire = broker.wire()
    said["metadata"] = broker.say(wire.request("PARTITIONED_METADATA", topic=topic(broker)))
    listed = broker.rest("GET", f"non-persistent/{NAMESPACE}").body
    said["listed"] = sorted(name for name in listed if f"/{broker.probe_id}-" in name)
    said["partitioned list"] = sorted(
        name
        for name in broker.rest("GET", f"non-persistent/{NAMESPACE}/partitioned").body
        if f"/{broker.probe_id}-" in name
    )
    part = topic(broker) + "-partition-0"
    subscribe(wire, part, permits=10)
    wire.alive()
    said["receipts"] = [broker.say(each) for each in produce(broker.wire(), part, ["m"])]
    got = take(wire, 1)
    said["got"] = [broker.say(each) for each in got]
    said["ids"] = [broker.normal.position(each.get("message_id")) for each in got]
    said["grow"] = rest(broker, "POST", "t", "/partitions", 3)
    said["beyond"] = broker.say(open_producer(broker.wire(), topic(broker) + "-partition-7"))
    listed = broker.rest("GET", f"non-persistent/{NAMESPACE}").body
    said["listed then"] = sorted(name for name in listed if f"/{broker.probe_id}-" in name)
    stats = broker.rest("GET", f"non-persistent/{NAMESPACE}/{broker.local()}/partitioned-stats")
    said["stats"] = [stats.status, shape(stats.body) if stats.status == 200 else stats.told()]
    said["delete"] = rest(broker, "DELETE", "t", "/partitions")
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    said["delete then"] = rest(broker, "DELETE", "t", "/partitions")
    return said


@probe("13.1", "2.11", profile="strict")
def np_not_created(broker: Broker) -> Json:
    """Without automatic creation of topics and subscriptions."""
    wire = broker.wire()
    said: dict[str, Json] = {
        "producer": broker.say(open_producer(wire, topic(broker))),
        "consumer": broker.say(subscribe(wire, topic(broker))),
        "create": rest(broker, "PUT", "t", ""),
        "producer then": broker.say(open_producer(wire, topic(broker))),
        "consumer then": broker.say(subscribe(wire, topic(broker))),
    }
    return said
