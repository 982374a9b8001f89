"""What the audit log is told of the commands on the wire, and where it ends up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError
from tests.sim.world import T, World, run_seed
from tests.support.roles import SETTINGS, believing, client_of, grant

GRANTS = {"both": ["produce", "consume"], "proxy": ["produce"]}


def test_refusals_and_what_changes_or_reads_data_are_recorded(tmp_path: Path) -> None:
    async def simulation(world: World) -> None:
        await world.boot()
        broker = world.machine.broker
        await grant(broker.resources, namespace=GRANTS)
        client = await client_of("both")
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s")
        await client.lookup(T)
        consumer.flow(5)
        await producer.publish(b"x")
        await consumer.ack((await consumer.receive()).message_id)
        await consumer.seek(c.MessageIdData(0, 0))
        stranger = await client_of("proxy", "stranger")
        assert (await stranger.lookup(T)).error is not None
        begun = await client.request(c.CommandNewTxn(client.new_id(), 60_000), c.CommandNewTxnResponse)
        assert begun.txn is not None
        other = await client_of("other")
        answer = await other.request(
            c.CommandEndTxn(other.new_id(), begun.txn, c.TxnAction.ABORT), c.CommandEndTxnResponse
        )
        assert answer.error is not None
        await grant(broker.resources, namespace={})
        with pytest.raises(RawClientError):
            await client.subscribe(T, "evil\nname")
        with pytest.raises(RawClientError, match="Invalid roles"):
            await client_of("both", "root")
        assert broker.service.authorizer is not None and broker.service.authorizer.refusals == 5
        await world.machine.stop()

    file = tmp_path / "audit.log"
    run_seed(simulation, 1, settings=replace(SETTINGS, auditLogFile=str(file)), tamper=believing)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one.get("role", ""), one["request"], one["operation"], one["outcome"]) for one in records] == [
        ("both", "Producer", "PRODUCE", "allowed"),
        ("both", "Subscribe", "CONSUME", "allowed"),
        ("both", "Seek", "RESET_CURSOR", "allowed"),
        ("proxy", "LookupTopic", "LOOKUP", "refused"),
        ("other", "transaction", "use transaction (0,0), which another role began", "refused"),
        ("both", "change of grants", "PRODUCE", "refused"),
        ("both", "Subscribe", "CONSUME", "refused"),
        ("", "Connect", "connect", "refused"),
    ]
    assert records[3]["original"] == "stranger" and records[-2]["subscription"] == "evil\nname"
    assert all(one["object"] == T for one in records if one["object"] != "cluster")
    assert all(one["address"].startswith("/") and one["reason"] for one in records)


def test_every_attempt_to_use_the_transaction_of_another_role_is_recorded(tmp_path: Path) -> None:
    """By SEND, by ACK and by END_TXN; what merely is not open any more is no attempt."""

    async def simulation(world: World) -> None:
        await world.boot()
        await grant(world.machine.broker.resources, namespace={**GRANTS, "other": ["produce", "consume"]})
        owner, other = await client_of("both"), await client_of("other")
        begun = await owner.request(c.CommandNewTxn(owner.new_id(), 60_000), c.CommandNewTxnResponse)
        producer = await other.producer(T)
        consumer = await other.subscribe(T, "s")
        for txn in (begun.txn, c.TxnId(0, 99)):
            with pytest.raises(RawClientError, match="is not open"):
                await producer.receipt(producer.send(b"x", txn=txn))
            with pytest.raises(RawClientError):
                await consumer.ack(c.MessageIdData(0, 0), txn=txn)
        await world.machine.stop()

    file = tmp_path / "audit.log"
    run_seed(simulation, 1, settings=replace(SETTINGS, auditLogFile=str(file)), tamper=believing)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    refused = [(one["role"], one["request"], one["operation"]) for one in records if one["outcome"] == "refused"]
    assert refused == [("other", "transaction", "use transaction (0,0), which another role began")] * 2


def test_an_audit_log_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    async def simulation(world: World) -> None:
        with pytest.raises(InvalidValueError, match=r"auditLogFile: '.*' cannot be written: No such file or directory"):
            await world.boot()

    settings = replace(SETTINGS, auditLogFile=str(tmp_path / "missing" / "audit.log"))
    run_seed(simulation, 1, settings=settings, tamper=believing)
