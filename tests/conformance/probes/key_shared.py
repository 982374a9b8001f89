"""Key_Shared: ranges, ring, sticky ranges, draining hashes."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, more, open_producer, place, subscribe, take, texts
from tests.conformance.wire import Frame, Wire, parse_entry

KEYS = [f"key-{number}" for number in range(40)]


def join(broker: Broker, names: list[str], **fields: Json) -> list[Wire]:
    """One connection per consumer, in order, each with permits to spare; consumer ids count from 1."""
    wires = []
    for number, name in enumerate(names, 1):
        wire = broker.wire()
        subscribe(wire, broker.topic(), "Key_Shared", number, consumer_name=name, permits=1000, **fields)
        wires.append(wire)
    return wires


def publish(wire: Wire, topic: str, keys: list[str], producer_id: int = 1, round_: int = 0) -> None:
    """One message per key, its text the key; waits for all receipts."""
    open_producer(wire, topic, producer_id)
    for sequence, key in enumerate(keys):
        wire.publish(producer_id, sequence, f"{key}#{round_}" if round_ else key, partition_key=key)
    for _ in keys:
        wire.receive("SEND_RECEIPT")
    wire.request("CLOSE_PRODUCER", producer_id=producer_id)


def ranges(broker: Broker) -> Json:
    """What the stats say of each consumer's hash ranges, in joining order; the long lists of a ring as their size."""
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    return {each["consumerName"]: each.get("keyHashRangeArrays") for each in stats["consumers"]}


@probe("5.6.4", "5.6.5", "5.6.18", "15.7", profile="suite")
def key_shared_range_split(broker: Broker) -> Json:
    """Hash ranges when four consumers join and two leave, without consistent hashing."""
    said: dict[str, Json] = {}
    wires: list[Wire] = []
    for number in range(1, 5):
        wire = broker.wire()
        subscribe(wire, broker.topic(), "Key_Shared", number, consumer_name=f"C{number}")
        wires.append(wire)
        said[f"C{number} joined"] = ranges(broker)
    for number in (4, 1):
        wires[number - 1].request("CLOSE_CONSUMER", consumer_id=number)
        said[f"C{number} left"] = ranges(broker)
    return said


@probe("5.6.2", "5.6.4", "15.3", profile="suite")
def key_shared_range_keys(broker: Broker) -> Json:
    """Which consumer of three gets which key, without consistent hashing."""
    wires = join(broker, ["C1", "C2", "C3"])
    publish(broker.wire(), broker.topic(), KEYS)
    return {f"C{number}": texts(list(wire.rest(0.6))) for number, wire in enumerate(wires, 1)}


@probe("5.6.7", "0.2", "0.3", "0.6", "5.6.17")
def key_shared_ring_ranges(broker: Broker) -> Json:
    """The ring of two consumers of one name and one of another, as the stats report it."""
    wires = [broker.wire() for _ in range(3)]
    for number, (wire, name) in enumerate(zip(wires, ("a", "b", "a"), strict=True), 1):
        subscribe(wire, broker.topic(), "Key_Shared", number, consumer_name=name)
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    return [{each["consumerName"]: each["keyHashRangeArrays"]} for each in stats["consumers"]]


@probe("5.6.7", "0.4")
def key_shared_ring_keys(broker: Broker) -> Json:
    """Which consumer of three gets which key, with consistent hashing; and when the second has left."""
    wires = join(broker, ["a", "b", "c"])
    publisher = broker.wire()
    publish(publisher, broker.topic(), KEYS)
    said: dict[str, Json] = {}
    held: list[list[Frame]] = [take(wire, len(KEYS), 0.8) for wire in wires]
    for name, frames in zip("abc", held, strict=True):
        said[name] = texts(frames)
    for number, (wire, frames) in enumerate(zip(wires, held, strict=True), 1):
        ack(wire, [place(each) for each in frames], consumer_id=number)
    wires[1].request("CLOSE_CONSUMER", consumer_id=2)
    publish(publisher, broker.topic(), KEYS, 2)
    said["a without b"] = texts(list(wires[0].rest(0.8)))
    said["c without b"] = texts(list(wires[2].rest(0.8)))
    return said


@probe("5.6.1", "0.15", "5.6.19")
def key_shared_key_sources(broker: Broker) -> Json:
    """Ordering key, base64 key, no key, batch: who of three gets each."""
    wires = join(broker, ["a", "b", "c"])
    publisher = broker.wire()
    open_producer(publisher, broker.topic(), producer_name="p")
    cases: list[dict[str, Json]] = [
        {"partition_key": "key-0"},
        {"partition_key": "key-1", "ordering_key": b"key-0"},
        {"partition_key": "a2V5LTA=", "partition_key_b64_encoded": True},
        {"partition_key": "a2V5LTA="},
        {"partition_key": ""},
        *({} for _ in range(6)),
    ]
    for sequence, fields in enumerate(cases):
        publisher.publish(1, sequence, f"case {sequence}", **fields)
        publisher.receive("SEND_RECEIPT")
    publisher.publish_batch(1, 20, ["batch 0", "batch 1"], partition_key="key-0")
    return {name: texts(list(wire.rest(0.6))) for name, wire in zip("abc", wires, strict=True)}


def sticky(pairs: list[tuple[int, int]]) -> Json:
    return {"keySharedMode": "STICKY", "hashRanges": [{"start": start, "end": end} for start, end in pairs]}


@probe("5.6.8")
def sticky_errors(broker: Broker) -> Json:
    """Ranges that are refused: none, upside down, overlapping with itself and with another's; and odd ones admitted."""
    wire = broker.wire()
    said: dict[str, Json] = {}
    cases: dict[str, list[tuple[int, int]]] = {
        "none": [],
        "start over end": [(5, 2)],
        "own overlap": [(500, 600), (550, 700)],
        "fine": [(0, 1000)],
        "conflict": [(1000, 2000)],
        "next to it": [(1001, 2000)],
        "beyond": [(60000, 70000)],
        "negative": [(-5, -1)],
    }
    for number, (name, pairs) in enumerate(cases.items()):
        said[name] = broker.say(subscribe(wire, broker.topic(), "Key_Shared", number, keySharedMeta=sticky(pairs)))
    return said


@probe("5.6.8", "0.4", "15.2", "5.6.3")
def sticky_delivery(broker: Broker) -> Json:
    """Keys by sticky ranges; a slot that no consumer covers waits until one does."""
    low, high = broker.wire(), broker.wire()
    subscribe(low, broker.topic(), "Key_Shared", 1, keySharedMeta=sticky([(0, 6066)]), permits=100)
    subscribe(high, broker.topic(), "Key_Shared", 2, keySharedMeta=sticky([(6068, 40000)]), permits=100)
    publisher = broker.wire()
    publish(publisher, broker.topic(), ["Order-3459134", "key1", "127", "abc", "key-0"])
    said: dict[str, Json] = {"0-6066": more(low), "6068-40000": more(high)}
    third = broker.wire()
    subscribe(third, broker.topic(), "Key_Shared", 3, keySharedMeta=sticky([(6067, 6067)]), permits=100)
    said["6067-6067 joined"] = more(third)
    said["stats"] = ranges(broker)
    return said


@probe("5.1.3")
def key_shared_modes_differ(broker: Broker) -> Json:
    """A consumer of another mode, and one that allows disorder, beside one that is connected."""
    wire = broker.wire()
    subscribe(wire, broker.topic("sticky"), "Key_Shared", 1, keySharedMeta=sticky([(0, 10)]))
    subscribe(wire, broker.topic("split"), "Key_Shared", 2)
    disorder = {"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True}
    return {
        "AUTO_SPLIT beside STICKY": broker.say(subscribe(wire, broker.topic("sticky"), "Key_Shared", 3)),
        "STICKY beside AUTO_SPLIT": broker.say(
            subscribe(wire, broker.topic("split"), "Key_Shared", 4, keySharedMeta=sticky([(0, 10)]))
        ),
        "disorder": broker.say(subscribe(wire, broker.topic("split"), "Key_Shared", 5, keySharedMeta=disorder)),
    }


@probe("5.6.9", "5.6.15", "0.5", profile="suite")
def draining_hashes(broker: Broker) -> Json:
    """A consumer joins while the first holds unacked messages: what flows, what waits, the stats, then the acks."""
    (first,) = join(broker, ["C1"])
    publisher = broker.wire()
    publish(publisher, broker.topic(), KEYS[:12])
    held = take(first, 12)
    second = broker.wire()
    subscribe(second, broker.topic(), "Key_Shared", 2, consumer_name="C2", permits=1000)
    publish(publisher, broker.topic(), KEYS[:16], 2, 2)
    said: dict[str, Json] = {"C1": more(first), "C2": more(second)}
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    for each in stats["consumers"]:
        said[f"{each['consumerName']} draining"] = {
            "count": each["drainingHashesCount"],
            "unacked": each["drainingHashesUnackedMessages"],
            "hashes": sorted((hash_["hash"], hash_["unackMsgs"]) for hash_ in each["drainingHashes"]),
        }
    ack(first, [place(each) for each in held[:6]])
    said["half acked: C2"] = sorted(more(second))
    ack(first, [place(each) for each in held[6:]])
    said["all acked: C2"] = sorted(more(second))
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    said["cleared"] = {each["consumerName"]: each["drainingHashesClearedTotal"] for each in stats["consumers"]}
    return said


@probe("5.6.9", profile="suite")
def draining_ends_with_the_owner(broker: Broker) -> Json:
    """The first consumer leaves while its hashes drain: everything comes to the second, per key in order."""
    (first,) = join(broker, ["C1"])
    publisher = broker.wire()
    publish(publisher, broker.topic(), KEYS[:8])
    take(first, 8)
    second = broker.wire()
    subscribe(second, broker.topic(), "Key_Shared", 2, consumer_name="C2", permits=1000)
    publish(publisher, broker.topic(), KEYS[:8], 2, 2)
    said: dict[str, Json] = {"before: C1": more(first), "before: C2": more(second)}
    first.close()
    got = more(second)
    said["after: C2"] = sorted(got)
    order = [got.index(key) < got.index(f"{key}#2") for key in KEYS[:8] if key in got and f"{key}#2" in got]
    said["per key in order"] = all(order)
    return said


@probe("5.6.13", profile="suite")
def key_shared_out_of_order(broker: Broker) -> Json:
    """allowOutOfOrderDelivery: nothing drains when a consumer joins."""
    meta: Json = {"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True}
    (first,) = join(broker, ["C1"], keySharedMeta=meta)
    publisher = broker.wire()
    publish(publisher, broker.topic(), KEYS[:12])
    take(first, 12)
    second = broker.wire()
    subscribe(second, broker.topic(), "Key_Shared", 2, consumer_name="C2", permits=1000, keySharedMeta=meta)
    publish(publisher, broker.topic(), KEYS[:12], 2, 2)
    return {"C1": more(first), "C2": more(second)}


@probe("5.6.14", "5.6.10", profile="suite")
def key_shared_redeliver(broker: Broker) -> Json:
    """Redelivery of one of three messages of a key: to the same consumer, with its count."""
    wires = join(broker, ["C1", "C2"])
    publisher = broker.wire()
    open_producer(publisher, broker.topic())
    for sequence in range(3):
        publisher.publish(1, sequence, str(sequence), partition_key="key1")
        publisher.receive("SEND_RECEIPT")
    got = [take(wire, 3, 0.8) for wire in wires]
    owner = 0 if got[0] else 1
    wires[owner].send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=owner + 1, message_ids=[place(got[owner][0])])
    return {
        "owner": f"C{owner + 1}",
        "first": [parse_entry(each.headers).payload.decode() for each in got[owner]],
        "again": [broker.say(each) for each in wires[owner].rest(0.8)],
        "other": more(wires[1 - owner]),
    }
