"""A restored broker answers as the one that was backed up while it ran: transactions, schemas, policies, partitions,
delayed messages, compaction, cursors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.storage.backup.data_directories import restore_directory
from magnetar.testing.rawclient import RawClient, RawProducer
from magnetar.testing.rawtransaction import RawTransaction
from tests.support.real_broker import RealBroker, real_broker

SETTINGS: Final = {"transactionCoordinatorEnabled": True, "acknowledgmentAtBatchIndexLevelEnabled": True}
ADMIN: Final = "/admin/v2"
SHOP: Final = "acme/shop"
FAR_MS: Final = 4_000_000_000_000
"""A time that does not come."""
IN_TRANSACTION: Final = 3
"""Messages of the open transaction."""

TOPICS: Final = ("inputs", "outputs", "held", "delayed", "keyed")
CURSOR: Final = (
    "markDeletePosition", "individuallyDeletedMessages", "totalNonContiguousDeletedMessagesRange", "properties",
)  # fmt: skip
"""What a cursor has on disk; the rest is of its readers and of when it was opened."""

Picture = dict[str, Any]


def fqn(topic: str) -> str:
    return f"persistent://{SHOP}/{topic}"


async def asked(broker: RealBroker, method: str, path: str, body: object = None) -> Any:
    status, found = await broker.ask(method, path, body)
    assert status < 300, (method, path, status, found)
    return found


async def set_policies(broker: RealBroker) -> None:
    """Set policies of a tenant, a namespace, a topic, and a partitioned topic."""
    cluster = (await asked(broker, "GET", f"{ADMIN}/clusters"))[0]
    tenant = {"adminRoles": ["boss"], "allowedClusters": [cluster]}
    await asked(broker, "PUT", f"{ADMIN}/tenants/acme", tenant)
    await asked(broker, "PUT", f"{ADMIN}/namespaces/{SHOP}")
    kept = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    await asked(broker, "POST", f"{ADMIN}/namespaces/{SHOP}/retention", kept)
    await asked(broker, "POST", f"{ADMIN}/namespaces/{SHOP}/permissions/clerk", ["consume"])
    await asked(broker, "PUT", f"{ADMIN}/persistent/{SHOP}/parts/partitions", 3)
    await asked(broker, "PUT", f"{ADMIN}/persistent/{SHOP}/ruled")
    for name, value in (("maxProducers", 7), ("messageTTL", "?messageTTL=3600"), ("maxConsumers", 8)):
        query, body = (value, None) if isinstance(value, str) else ("", value)
        await asked(broker, "POST", f"{ADMIN}/persistent/{SHOP}/ruled/{name}{query}", body)


async def register_schemas(broker: RealBroker) -> None:
    """Two versions, and one that was deleted."""
    for fields in ([("a", '"string"')], [("a", '"string"'), ("b", '["null","int"],"default":null')]):
        record = ",".join(f'{{"name":"{name}","type":{kind}}}' for name, kind in fields)
        text = f'{{"type":"record","name":"R","fields":[{record}]}}'
        body = {"type": "AVRO", "schema": text, "properties": {}}
        await asked(broker, "POST", f"{ADMIN}/schemas/{SHOP}/described/schema", body)
    body = {"type": "STRING", "schema": "", "properties": {}}
    await asked(broker, "POST", f"{ADMIN}/schemas/{SHOP}/undescribed/schema", body)
    await asked(broker, "DELETE", f"{ADMIN}/schemas/{SHOP}/undescribed/schema")


async def transact(client: RawClient) -> RawTransaction:
    """One committed, one aborted, one open: messages and acknowledgements. Returns the open one."""
    inputs = await client.producer(fqn("inputs"))
    for number in range(3):
        await inputs.publish(b"input %d" % number)
    consumer = await client.subscribe(
        fqn("inputs"), "t", c.SubType.Shared, initial_position=c.InitialPosition.Earliest
    )  # fmt: skip
    consumer.flow(10)
    outputs = await client.producer(fqn("outputs"))
    await outputs.publish(b"before")
    ends = ("committed", "aborted", "open")
    each = [await RawTransaction.begin(client, 3_600_000) for _ in ends]
    for txn, end in zip(each, ends, strict=True):
        await txn.add_partitions(fqn("outputs"))
        await txn.add_subscription(fqn("inputs"), "t")
        for number in range(IN_TRANSACTION):
            await txn.publish(outputs, f"{end} {number}".encode())
        await txn.ack(consumer, (await consumer.receive()).message_id)
        if end == "committed":
            await txn.commit()
        elif end == "aborted":
            await txn.abort()
    await outputs.publish(b"after")
    return each[-1]


def batch(producer: RawProducer, size: int) -> bytes:
    singles = [(SingleMessageMetadata(partition_key=f"k{number}"), b"%d" % number) for number in range(size)]
    metadata = EntryMetadata(producer.name, producer.next_sequence_id, 1_000, num_messages_in_batch=size)
    return build_entry(metadata, join_batch(singles))


async def acknowledge(client: RawClient) -> None:
    """Ten entries with holes at 1, 4 and 5; a batch of which two of four messages are acknowledged."""
    producer = await client.producer(fqn("held"))
    consumer = await client.subscribe(fqn("held"), "s", c.SubType.Shared)
    places = [await producer.publish(b"%d" % number) for number in range(10)]
    receipt = await producer.receipt(producer.send(b"", entry=batch(producer, 4), count=4))
    consumer.flow(20)
    for _ in range(11):
        await consumer.receive()
    await consumer.ack(places[0])
    await consumer.ack(*(places[number] for number in (1, 4, 5)))
    whole = receipt.message_id
    assert whole is not None
    await consumer.ack(c.MessageIdData(whole.ledger, whole.entry, ack_set=(0b1010,), batch_size=4))
    await consumer.close()


async def delay(client: RawClient) -> None:
    producer = await client.producer(fqn("delayed"))
    await client.subscribe(fqn("delayed"), "s", c.SubType.Shared)
    metadata = EntryMetadata(producer.name, producer.next_sequence_id, 1_000, deliver_at_time=FAR_MS)
    await producer.receipt(producer.send(b"", entry=build_entry(metadata, b"later")))
    await producer.publish(b"now")


async def compact(broker: RealBroker, client: RawClient) -> None:
    producer = await client.producer(fqn("keyed"))
    for number in range(9):
        await producer.publish(b"%d" % number, key=f"key {number % 3}")
    path = f"{ADMIN}/persistent/{SHOP}/keyed/compaction"
    await asked(broker, "PUT", path)
    topic = broker.node.broker.service.topics[fqn("keyed")]
    await topic.compaction().wait()
    assert (await asked(broker, "GET", path))["status"] == "SUCCESS"
    await producer.publish(b"behind", key="key 1")


async def stored(broker: RealBroker, topic: str) -> list[Any]:
    """Every entry, also what stands in the topic of transactions that are open or aborted."""
    log = broker.node.broker.service.topics[fqn(topic)].log
    path = f"{ADMIN}/persistent/{SHOP}/{topic}/examinemessage?initialPosition=earliest&messagePosition="
    return [await asked(broker, "GET", f"{path}{place + 1}") for place in range(log.end - log.first)]


async def delivered(client: RawClient, topic: str, subscription: str, count: int, **options: Any) -> list[Any]:
    """The first messages that a consumer is sent: their places, what is left of batches, their entries."""
    consumer = await client.subscribe(fqn(topic), subscription, c.SubType.Shared, **options)
    consumer.flow(100)
    got = [await consumer.receive() for _ in range(count)]
    await consumer.close()
    return sorted((m.message_id.ledger, m.message_id.entry, m.ack_set, bytes(m.entry)) for m in got)


async def compacted(client: RawClient) -> list[Any]:
    consumer = await client.subscribe(
        fqn("keyed"), "reader", c.SubType.Exclusive, durable=False, read_compacted=True,
        initial_position=c.InitialPosition.Earliest,
    )  # fmt: skip
    consumer.flow(100)
    got = [await consumer.receive() for _ in range(4)]
    await consumer.close()
    return [(m.message_id.ledger, m.message_id.entry, bytes(m.entry)) for m in got]


async def pictured(broker: RealBroker, txn: c.TxnId) -> Picture:
    """What there is to compare."""
    client = await broker.client()
    transactions = f"{ADMIN[:-1]}3/transactions"
    found: Picture = {
        "delivered of holes and batches": await delivered(client, "held", "s", 7),
        "delivered of delayed": await delivered(client, "delayed", "s", 1),
        "delivered of transactions": await delivered(
            client, "outputs", "new", 1 + IN_TRANSACTION, initial_position=c.InitialPosition.Earliest, durable=False
        ),
        "compacted": await compacted(client),
        "open transaction": await asked(broker, "GET", f"{transactions}/transactionMetadata/{txn.most}/{txn.least}"),
        "pending acknowledgements": (await asked(broker, "GET", f"{transactions}/pendingAckStats/{SHOP}/inputs/t"))[
            "ongoingTxnSize"
        ],
    }
    await client.close()
    for topic in TOPICS:
        stats = await asked(broker, "GET", f"{ADMIN}/persistent/{SHOP}/{topic}/stats")
        found[f"subscriptions of {topic}"] = {
            name: (each["msgBacklog"], each["msgDelayed"]) for name, each in stats["subscriptions"].items()
        }
        found[f"stored in {topic}"] = await stored(broker, topic)
        internal = await asked(broker, "GET", f"{ADMIN}/persistent/{SHOP}/{topic}/internalStats")
        found[f"cursors of {topic}"] = {
            name: {key: cursor[key] for key in CURSOR} for name, cursor in internal["cursors"].items()
        }
        found[f"ledgers of {topic}"] = {
            name: internal[name] for name in ("numberOfEntries", "lastConfirmedEntry", "compactedLedger")
        }
        found[f"properties of {topic}"] = await asked(broker, "GET", f"{ADMIN}/persistent/{SHOP}/{topic}/properties")
    for name, path in {
        "tenant": "tenants/acme", "namespaces": "namespaces/acme", "policies of the namespace": f"namespaces/{SHOP}",
        "schemas": f"schemas/{SHOP}/described/schemas", "versions of schemas": f"schemas/{SHOP}/described/metadata",
        "versions of a deleted schema": f"schemas/{SHOP}/undescribed/metadata",
        "maxProducers of a topic": f"persistent/{SHOP}/ruled/maxProducers",
        "messageTTL of a topic": f"persistent/{SHOP}/ruled/messageTTL",
        "maxConsumers of a topic": f"persistent/{SHOP}/ruled/maxConsumers",
        "partitioned topics": f"persistent/{SHOP}/partitioned", "partitions": f"persistent/{SHOP}/parts/partitions",
        "topics": f"persistent/{SHOP}",
    }.items():  # fmt: skip
        found[name] = await asked(broker, "GET", f"{ADMIN}/{path}")
    return found


class Load:
    """Publishes to one topic and acknowledges, until it is told to stop: a backup is taken of a broker that works."""

    def __init__(self) -> None:
        self.receipted = 0
        self.stopped = False

    async def run(self, client: RawClient) -> None:
        producer = await client.producer(fqn("busy"))
        consumer = await client.subscribe(fqn("busy"), "s", c.SubType.Shared)
        consumer.flow(1)
        while not self.stopped:
            await producer.publish(b"%d" % self.receipted)
            await consumer.ack((await consumer.receive()).message_id)
            consumer.flow(1)
            self.receipted += 1


async def backed_up(broker: RealBroker, name: str) -> None:
    await asked(broker, "POST", f"{ADMIN}/brokers/backup", {"name": name})
    async with asyncio.timeout(30.0):
        while (status := (await asked(broker, "GET", f"{ADMIN}/brokers/backup"))["status"]) == "RUNNING":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert status == "SUCCESS"


def test_a_restored_broker_equals_the_one_that_was_backed_up(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()

    async def before() -> tuple[c.TxnId, Picture, int]:
        async with real_broker(tmp_path / "data", backupDirectory=tmp_path / "backups", **SETTINGS) as broker:
            await set_policies(broker)
            await register_schemas(broker)
            client = await broker.client()
            txn = await transact(client)
            await acknowledge(client)
            await delay(client)
            await compact(broker, client)
            load = Load()
            working = asyncio.create_task(load.run(await broker.client()))
            picture = await pictured(broker, txn.id)
            sure = load.receipted
            await backed_up(broker, "monday")
            load.stopped = True
            await working
            await txn.commit()  # what comes after the backup is not in it
            return txn.id, picture, sure

    async def after(txn: c.TxnId) -> tuple[Picture, int, list[bytes]]:
        async with real_broker(tmp_path / "restored", **SETTINGS) as broker:
            for topic in TOPICS:
                await asked(broker, "GET", f"{ADMIN}/persistent/{SHOP}/{topic}/stats")
            picture = await pictured(broker, txn)
            await asked(broker, "GET", f"{ADMIN}/persistent/{SHOP}/busy/stats")
            busy = broker.node.broker.service.topics[fqn("busy")].log
            client = await broker.client()
            await RawTransaction(client, txn).commit()
            shown = await delivered(
                client, "outputs", "all", 2 + 2 * IN_TRANSACTION, durable=False,
                initial_position=c.InitialPosition.Earliest,
            )  # fmt: skip
            return picture, busy.end - busy.first, [entry for *_, entry in shown]

    txn, old, sure = asyncio.run(before())
    restore_directory(str(tmp_path / "backups" / "monday"), str(tmp_path / "restored"))
    new, busy, shown = asyncio.run(after(txn))
    assert {name: (value, new[name]) for name, value in old.items() if value != new[name]} == {}
    assert old.keys() == new.keys()
    assert busy >= sure
    # what is compared is not nothing
    assert old["open transaction"]["status"] == "OPEN" and old["pending acknowledgements"] == 1
    assert len(old["stored in outputs"]) == 2 + 3 * IN_TRANSACTION + 2  # two markers
    assert [entry[-1:] for *_, entry in old["delivered of transactions"]] == [b"e", b"0", b"1", b"2"]
    assert old["delivered of holes and batches"][-1][2] == (0b1010,)
    assert old["cursors of held"]["s"]["totalNonContiguousDeletedMessagesRange"] == 1
    assert old["subscriptions of delayed"]["s"] == (2, 1)
    assert [entry[-1:] for *_, entry in old["compacted"]] == [b"6", b"7", b"8", b"d"]
    assert len(old["schemas"]["getSchemaResponses"]) == 2 and len(old["topics"]) == 10
    # the open transaction can still be ended, as one of the restored broker
    assert [entry[-6:] for entry in shown[-4:]] == [b"open 0", b"open 1", b"open 2", b"\x01after"]
