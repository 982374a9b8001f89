"""No answer before its disk: while it hangs nothing is promised and nothing is seen, and then everything holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from magnetar import __version__
from magnetar.admin_api.description import document
from magnetar.app.node import Broker
from magnetar.broker.connection.handlers.command_table import HANDLERS
from magnetar.config.settings import Settings
from magnetar.model.errors import MetadataError
from magnetar.protocol import commands as c
from magnetar.storage.backends.segment_writer import LocalSegmentWriter
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log.write_group import DirtyCursor, DirtyFeatureState, Done, Failed
from magnetar.testing.rawclient import RawClientError
from tests.sim import promises, promises_of_rest
from tests.sim.promises import Promise
from tests.sim.stage import RefusedByRestError, Sight, Stage, without_counters
from tests.sim.world import Simulation, World, caught, run_seeds
from tests.support.described_routes import by_route

SETTINGS = Settings(transactionCoordinatorEnabled=True)
SETTINGS_WITH_PLACE = Settings(transactionCoordinatorEnabled=True, offloadUrl="file:///copies")
"""Offload policies are refused without a place for copies; nothing is ever written there."""
HUNG_SECONDS = 5.0
PROMISES = {promise.name: promise for promise in (*promises.OF_THE_WIRE, *promises_of_rest.KEPT_IN_LOG)}
FACTS = {promise.name: promise for promise in (*promises.KEPT_IN_METADATA, *promises_of_rest.KEPT_IN_METADATA)}


def asked_of_a_hung_disk(promise: Promise) -> Simulation:
    """Ask, look, let the disk go on, hear the answer, and cut the power in that moment."""

    async def simulation(world: World) -> None:
        stage = Stage(world)
        await stage.set()
        if promise.prepare is not None:
            await promise.prepare(stage)
        await asyncio.sleep(0.5)
        before, lasting_before = await stage.sight(), await stage.lasting()
        world.machine.hold_writes()
        asked: asyncio.Task[Any] = world.loop.create_task(promise.ask(stage))
        await asyncio.sleep(HUNG_SECONDS)
        assert not asked.done(), f"answered while the disk hung: {asked}"
        early = difference(before, await stage.sight())
        seen = [word for word in early if not word.startswith(promise.early)]
        assert not seen, f"seen while the disk hung: {seen} of {early}"
        assert all(any(word.startswith(known) for word in early) for known in promise.early), "not early at all"
        world.machine.release_writes()
        async with asyncio.timeout(10):
            await asked
        lasting = await stage.lasting()
        world.machine.power_off()
        await world.machine.start()
        lost = difference(without_counters(lasting), without_counters(await stage.lasting()))
        assert not lost, f"answered and gone: {lost}"
        if promise.changes:
            assert difference(lasting_before, lasting), "nothing happened"

    return simulation


def difference(before: Sight, after: Sight) -> dict[str, tuple[Any, Any]]:
    """What is not the same."""
    pairs = {word: (before.get(word), after.get(word)) for word in {**before, **after}}
    return {word: pair for word, pair in pairs.items() if pair[0] != pair[1]}


def asked_of_refusing_metadata(promise: Promise) -> Simulation:
    """A fact that cannot be kept is refused, no client sees it; asked again it is, and it outlives a power failure."""

    async def simulation(world: World) -> None:
        stage = Stage(world)
        await stage.set()
        if promise.prepare is not None:
            await promise.prepare(stage)
        before = await stage.facts()
        with refusing(world):
            with pytest.raises((RawClientError, RefusedByRestError)):
                await promise.ask(stage)
            assert not (early := difference(before, await stage.facts())), f"refused and seen: {early}"
        await promise.ask(stage)
        after = await stage.facts()
        assert difference(before, after), "nothing happened"
        world.machine.power_off()
        await world.machine.start()
        assert not (lost := difference(after, await stage.facts())), f"answered and gone: {lost}"

    return simulation


@contextmanager
def refusing(world: World) -> Iterator[None]:
    """The metadata read and do not write."""
    metadata: Any = world.machine.broker._metadata

    def refuse(*_: object, **__: object) -> None:
        raise MetadataError("the disk is full (simulated)")

    metadata.put = metadata.delete = metadata.write = refuse
    yield
    del metadata.put, metadata.delete, metadata.write


@pytest.mark.parametrize("name", PROMISES)
def test_nothing_is_answered_or_seen_before_it_is_on_the_disk(name: str) -> None:
    run_seeds(asked_of_a_hung_disk(PROMISES[name]), 1, settings=SETTINGS)


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_that_cannot_be_kept_is_refused_and_seen_by_nobody(name: str) -> None:
    run_seeds(asked_of_refusing_metadata(FACTS[name]), 1, settings=SETTINGS_WITH_PLACE)


# the lists are whole ---------------------------------------------------------------------------------------------


def test_every_command_of_the_wire_is_in_a_list() -> None:
    promised = {what for promise in (*PROMISES.values(), *FACTS.values()) for what in promise.covers}
    commands = {what for what in promised if isinstance(what, type)}
    assert commands | set(promises.PROMISES_NOTHING) == set(HANDLERS)
    assert not commands & set(promises.PROMISES_NOTHING)


def test_every_call_of_rest_that_is_no_get_is_in_a_list() -> None:
    routes = by_route(document(__version__, authentication=False))
    calls = {f"{method.upper()} {path}" for path, methods in routes.items() for method in methods if method != "get"}
    promised = {what for promise in (*PROMISES.values(), *FACTS.values()) for what in promise.covers}
    listed = {what for what in promised if isinstance(what, str)} | set(promises_of_rest.PROMISES_NOTHING)
    assert listed == calls


# wrong builds ----------------------------------------------------------------------------------------------------


def disk_not_waited_for(broker: Broker) -> None:
    def commit(file: object, at: int, chunks: object, sync: bool, done: Callable[[None], None], *_: object) -> None:
        asyncio.get_running_loop().call_soon(done, None)

    writer = broker.store.journal._writer
    assert isinstance(writer, LocalSegmentWriter)
    writer._committer.commit = commit  # type: ignore[method-assign, assignment]


def barrier_open(broker: Broker) -> None:
    broker.store.journal.barrier = lambda done, failed=None: done()  # type: ignore[method-assign]


def records_not_waited_for(broker: Broker) -> None:
    real = broker.store.journal.add_record

    def add_record(record: bytes, done: Done | None = None, failed: Failed | None = None) -> None:
        real(record, None, failed)
        if done is not None:
            asyncio.get_running_loop().call_soon(done)

    broker.store.journal.add_record = add_record  # type: ignore[method-assign]


def births_not_waited_for(broker: Broker) -> None:
    real = broker.store.open_log

    def open_log(name: str, done: Done | None = None, failed: Failed | None = None) -> ManagedLedger:
        if done is not None:
            asyncio.get_running_loop().call_soon(done)
        return real(name)

    broker.store.open_log = open_log  # type: ignore[method-assign]


def cursors_not_waited_for(broker: Broker) -> None:
    real = broker.store.journal.touch

    def touch(cursor: DirtyCursor, done: Done | None) -> None:
        real(cursor, None)
        if done is not None:
            asyncio.get_running_loop().call_soon(done)

    broker.store.journal.touch = touch  # type: ignore[method-assign]


def states_not_waited_for(broker: Broker) -> None:
    real = broker.store.journal.touch_feature_state

    def touch_feature_state(feature_state: DirtyFeatureState, done: Done | None) -> None:
        real(feature_state, None)
        if done is not None:
            asyncio.get_running_loop().call_soon(done)

    broker.store.journal.touch_feature_state = touch_feature_state  # type: ignore[method-assign]


def commit_shown_at_once(broker: Broker) -> None:
    """What a transaction sent is let through in the turn in which its end is decided."""
    coordinator = broker.service.coordinator
    real = coordinator.end

    def end(txn: c.TxnId, *, commit: bool, owner: str | None, done: Done) -> None:
        parts = list(coordinator.decisions.get(txn).partitions)
        real(txn, commit=commit, owner=owner, done=done)
        for name in parts:
            topic = broker.service.topics[name]
            assert topic.transactions is not None
            beside = topic.transactions.beside
            for op in beside.in_flight():
                beside.settled.apply(op)
            topic.subscriptions.dispatch_filter_changed()

    coordinator.end = end  # type: ignore[method-assign]


WRONG = {
    "the disk is not waited for": (disk_not_waited_for, "SEND_RECEIPT"),
    "CLOSE_PRODUCER does not wait for its sends": (barrier_open, "CLOSE_PRODUCER behind its sends"),
    "REST does not wait": (barrier_open, f"PUT {promises_of_rest.PATH}/properties"),
    "an owner has its epoch before it is kept": (records_not_waited_for, "epoch, exclusive"),
    "a topic is there before it is kept": (births_not_waited_for, "PRODUCER_SUCCESS on a new topic"),
    "ACK_RESPONSE does not wait": (cursors_not_waited_for, "ACK_RESPONSE"),
    "SEEK does not wait": (cursors_not_waited_for, "SEEK by id"),
    "NEW_TXN does not wait": (states_not_waited_for, "NEW_TXN"),
    "END_TXN does not wait": (states_not_waited_for, "END_TXN, commit"),
    "a commit is seen before it is kept": (commit_shown_at_once, "END_TXN, commit"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_build_is_noticed(what: str) -> None:
    tamper, name = WRONG[what]
    caught(asked_of_a_hung_disk(PROMISES[name]), tamper, settings=SETTINGS)
