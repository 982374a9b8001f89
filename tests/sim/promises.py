"""What promises durability on the wire: every command whose answer means "it is on the disk", and how to ask for it.

REST is in :mod:`tests.sim.promises_of_rest`. A promise that is kept in the log is asked for while the disk hangs
(``test_blocked_disk.py``); one that is kept in the metadata, whose calls are durable when they return, while the
metadata refuse. Commands that promise nothing are listed with the reason; together they are all that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError, make_entry
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.stage import FIRST_MESSAGES, SUB, Stage, answered, connection
from tests.sim.world import T

NEW = "persistent://public/default/new"
ONCE = "persistent://public/default/once"

Step = Callable[[Stage], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Promise:
    """``ask`` returns when the answer has come; ``prepare`` runs before, on a disk that works."""

    name: str
    covers: tuple[type | str, ...]
    ask: Step
    prepare: Step | None = None
    early: tuple[str, ...] = ()
    """What administrators are shown while it is being written, before it is answered: names and places the broker
    works with already (docs/guarantees.md). Never messages, counters of them, or ends of transactions."""
    changes: bool = True
    """Whether anything looks different afterwards."""


# publishing ------------------------------------------------------------------------------------------------------


async def _send(stage: Stage) -> None:
    await stage.producer.publish(b"new", key="k0")


async def _send_together(stage: Stage) -> None:
    """SENDs that arrive in one piece; the broker takes them for a run (docs/decisions/077)."""
    entries = [make_entry(b"together %d" % number, producer="p", sequence_id=100 + number) for number in range(3)]
    producer_id = stage.producer.producer_id
    stage.client.say(
        *(c.CommandSend(producer_id, 100 + i, 1, None, False, None, False, None, one) for i, one in enumerate(entries))
    )
    heard = [await stage.client.hear(c.CommandSendReceipt) for _ in entries]
    assert [receipt.sequence_id for receipt in heard] == [100, 101, 102]


async def _send_many_and_close(stage: Stage) -> list[str]:
    """CLOSE_PRODUCER says that all before it is stored, and its answer comes after the receipts."""
    heard: list[str] = []
    stage.client.on_command = lambda command: heard.append(type(command).__name__)
    for number in range(3):
        stage.producer.send(f"new {number}".encode())
    await stage.producer.close()
    assert heard == ["CommandSendReceipt"] * 3 + ["CommandSuccess"]
    return heard


async def _deduplicated(stage: Stage) -> None:
    await stage.world.machine.broker.resources.topic_policies.update(
        TopicName.parse(ONCE), "deduplicationEnabled", True
    )
    stage.kept = await stage.client.producer(ONCE, "once")
    await stage.kept.publish(b"a")


async def _send_twice(stage: Stage) -> None:
    """The second one is a repetition of what is not on the disk yet."""
    sequence = stage.kept.send(b"b")
    stage.kept.send(b"b", sequence_id=sequence)
    await stage.client.hear(c.CommandSendReceipt)


async def _come_back_deduplicated(stage: Stage) -> None:
    """PRODUCER_SUCCESS names the last sequence id that is durable, not the last that was accepted."""
    stage.kept.send(b"b")
    stage.client.say(c.CommandCloseProducer(stage.kept.producer_id, stage.client.new_id()))
    again = await stage.client.producer(ONCE, "once")
    assert again.opened.last_sequence_id == 1


async def _new_producer(stage: Stage) -> None:
    await stage.client.producer(NEW)


async def _new_producer_with_subscription(stage: Stage) -> None:
    await stage.client.producer(NEW, initial_subscription_name="first")


def _exclusive(mode: c.ProducerAccessMode) -> Step:
    async def ask(stage: Stage) -> None:
        client = await connection()
        command = c.CommandProducer(T, 1, client.new_id(), "owner", producer_access_mode=mode)
        answer = await client.request(command, c.CommandProducerSuccess)
        if not answer.producer_ready:
            stage.client.say(c.CommandCloseProducer(stage.producer.producer_id, stage.client.new_id()))
            answer = await client.hear(c.CommandProducerSuccess)
        assert answer.producer_ready
        assert answer.topic_epoch == 0

    return ask


async def _leave(stage: Stage) -> None:
    await stage.producer.close()


# consuming -------------------------------------------------------------------------------------------------------


async def _subscribe(stage: Stage) -> None:
    await stage.client.subscribe(T, "new")


async def _subscribe_to_new(stage: Stage) -> None:
    await stage.client.subscribe(NEW, "new")


async def _subscribe_both(stage: Stage) -> None:
    """The second one finds a subscription that is not on the disk yet."""
    other = await connection()
    stage.client.say(c.CommandSubscribe(T, "new", c.SubType.Shared, 77, stage.client.new_id()))
    await other.subscribe(T, "new", c.SubType.Shared)


async def _subscribe_back_in_time(stage: Stage) -> None:
    await stage.client.subscribe(T, "new", start_message_rollback_duration_sec=3600)


async def _ack(stage: Stage) -> None:
    await stage.consumer.ack(stage.ids[0], stage.ids[2])


async def _ack_thousands(stage: Stage) -> None:
    await stage.consumer.ack(*stage.ids[:3] * 10_000)


async def _ack_cumulative(stage: Stage) -> None:
    await stage.kept.ack(stage.ids[3], cumulative=True)


async def _exclusive_consumer(stage: Stage) -> None:
    stage.kept = await stage.client.subscribe(T, "alone", initial_position=c.InitialPosition.Earliest)
    stage.kept.flow(1000)
    for _ in range(FIRST_MESSAGES):
        await stage.kept.receive()


async def _unsubscribe(stage: Stage) -> None:
    await stage.consumer.unsubscribe()


async def acked(stage: Stage) -> None:
    await stage.consumer.ack(*stage.ids)


async def _seek(stage: Stage) -> None:
    await stage.consumer.seek(stage.ids[2])


async def _seek_time(stage: Stage) -> None:
    await stage.consumer.seek(publish_time_ms=0)


# transactions ----------------------------------------------------------------------------------------------------


async def _begin(stage: Stage) -> None:
    stage.kept = await RawTransaction.begin(stage.client)


async def _add_partition(stage: Stage) -> None:
    await stage.kept.add_partitions(T)


async def _add_subscription(stage: Stage) -> None:
    await stage.kept.add_subscription(T, SUB)


async def work(stage: Stage) -> None:
    await _begin(stage)
    await stage.kept.publish(stage.producer, b"in a transaction")
    await stage.kept.ack(stage.consumer, stage.ids[0])


async def _begin_and_publish(stage: Stage) -> None:
    await stage.kept.publish(stage.producer, b"in a transaction")


async def _begin_and_ack(stage: Stage) -> None:
    await stage.kept.ack(stage.consumer, stage.ids[0])


async def _ack_thousands_in_one(stage: Stage) -> None:
    await stage.kept.ack(stage.consumer, *stage.ids[:3] * 3_000)  # beyond 10,000 it is refused


async def _commit(stage: Stage) -> None:
    await stage.kept.commit()


async def _abort(stage: Stage) -> None:
    await stage.kept.abort()


async def _commit_twice(stage: Stage) -> None:
    """The second END_TXN finds the transaction ending."""
    stage.client.say(c.CommandEndTxn(stage.client.new_id(), stage.kept.id, c.TxnAction.COMMIT))
    await stage.kept.commit()


# the list --------------------------------------------------------------------------------------------------------

CURSOR: Final = (f"t {SUB}",)
"""Where the cursor is."""
OF_THE_WIRE: Final = (
    Promise("SEND_RECEIPT", (c.CommandSend,), _send),
    Promise("SEND_RECEIPTs of a run", (c.SendRun,), _send_together),
    Promise("CLOSE_PRODUCER behind its sends", (c.CommandCloseProducer,), _send_many_and_close),
    Promise("SEND_RECEIPT of a repetition", (), _send_twice, _deduplicated),
    Promise("the last sequence id", (), _come_back_deduplicated, _deduplicated),
    Promise("PRODUCER_SUCCESS on a new topic", (c.CommandProducer,), _new_producer, early=("topics", "new")),
    Promise(
        "PRODUCER_SUCCESS with a first subscription", (), _new_producer_with_subscription, early=("topics", "new")
    ),
    Promise("epoch, exclusive", (), _exclusive(c.ProducerAccessMode.Exclusive), _leave, early=("t epoch",)),
    Promise(
        "epoch, fencing", (), _exclusive(c.ProducerAccessMode.ExclusiveWithFencing), _leave, early=("t epoch",)
    ),
    Promise("epoch, promoted", (), _exclusive(c.ProducerAccessMode.WaitForExclusive), early=("t epoch",)),
    Promise("SUBSCRIBE", (c.CommandSubscribe,), _subscribe, early=("t new",)),
    Promise("SUBSCRIBE to a new topic", (), _subscribe_to_new, early=("topics", "new")),
    Promise("SUBSCRIBE to what is being made", (), _subscribe_both, early=("t new",)),
    Promise("SUBSCRIBE back in time", (), _subscribe_back_in_time, early=("t new",)),
    Promise("ACK_RESPONSE", (c.CommandAck,), _ack, early=CURSOR),
    Promise("ACK_RESPONSE to thousands of ids", (c.UnparsedCommand,), _ack_thousands, early=CURSOR),
    Promise("ACK_RESPONSE, cumulative", (), _ack_cumulative, _exclusive_consumer, early=("t alone",)),
    Promise("UNSUBSCRIBE", (c.CommandUnsubscribe,), _unsubscribe, early=CURSOR),
    Promise("SEEK by id", (c.CommandSeek,), _seek, acked, early=CURSOR),
    Promise("SEEK by time", (), _seek_time, acked, early=CURSOR),
    Promise("NEW_TXN", (c.CommandNewTxn,), _begin, early=("transactions",)),
    Promise("ADD_PARTITION_TO_TXN", (c.CommandAddPartitionToTxn,), _add_partition, _begin, changes=False),
    Promise("ADD_SUBSCRIPTION_TO_TXN", (c.CommandAddSubscriptionToTxn,), _add_subscription, _begin, changes=False),
    Promise("SEND_RECEIPT in a transaction", (), _begin_and_publish, _begin),
    Promise("ACK_RESPONSE in a transaction", (), _begin_and_ack, _begin, changes=False),
    Promise("ACK_RESPONSE to thousands in a transaction", (), _ack_thousands_in_one, _begin, changes=False),
    Promise("END_TXN, commit", (c.CommandEndTxn,), _commit, work),
    Promise("END_TXN, abort", (), _abort, work),
    Promise("END_TXN, twice", (), _commit_twice, work),
)  # fmt: skip


# kept in the metadata --------------------------------------------------------------------------------------------

_SCHEMA: Final = c.Schema("s", b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}', SchemaType.AVRO)


async def _schema(stage: Stage) -> None:
    command = c.CommandGetOrCreateSchema(stage.client.new_id(), T, _SCHEMA)
    await answered(stage.client, command, c.CommandGetOrCreateSchemaResponse)


async def _producer_with_schema(stage: Stage) -> None:
    await stage.client.producer(T, "typed", schema=_SCHEMA)


async def _consumer_with_schema(stage: Stage) -> None:
    await stage.client.subscribe(NEW, "typed", schema=_SCHEMA)


async def _new_topic(stage: Stage) -> None:
    await stage.rest("PUT", "/admin/v2/persistent/public/default/new")


async def _partitioned_by_default(stage: Stage) -> None:
    wanted = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    await stage.rest("POST", "/admin/v2/namespaces/public/default/autoTopicCreation", wanted)


async def _partitions_on_demand(stage: Stage) -> None:
    answer = await stage.client.partitions("persistent://public/default/parted")
    if answer.error is not None:
        raise RawClientError(answer.error, answer.message or "")
    assert answer.partitions == 2


KEPT_IN_METADATA: Final = (
    Promise("GET_OR_CREATE_SCHEMA", (c.CommandGetOrCreateSchema,), _schema),
    Promise("PRODUCER with a schema", (), _producer_with_schema),
    Promise("SUBSCRIBE with a schema", (), _consumer_with_schema, _new_topic),
    Promise(
        "PARTITIONED_METADATA that creates",
        (c.CommandPartitionedTopicMetadata,),
        _partitions_on_demand,
        _partitioned_by_default,
    ),
)

PROMISES_NOTHING: Final = {
    c.CommandConnect: "nothing is kept of a connection",
    c.CommandAuthResponse: "likewise; it is answered only when it is refused",
    c.CommandPing: "a sign of life",
    c.CommandPong: "a sign of life",
    c.CommandFlow: "permits live as long as their consumer",
    c.AckRun: "ACKs without a request id are not answered",
    c.CommandRedeliverUnacknowledgedMessages: "not answered; a crash has the same effect",
    c.CommandCloseConsumer: "an acknowledgement without a request id is not promised; one with it has its own answer",
    c.CommandLookupTopic: "says where, makes nothing",
    c.CommandGetTopicsOfNamespace: "reads",
    c.CommandWatchTopicList: "reads, until its connection ends",
    c.CommandWatchTopicListClose: "ends that",
    c.CommandGetSchema: "reads what is durable",
    c.CommandGetLastMessageId: "reads; that it shows only what is durable is looked at with every promise",
    c.CommandConsumerStats: "reads",
    c.CommandTcClientConnectRequest: "asks whether there is a coordinator",
    c.CommandEndTxnOnPartition: "what it names is not open here, or it is refused: nothing changes",
    c.CommandEndTxnOnSubscription: "likewise",
}
"""Commands of which an answer says nothing about the disk."""
