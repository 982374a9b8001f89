"""ACK of every kind, with batch-index acknowledgement off (`default`) and on (`suite`)."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import ack, flow, more, place, produce, produce_batch, subscribe, take, texts, until
from tests.conformance.wire import Frame, Wire


def again(broker: Broker, wire: Wire, topic: str, kind: str) -> Json:
    """What the subscription still owes: the consumer leaves and comes back."""
    wire.request("CLOSE_CONSUMER", consumer_id=1)
    subscribe(wire, topic, kind, permits=1000)
    return [broker.say(each) for each in wire.rest(0.5)]


def backlog_of(broker: Broker, name: str) -> int:
    count: int = broker.topic_rest("GET", name, "/stats").body["subscriptions"]["s"]["msgBacklog"]
    return count


@probe("5.7.1", "5.7.2", "5.7.3", "5.7.4", "5.7.10", "5.7.13")
def ack_kinds(broker: Broker) -> Json:
    """Individual, several at once, cumulative, repeated, of an unknown ledger, of a later entry; the responses."""
    said: dict[str, Json] = {}
    cases: dict[str, Callable[[Wire, list[Frame]], Frame]] = {
        "one": lambda wire, got: ack(wire, [place(got[2])]),
        "several": lambda wire, got: ack(wire, [place(got[1]), place(got[3])]),
        "cumulative": lambda wire, got: ack(wire, [place(got[2])], "Cumulative"),
        "twice": lambda wire, got: (ack(wire, [place(got[0])]), ack(wire, [place(got[0])]))[1],
        "unknown ledger": lambda wire, got: ack(wire, [{"ledgerId": 999999, "entryId": 0}]),
        "entry not written": lambda wire, got: ack(wire, [{**place(got[0]), "entryId": 77}]),
        "entry not written, cumulative": lambda wire, got: ack(wire, [{**place(got[0]), "entryId": 77}], "Cumulative"),
        "unknown ledger, cumulative": lambda wire, got: ack(wire, [{"ledgerId": 999999, "entryId": 0}], "Cumulative"),
        "cumulative back": lambda wire, got: (
            ack(wire, [place(got[3])], "Cumulative"), ack(wire, [place(got[1])], "Cumulative"),
        )[1],
        "two at once, cumulative": lambda wire, got: ack(wire, [place(got[0]), place(got[1])], "Cumulative"),
        "none": lambda wire, got: ack(wire, []),
    }  # fmt: skip
    for name, act in cases.items():
        wire = broker.wire()
        topic = broker.topic(name.replace(" ", "-").replace(",", ""))
        subscribe(wire, topic, permits=100)
        produce(wire, topic, [str(number) for number in range(5)])
        got = take(wire, 5)
        try:
            response = broker.say(act(wire, got))
        except Exception as error:
            said[name] = f"no response: {type(error).__name__}"
            continue
        said[name] = {"response": response, "again": again(broker, wire, topic, "Exclusive")}
    return said


@probe("5.7.10")
def ack_without_request_id(broker: Broker) -> Json:
    """An ack without request id: no reply, and it counts."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=100)
    produce(wire, broker.topic(), ["0", "1"])
    got = take(wire, 2)
    wire.send("ACK", consumer_id=1, ack_type="Individual", message_id=[place(got[0])])
    said = [broker.say(each) for each in wire.rest()]
    return {"said": said, "again": again(broker, wire, broker.topic(), "Exclusive")}


def batch_cases(broker: Broker, kind: str, *, counted: bool = True) -> dict[str, Json]:
    """Send the same acks on a batch of ten after a single message, one topic per case.

    ``counted``: the SEND of the batch names the number of messages.
    """
    said: dict[str, Json] = {}
    # bits that are 0 are acked: of ten, 1020 acks the first two
    cases: dict[str, tuple[str, Json]] = {
        "no ack_set": ("Individual", {}),
        "first two": ("Individual", {"ack_set": [1020]}),
        "all zero words": ("Individual", {"ack_set": [0]}),
        "last five": ("Individual", {"ack_set": [31]}),
        "with batch_index": ("Individual", {"batch_index": 3, "batch_size": 10}),
        "cumulative first two": ("Cumulative", {"ack_set": [1020]}),
        "cumulative, no ack_set": ("Cumulative", {}),
    }
    for name, (type_, extra) in cases.items():
        if kind == "Shared" and type_ == "Cumulative":
            continue
        wire = broker.wire()
        local = f"{kind}-{name}".replace(" ", "-").replace(",", "")
        topic = broker.topic(local)
        subscribe(wire, topic, kind, permits=1000)
        produce(wire, topic, ["before"])
        produce_batch(wire, topic, [[str(number) for number in range(10)]], counted=counted)
        got = take(wire, 2)
        response = broker.say(ack(wire, [{**place(got[1]), **extra}], type_))
        said[name] = {"response": response, "backlog": backlog_of(broker, local)}
        said[name]["again"] = again(broker, wire, topic, kind)
    return said


@probe("5.7.7", "5.7.2", "0.16")
def batch_ack_index_off(broker: Broker) -> Json:
    """Acks within a batch while the broker does not keep batch indexes."""
    return {kind: batch_cases(broker, kind) for kind in ("Exclusive", "Shared")}


@probe("5.7.6", "5.7.7", "5.7.8", profile="suite")
def batch_ack_index_on(broker: Broker) -> Json:
    """Acks within a batch while the broker keeps batch indexes."""
    return {kind: batch_cases(broker, kind) for kind in ("Exclusive", "Shared")}


@probe("5.7.6", "5.7.7", profile="suite")
def uncounted_batch_ack(broker: Broker) -> Json:
    """Acks within a batch whose SEND leaves out the number of messages; what it counts as in statistics."""
    said: dict[str, Json] = {kind: batch_cases(broker, kind, counted=False) for kind in ("Exclusive", "Shared")}
    wire = broker.wire()
    subscribe(wire, broker.topic("counted"), "Shared", permits=100)
    produce_batch(wire, broker.topic("counted"), [[str(number) for number in range(10)]], counted=False)
    got = take(wire, 1)

    def note(name: str) -> None:
        stats = broker.topic_rest("GET", "counted", "/stats").body
        of_topic = stats["subscriptions"]["s"]
        consumer = of_topic["consumers"][0]
        said[name] = {
            "topic": {key: stats[key] for key in ("msgInCounter", "msgOutCounter")},
            "subscription": {key: of_topic[key] for key in ("msgBacklog", "unackedMessages")},
            "consumer": {key: consumer[key] for key in ("availablePermits", "unackedMessages", "msgOutCounter")},
        }

    note("delivered")
    ack(wire, [{**place(got[0]), "ack_set": [1020]}])
    note("two acked")
    wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
    said["redelivered"] = [broker.say(each) for each in wire.rest(0.6)]
    note("redelivered twice")
    ack(wire, [place(got[0])])
    note("all acked")
    return said


@probe("5.7.7", "5.7.8", profile="suite")
def batch_ack_in_steps(broker: Broker) -> Json:
    """Indexes acked one after the other, redelivered between; the last one deletes the entry. Also over 64 messages."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=1000)
    produce_batch(wire, broker.topic(), [[str(number) for number in range(3)], [str(n) for n in range(70)]])
    got = take(wire, 2)
    said: list[Json] = []
    # each set acks one index and knows nothing of the others: the broker keeps what all of them leave
    for words in ([6], [5]):
        ack(wire, [{**place(got[0]), "ack_set": words}])
        wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1, message_ids=[place(got[0])])
        said.append([broker.say(each) for each in wire.rest(0.6)])
    ack(wire, [{**place(got[0]), "ack_set": [3]}])
    ack(wire, [{**place(got[1]), "ack_set": [0, 63]}])
    said.append(again(broker, wire, broker.topic(), "Shared"))
    return [
        [{**each, "MESSAGE": len(each["MESSAGE"])} if isinstance(each, dict) else each for each in step]
        for step in said
    ]


@probe("5.7.8", "5.1.10", profile="suite")
def batch_ack_permits(broker: Broker) -> Json:
    """What a partly acked batch costs in permits and unacked messages."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    produce_batch(wire, broker.topic(), [[str(number) for number in range(10)]])
    got = take(wire, 1)
    said: dict[str, Json] = {}

    def note(name: str) -> None:
        stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]["consumers"][0]
        said[name] = {key: stats[key] for key in ("availablePermits", "unackedMessages")}

    note("delivered")
    ack(wire, [{**place(got[0]), "ack_set": [1020]}])
    note("two acked")
    wire.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1, message_ids=[place(got[0])])
    take(wire, 1)
    note("redelivered")
    ack(wire, [place(got[0])])
    note("entry acked")
    return said


@probe("5.7.4", "5.7.5")
def unacked_counters(broker: Broker) -> Json:
    """unackedMessages and msgBacklog per type, before and after an ack."""
    said: dict[str, Json] = {}
    for kind in ("Exclusive", "Shared", "Key_Shared"):
        wire = broker.wire()
        topic = broker.topic(kind)
        subscribe(wire, topic, kind, permits=100)
        produce(wire, topic, ["0", "1", "2"], partition_key="k")
        got = take(wire, 3)
        rows = []
        for places in ([], [place(got[1])], [place(got[0])]):
            if places:
                ack(wire, places)
            stats = broker.topic_rest("GET", kind, "/stats").body["subscriptions"]["s"]
            rows.append([stats["unackedMessages"], stats["msgBacklog"], stats["consumers"][0]["unackedMessages"]])
        said[kind] = rows
    return said


@probe("4.3.3", "5.7.2")
def holes_survive_unload(broker: Broker) -> Json:
    """Individually acked messages after the topic was unloaded."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    produce(wire, broker.topic(), [str(number) for number in range(6)])
    got = take(wire, 6)
    ack(wire, [place(got[number]) for number in (0, 2, 4)])
    # Apache Pulsar responds before the mark-delete is stored: an unload at once forgets the ack of entry 0 now and then
    time.sleep(0.5)
    unload = broker.topic_rest("PUT", "t", "/unload").told()
    told = [broker.say(each) for each in wire.rest()]
    other = broker.wire()
    other.request("LOOKUP", topic=broker.topic())
    until("SUCCESS", lambda: subscribe(other, broker.topic(), "Shared"))
    flow(other, 100)
    return {"unload": unload, "told": told, "again": more(other), "texts": texts(got)}


@probe("5.7.3", "5.7.4", "4.3.5")
def subscriptions_are_independent(broker: Broker) -> Json:
    """Two subscriptions of one topic: an ack on one leaves the other alone."""
    wire = broker.wire()
    for number, name in enumerate(("s", "other")):
        subscribe(wire, broker.topic(), consumer_id=number, subscription=name, permits=10)
    produce(wire, broker.topic(), ["0", "1"])
    got = [each for each in take(wire, 4) if each.get("consumer_id") == 0]
    ack(wire, [place(got[1])], "Cumulative", 0)
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]
    return {name: each["msgBacklog"] for name, each in stats.items()}


@probe("5.7.2", "5.7.3", "11.4.11")
def ack_positions(broker: Broker) -> Json:
    """Mark-delete position and holes in internalStats after acks here and there."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), "Shared", permits=100)
    produce(wire, broker.topic(), [str(number) for number in range(12)])
    got = take(wire, 12)
    ledger = place(got[0])["ledgerId"]
    said: list[Json] = []
    for numbers in ((2, 3, 4), (6,), (0,), (1,), (9, 10, 11), (5, 7, 8)):
        ack(wire, [place(got[number]) for number in numbers])
        cursor = broker.topic_rest("GET", "t", "/internalStats").body["cursors"]["s"]
        names = ("markDeletePosition", "readPosition", "individuallyDeletedMessages")
        said.append([str(numbers), *(cursor[name].replace(f"{ledger}:", "L0:") for name in names)])
        said[-1].append(cursor["messagesConsumedCounter"])
    return said
