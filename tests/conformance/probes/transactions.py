"""Transactions: the coordinator, isolation, reserved acknowledgements, what REST shows (rules of group 9)."""

from __future__ import annotations

import time

from tests.conformance.answers import Json, select, shape
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import (
    flow,
    more,
    open_producer,
    place,
    produce,
    produce_batch,
    subscribe,
    take,
    texts,
    until,
)
from tests.conformance.transaction_stage import ASSIGN, Stage
from tests.conformance.wire import command, entry, frame


@probe("9.1", "9.13", "1.3.16")
def transactions_off(broker: Broker) -> Json:
    """Every command of transactions on a broker that has none."""
    wire = broker.wire()
    txn = {"txnid_most_bits": 0, "txnid_least_bits": 0}
    subscribe(wire, broker.topic(), permits=10)
    produce(wire, broker.topic(), ["0"], producer_id=2)
    (got,) = take(wire, 1)
    said = [
        broker.say(wire.request("TC_CLIENT_CONNECT_REQUEST", tc_id=0)),
        broker.say(wire.request("NEW_TXN", tc_id=0, txn_ttl_seconds=1000)),
        broker.say(wire.request("ADD_PARTITION_TO_TXN", partitions=[broker.topic()], **txn)),
        broker.say(wire.request("END_TXN", txn_action="COMMIT", **txn)),
    ]
    open_producer(wire, broker.topic())
    wire.write(
        frame(command("SEND", producer_id=1, sequence_id=0, **txn), entry(b"x", checksum=None, magic=True, **txn))
    )
    said.append(broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR")))
    wire.send("ACK", consumer_id=1, ack_type="Individual", message_id=[place(got)], request_id=77, **txn)
    said.append(broker.say(wire.receive("ACK_RESPONSE")))
    return said


@probe("9.2", "9.6", profile="transactions")
def txn_requests(broker: Broker) -> Json:
    """Discovery; ids that are unknown, of another coordinator, or ended."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    open_producer(wire, topic)
    first, unknown = stage.begin(), {"txnid_most_bits": 0, "txnid_least_bits": 999_999}
    other = {"txnid_most_bits": 5, "txnid_least_bits": 1}
    said = [
        broker.say(wire.request("PARTITIONED_METADATA", topic=ASSIGN)),
        stage.say(wire.request("NEW_TXN", tc_id=5, txn_ttl_seconds=1000)),
        stage.say(wire.request("ADD_PARTITION_TO_TXN", partitions=[], **first)),
        stage.adds(first, topic),
        stage.adds(first, topic),
        stage.adds(first, topic, "nobody"),
        stage.end(first, "COMMIT"),
    ]
    for txn in (first, unknown, other):
        said += [stage.end(txn, "COMMIT"), stage.end(txn, "ABORT"), stage.adds(txn, topic), stage.adds(txn, topic, "s")]
    return said


@probe("9.9", "9.10", "9.18", profile="transactions")
def txn_isolation(broker: Broker) -> Json:
    """Two transactions and plain messages on one topic: who sees what when, ids, counters, positions."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    open_producer(wire, topic)
    one, two = stage.begin(), stage.begin()
    said: list[Json] = [stage.adds(one, topic), stage.adds(two, topic)]

    def note() -> None:
        said.append(
            {
                "got": more(wire),
                "last": broker.say(wire.request("GET_LAST_MESSAGE_ID", consumer_id=1)),
                "topic": stage.stats(
                    "t", "ongoingTxnCount", "abortedTxnCount", "committedTxnCount", "msgInCounter", "msgOutCounter",
                    "bytesInCounter",
                ),
                "subscription": stage.stats("t", "msgBacklog", "unackedMessages", subscription="s"),
            }
        )  # fmt: skip

    stage.plain("plain 0", 0)
    said.append(stage.send(one, "one 0", 1))
    stage.plain("plain 1", 2)
    stage.send(two, "two 0", 3)
    stage.send(one, "one 1", 4)
    note()
    said.append(stage.end(two, "COMMIT"))
    note()
    said.append(stage.end(one, "ABORT"))
    note()
    said.append(broker.say(stage.plain("plain 2", 5)))
    note()
    cursor = broker.topic_rest("GET", "t", "/internalStats").body["cursors"]["s"]
    said.append(stage.text(select(cursor, ["individuallyDeletedMessages"])))
    return said


@probe("9.8", profile="transactions")
def txn_timeout(broker: Broker) -> Json:
    """A transaction that no client ends."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    open_producer(wire, topic)
    txn = stage.begin(1500)
    stage.adds(txn, topic)
    stage.send(txn, "lost", 0)
    stage.plain("plain", 1)
    early = more(wire, 0.5)
    late = texts(take(wire, 1, 5.0))
    return [early, late, stage.end(txn, "COMMIT"), stage.stats("t", "abortedTxnCount")]


@probe("9.12", profile="transactions")
def txn_acks(broker: Broker) -> Json:
    """Individual acks on Shared: conflicts, redelivery meanwhile, commit, abort, a plain ack of a reserved message."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    produce(wire, topic, [str(number) for number in range(6)], producer_id=3)
    got = [place(each) for each in take(wire, 6)]
    one, two, three = stage.begin(), stage.begin(), stage.begin()
    for txn in (one, two, three):
        stage.adds(txn, topic, "s")
    return [
        stage.ack(one, got[0], got[1]),
        stage.stats("t", "unackedMessages", "msgBacklog", subscription="s"),
        stage.ack(two, got[2]),
        stage.ack(three, got[5]),
        stage.ack(two, got[0]),
        stage.ack(one, got[1]),
        sorted(each["MESSAGE"] for each in stage.redelivered()),
        stage.end(two, "ABORT"),
        stage.deliveries(),
        stage.end(one, "COMMIT"),
        stage.stats("t", "msgBacklog", subscription="s"),
        _plain_ack(stage, got[5]),
        stage.stats("t", "msgBacklog", subscription="s"),
        stage.end(three, "ABORT"),
        sorted(each["MESSAGE"] for each in stage.redelivered()),
        stage.ack(stage.begin(), got[0]),
        stage.ack(stage.begin(), {"ledgerId": 999_999, "entryId": 0}),
    ]


def _plain_ack(stage: Stage, place_: Json) -> Json:
    stage.wire.requests += 1
    number = stage.wire.requests
    stage.wire.send("ACK", consumer_id=1, ack_type="Individual", message_id=[place_], request_id=number)
    return stage.say(stage.wire.receive("ACK_RESPONSE"))


@probe("9.12", "5.8.3", profile="transactions")
def txn_redelivery_counts(broker: Broker) -> Json:
    """What aborts, and requests for redelivery meanwhile, do to the count: of a message, and of a part of a batch."""
    said: list[Json] = []
    for name, ack_set in (("message", {}), ("batch", {"ack_set": [0b110], "batch_size": 3})):
        stage = Stage(broker)
        wire, topic = stage.wire, broker.topic(name)
        subscribe(wire, topic, "Shared", permits=100)
        produce_batch(wire, topic, [["0", "1", "2"]], producer_id=3)
        got = {**place(take(wire, 1)[0]), **ack_set}
        for meanwhile in (False, False, True):
            txn = stage.begin()
            stage.adds(txn, topic, "s")
            said.append(stage.ack(txn, got))
            if meanwhile:
                said.append(stage.redelivered())
            said += [stage.end(txn, "ABORT"), stage.deliveries()]
        said.append(stage.redelivered())
    return said


@probe("9.12", "9.14", profile="transactions")
def txn_batch_acks(broker: Broker) -> Json:
    """Two transactions hold different messages of one batch."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    produce_batch(wire, topic, [["0", "1", "2", "3"]], producer_id=3)
    got = place(take(wire, 1)[0])
    one, two = stage.begin(), stage.begin()
    for txn in (one, two):
        stage.adds(txn, topic, "s")
    # bits that are 0 are acked
    return [
        stage.ack(one, {**got, "ack_set": [0b1110], "batch_size": 4}),
        stage.ack(two, {**got, "ack_set": [0b1100], "batch_size": 4}),
        stage.ack(two, {**got, "ack_set": [0b1101], "batch_size": 4}),
        stage.redelivered(),
        stage.end(one, "COMMIT"),
        stage.redelivered(),
        stage.end(two, "ABORT"),
        stage.redelivered(),
        stage.stats("t", "msgBacklog", subscription="s"),
    ]


@probe("9.12", profile="transactions")
def txn_cumulative_acks(broker: Broker) -> Json:
    """Cumulative acks on Exclusive: forward only, one transaction at a time; redelivery; both ends."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, permits=100)
    produce(wire, topic, [str(number) for number in range(6)], producer_id=3)
    got = [place(each) for each in take(wire, 6)]
    one, two = stage.begin(), stage.begin()
    for txn in (one, two):
        stage.adds(txn, topic, "s")
    said = [
        stage.ack(one, got[1], kind="Cumulative"),
        stage.ack(one, got[1], kind="Cumulative"),
        stage.ack(one, got[0], kind="Cumulative"),
        stage.ack(two, got[3], kind="Cumulative"),
        stage.ack(two, got[0]),
        stage.ack(one, got[2], kind="Cumulative"),
        stage.redelivered(),
        stage.end(one, "COMMIT"),
        stage.stats("t", "msgBacklog", subscription="s"),
        stage.redelivered(),
        stage.end(two, "ABORT"),
        stage.deliveries(),
    ]
    three = stage.begin()
    stage.adds(three, topic, "s")
    said += [
        stage.ack(three, got[2], kind="Cumulative"),
        stage.ack(three, got[3], got[4], kind="Cumulative"),
        stage.ack(three, got[4], kind="Cumulative"),
        stage.end(three, "ABORT"),
        stage.deliveries(),
        stage.redelivered(),
        stage.stats("t", "msgBacklog", subscription="s"),
    ]
    return said


@probe("9.12", profile="transactions")
def txn_cumulative_ack_behind_all_messages(broker: Broker) -> Json:
    """A cumulative ack of an entry, or a ledger, that is not written yet; both ends of the transaction."""
    said: dict[str, Json] = {}
    for name, field in (("entry", {"entryId": 77}), ("ledger", {"ledgerId": 999_999, "entryId": 0})):
        for action in ("COMMIT", "ABORT"):
            stage = Stage(broker)
            wire, local = stage.wire, f"{name}-{action.lower()}"
            topic = broker.topic(local)
            subscribe(wire, topic, permits=100)
            produce(wire, topic, [str(number) for number in range(3)], producer_id=3)
            got = [place(each) for each in take(wire, 3)]
            txn, other = stage.begin(), stage.begin()
            for one in (txn, other):
                stage.adds(one, topic, "s")
            said[local] = [
                stage.ack(txn, {**got[0], **field}, kind="Cumulative"),
                stage.stats(local, "msgBacklog", "unackedMessages", subscription="s"),
                stage.ack(other, got[1], kind="Cumulative"),
                stage.redelivered(),
                stage.end(txn, action),
                stage.stats(local, "msgBacklog", subscription="s"),
                stage.redelivered(),
            ]
            produce(wire, topic, ["3"], producer_id=4)
            said[local].append(stage.deliveries())
    return said


@probe("9.10", "9.12", "16.4", profile="transactions")
def txn_unload(broker: Broker) -> Json:
    """An unload between, then commit: produced and acknowledged messages."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    produce(wire, topic, ["0", "1", "2"], producer_id=3)
    got = [place(each) for each in take(wire, 3)]
    open_producer(wire, topic)
    txn = stage.begin()
    stage.adds(txn, topic)
    stage.adds(txn, topic, "s")
    said = [stage.send(txn, "x", 0), stage.ack(txn, got[1])]
    broker.topic_rest("PUT", "t", "/unload")
    time.sleep(0.5)
    list(wire.rest())
    wire.request("LOOKUP", topic=topic)
    until("SUCCESS", lambda: subscribe(wire, topic, "Shared"))
    flow(wire, 100)
    said += [sorted(more(wire, 1.0)), stage.end(txn, "COMMIT"), more(wire, 1.0)]
    said.append(stage.stats("t", "msgBacklog", subscription="s"))
    return said


@probe("9.17", profile="transactions")
def txn_rest(broker: Broker) -> Json:
    """What REST shows of an open transaction, and after it was aborted that way."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    open_producer(wire, topic)
    plain = place(stage.plain("plain", 0))
    take(wire, 1)
    here = f"public/default/{broker.local()}"
    said: list[Json] = [stage.v3(f"pendingAckStats/{here}/s"), stage.v3("coordinatorStats?coordinatorId=7")]
    txn = stage.begin()
    stage.adds(txn, topic)
    stage.adds(txn, topic, "s")
    stage.send(txn, "x", 1)
    stage.ack(txn, plain)
    numbers = f"{txn['txnid_most_bits']}/{txn['txnid_least_bits']}"
    metadata = stage.v3(f"transactionMetadata/{numbers}")
    metadata[1]["openTimestamp"] = type(metadata[1]["openTimestamp"]).__name__
    said += [
        metadata,
        stage.v3(f"transactionInBufferStats/{here}/{numbers}"),
        stage.v3(f"transactionInPendingAckStats/{here}/s/{numbers}"),
        stage.v3(f"positionStatsInPendingAck/{here}/s/{plain['ledgerId']}/{plain['entryId']}"),
        shape(stage.v3("coordinatorStats")),
        shape(stage.v3("coordinators")),
    ]
    buffer, pending = stage.v3(f"transactionBufferStats/{here}"), stage.v3(f"pendingAckStats/{here}/s")
    said += [
        select(buffer[1], ("state", "maxReadPosition", "ongoingTxnSize", "totalAbortedTransactions", "snapshotType")),
        sorted(buffer[1]),
        select(pending[1], ("state", "ongoingTxnSize")),
        sorted(pending[1]),
        stage.v3(f"abortTransaction/{numbers}", "POST")[0],
        stage.v3(f"transactionMetadata/{numbers}"),
        texts(take(wire, 1)),
        stage.v3("transactionBufferStats/public/default/nothing-of-that-name"),
    ]
    return said


@probe("9.19", profile="transactions")
def txn_not_open(broker: Broker) -> Json:
    """SEND and ACK of a transaction that does not exist."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    open_producer(wire, topic)
    plain = place(stage.plain("0", 0))
    take(wire, 1)
    unknown = {"txnid_most_bits": 0, "txnid_least_bits": 888_888}
    sent = stage.send(unknown, "x", 1)
    acked = stage.ack(unknown, plain)
    stage.plain("behind", 2)
    return {"sent": sent, "acked": acked, "behind": more(wire)}


@probe("9.19", profile="transactions")
def txn_not_added(broker: Broker) -> Json:
    """SEND and ACK on a topic that was never added to the transaction, then commit."""
    stage = Stage(broker)
    wire, topic = stage.wire, broker.topic()
    subscribe(wire, topic, "Shared", permits=100)
    open_producer(wire, topic)
    plain = place(stage.plain("0", 0))
    take(wire, 1)
    txn = stage.begin()
    said = [stage.send(txn, "x", 1), stage.ack(txn, plain), stage.end(txn, "COMMIT")]
    stage.plain("behind", 2)
    return [*said, more(wire), stage.stats("t", "msgBacklog", subscription="s")]
