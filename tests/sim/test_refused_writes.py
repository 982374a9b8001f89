"""A disk that refuses one write of a request after the other: all is as before, or the answer says what is done.

Each write of each request over REST is refused in turn, by a disk that is full from then on, and by one that fails once
in writing or syncing. A request that is refused with words as if nothing had been done has done nothing; one that had
done a part says so; the same request completes it when the disk works again. What is looked at is all of the metadata
and whatever of topics outlives a crash.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from magnetar.app.node import Broker
from magnetar.config.settings import Settings
from magnetar.metadata.store import RecordWrite
from magnetar.testing.faultfiles import Operation
from tests.sim import promises_of_rest
from tests.sim.promises import Promise
from tests.sim.promises_of_rest import KEPT_IN_LOG, KEPT_IN_METADATA
from tests.sim.stage import REST, RefusedByRestError, Sight, Stage, without_counters
from tests.sim.world import World, caught, run_seed, run_seeds

SETTINGS = Settings(
    transactionCoordinatorEnabled=True, offloadUrl="file:///copies", forceDeleteNamespaceAllowed=True,
    forceDeleteTenantAllowed=True,
)  # fmt: skip
SETTLED_SECONDS: Final = 15.0
SAYS_WHAT_IS_DONE: Final = re.compile(r"may still become durable|is there with its|The same request completes it")
OTHER_SUBJECT: Final = (
    "unload", "publish", "DELETE /admin/v2/namespaces/{tenant}/{namespace}/{bundle}", "abort a transaction",
)  # fmt: skip
"""Promises about messages: each asking adds some, and the marker of an end of a transaction may be refused."""
RELATIVE: Final = "skip/{count}"
"""A request that does more when it is repeated."""
_ALICE: Final = ["produce"]
_STRING: Final = {"type": "STRING", "schema": "", "properties": {}}
_SPACE: Final = "/admin/v2/namespaces/acme/eu"
_QUOTA: Final = promises_of_rest._BUNDLE_QUOTA[2]


@dataclass(frozen=True, slots=True)
class Fault:
    """What the disk refuses: the calls after ``skip`` of them, once or until it is mended."""

    operation: Operation
    code: int
    times: int


FAULTS: Final = (
    Fault("append", errno.ENOSPC, 1 << 30),
    Fault("append", errno.EIO, 1),
    Fault("sync", errno.EIO, 1),
)


def several(name: str, method: str, path: str, *before: tuple[str, str, object]) -> Promise:
    """A request that takes several steps, and what is made for it."""

    async def ask(stage: Stage) -> None:
        await stage.rest(method, path)

    async def prepare(stage: Stage) -> None:
        for call in before:
            await stage.rest(*call)

    return Promise(name, (), ask, prepare)


def _spoken_of(topic: str) -> tuple[tuple[str, str, object], ...]:
    local = topic.rpartition("/")[2]
    return (
        ("POST", f"{topic}/permissions/alice", _ALICE),
        ("POST", f"{topic}/retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5}),
        ("POST", f"/admin/v2/schemas/public/default/{local}/schema", _STRING),
    )


_TENANT: Final = ("PUT", "/admin/v2/tenants/acme", {"adminRoles": [], "allowedClusters": ["standalone"]})
_INHABITED: Final = (
    _TENANT, ("PUT", _SPACE, {"bundles": {"numBundles": 4}}),
    ("POST", f"/admin/v2/resource-quotas/acme/eu/{promises_of_rest.BUNDLE}", _QUOTA),
    ("PUT", "/admin/v2/persistent/acme/eu/plain", None), ("PUT", "/admin/v2/persistent/acme/eu/parted/partitions", 2),
    ("POST", "/admin/v2/persistent/acme/eu/plain/permissions/alice", _ALICE),
    ("POST", "/admin/v2/schemas/acme/eu/never-made/schema", _STRING),
)  # fmt: skip
OF_SEVERAL_STEPS: Final = (
    several(
        "delete a topic", "DELETE", f"{REST}/new", ("PUT", f"{REST}/new", None), *_spoken_of(f"{REST}/new"),
    ),
    several(
        "delete a partitioned topic", "DELETE", f"{REST}/parted/partitions", ("PUT", f"{REST}/parted/partitions", 2),
        *_spoken_of(f"{REST}/parted"), ("POST", f"{REST}/parted-partition-1/permissions/alice", _ALICE),
    ),
    several(
        "delete a non-persistent topic", "DELETE", f"{REST}/new".replace("persistent", "non-persistent"),
        ("PUT", f"{REST}/new".replace("persistent", "non-persistent"), None),
        ("POST", f"{REST}/new/permissions/alice".replace("persistent", "non-persistent"), _ALICE),
        ("POST", "/admin/v2/schemas/public/default/new/schema", _STRING),
    ),
    several("delete a namespace", "DELETE", f"{_SPACE}?force=true", *_INHABITED),
    several(
        "delete a tenant", "DELETE", "/admin/v2/tenants/acme?force=true", *_INHABITED,
        ("PUT", "/admin/v2/namespaces/acme/us", None), ("PUT", "/admin/v2/persistent/acme/us/plain", None),
    ),
    several(
        "delete a cluster", "DELETE", "/admin/v2/clusters/new", promises_of_rest._NEW_CLUSTER,
        ("POST", "/admin/v2/clusters/new/failureDomains/new", {"brokers": ["b:8080"]}),
        ("POST", "/admin/v2/clusters/new/migrate?migrated=true", {"serviceUrl": "http://other:8080"}),
    ),
    several(
        "split a bundle", "PUT", f"/admin/v2/namespaces/public/default/{promises_of_rest.BUNDLE}/split",
        ("POST", f"/admin/v2/resource-quotas/public/default/{promises_of_rest.BUNDLE}", _QUOTA),
    ),
    several(
        "forget a schema", "DELETE", "/admin/v2/schemas/public/default/t/schema?force=true",
        ("POST", "/admin/v2/schemas/public/default/t/schema", _STRING),
        ("DELETE", "/admin/v2/schemas/public/default/t/schema", None),
        ("POST", "/admin/v2/schemas/public/default/t/schema", _STRING),
    ),
)  # fmt: skip
ASKED = {
    promise.name: promise
    for promise in (*OF_SEVERAL_STEPS, *KEPT_IN_LOG, *KEPT_IN_METADATA)
    if not any(word in promise.name for word in OTHER_SUBJECT) or promise in OF_SEVERAL_STEPS
}


async def everything(stage: Stage) -> Sight:
    """All of the metadata, the names of all logs, and what of topics has to be the same after a crash."""
    broker: Any = stage.world.machine.broker
    seen = {path: _parsed(record.data) for path, record in broker._metadata.records()}
    seen.update(without_counters(await stage.lasting()))
    seen["topics"] = sorted(name for name in broker.store.names() if "__" not in name)
    return {word: value for word, value in seen.items() if "__change_events" not in word and "/counters/" not in word}


def _parsed(data: bytes) -> object:
    value = json.loads(data)
    return {key: one for key, one in value.items() if key != "timestamp"} if isinstance(value, dict) else value


async def ready(world: World, promise: Promise) -> Stage:
    stage = Stage(world)
    await stage.set()
    if promise.prepare is not None:
        await promise.prepare(stage)
    await asyncio.sleep(1)
    return stage


async def answer(stage: Stage, promise: Promise) -> RefusedByRestError | None:
    try:
        async with asyncio.timeout(100):
            await promise.ask(stage)
    except RefusedByRestError as refused:
        return refused
    return None


def outcome_of(promise: Promise) -> Sight:
    """What is there when no write was refused."""
    found: list[Sight] = []

    async def simulation(world: World) -> None:
        stage = await ready(world, promise)
        assert await answer(stage, promise) is None
        await asyncio.sleep(SETTLED_SECONDS)
        found.append(await everything(stage))

    run_seed(simulation, 0, settings=SETTINGS)
    return found[0]


def refused_in_turn(promise: Promise, fault: Fault, after: Sight, first: int) -> int | None:
    """Refuse write ``first`` and, as long as all is as before, those after it; the next to refuse, if there is one."""
    left: list[int] = []

    async def simulation(world: World) -> None:
        stage = await ready(world, promise)
        before, skip = await everything(stage), first
        while True:
            files = world.machine.files
            errors = files.counters.errors
            files.fail(fault.operation, skip=skip, times=fault.times, code=fault.code)
            said = await answer(stage, promise)
            hit = files.counters.errors > errors
            files._disk.plans.clear()
            skip += 1
            if said is None or SAYS_WHAT_IS_DONE.search(str(said)) or await everything(stage) != before:
                break
        place = f"{promise.name}, {fault.operation} {skip - 1}"
        await completed(stage, promise, said, after, place)
        if hit:
            left.append(skip)

    run_seed(simulation, 0, settings=SETTINGS)
    return left[0] if left else None


async def completed(stage: Stage, promise: Promise, said: RefusedByRestError | None, after: Sight, place: str) -> None:
    """All that was asked for is there in the end, and the answer was no lie."""
    if said is not None:
        assert SAYS_WHAT_IS_DONE.search(str(said)), f"{place}: {said}"
        await asyncio.sleep(SETTLED_SECONDS)
        again = None if RELATIVE in promise.name else await answer(stage, promise)
        assert again is None or again.status in (404, 409), f"{place}: {said}, then {again}"
    await asyncio.sleep(SETTLED_SECONDS)
    ended = {word: _without_note(value) for word, value in (await everything(stage)).items()}
    assert ended == after, f"{place}: {said}; {differing(ended, after)}"
    stage.world.machine.power_off()
    await stage.world.machine.start()
    await asyncio.sleep(1)  # partitions that are noted as missing are looked at now
    ended = await everything(stage)
    assert ended == after, f"{place}, after a crash: {differing(ended, after)}"


def _without_note(value: Any) -> Any:
    """A partitioned topic as REST shows it: without the note that partitions may be missing."""
    return {word: one for word, one in value.items() if word != "unmade"} if isinstance(value, dict) else value


def differing(one: Sight, other: Sight) -> Sight:
    return {word: (one.get(word), other.get(word)) for word in {**one, **other} if one.get(word) != other.get(word)}


@pytest.mark.parametrize("name", ASKED)
def test_a_refused_write_leaves_all_as_it_was_or_the_answer_says_what_is_done(name: str) -> None:
    promise = ASKED[name]
    after = outcome_of(promise)
    for fault in FAULTS:
        following: int | None = 0
        while following is not None:
            following = refused_in_turn(promise, fault, after, following)


# wrong builds ----------------------------------------------------------------------------------------------------


async def refused_in_the_middle(world: World) -> None:
    """The second change of the metadata of a topic's deletion is refused, if it takes two."""
    promise = ASKED["delete a topic"]
    stage = await ready(world, promise)
    before = await everything(stage)
    world.machine.files.fail("append", skip=2, times=1 << 30, code=errno.ENOSPC)
    said = await answer(stage, promise)
    world.machine.files._disk.plans.clear()
    if said is not None and not SAYS_WHAT_IS_DONE.search(str(said)):
        assert not (half := differing(before, await everything(stage))), f"refused, and done: {half}"


def one_after_the_other(broker: Broker) -> None:
    metadata: Any = broker._metadata
    together = metadata.write

    async def write(writes: Sequence[RecordWrite]) -> None:
        for one in writes:
            await together([one])

    metadata.write = write


def test_changes_that_are_made_one_after_the_other_are_noticed() -> None:
    run_seeds(refused_in_the_middle, 1, settings=SETTINGS)
    caught(refused_in_the_middle, one_after_the_other, settings=SETTINGS)
