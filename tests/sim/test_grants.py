"""Grants come and go while clients publish and consume: a revocation that was answered holds, and costs nobody else.

Producers and consumers of several roles work on topics of two namespaces while an administrator grants and revokes at
random, and the broker crashes. What a role sends after its revocation was answered gets no receipt and reaches nobody;
what others send after that never reaches a consumer whose role may not consume any more; and what the allowed ones were
receipted arrives, each message, as if nothing had happened.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from magnetar.authorization.authorizer import Authorizer
from magnetar.broker.connection.grant_changes import GrantChanges
from magnetar.model.names import NamespaceName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, payload_of
from tests.sim.clients import TROUBLE
from tests.sim.world import World, caught, run_seeds
from tests.support.roles import SETTINGS, believing, both, client_of, policies_of

SPACES = tuple(map(NamespaceName.parse, ("public/default", "public/other")))
TOPICS = tuple(f"persistent://{space}/t" for space in SPACES)
ROLES = ("alice", "bob", "steady")
ACTIONS = ("produce", "consume")
MESSAGES = 25


@dataclass
class Book:
    """What is known about grants and messages; the times are those of the simulation."""

    world: World
    granted: dict[tuple[NamespaceName, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    refused_since: dict[tuple[NamespaceName, str, str], float] = field(default_factory=dict)
    """When a revocation was answered that is not taken back."""
    sent: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """Topic, role and time of each payload."""
    receipted: set[str] = field(default_factory=set)
    received: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """Payloads by topic and role of the consumer."""
    wrong: list[str] = field(default_factory=list)
    over: bool = False

    def forbidden(self, topic: str, role: str, action: str, since: float) -> bool:
        """Whether the role may not do it, and the answer that says so came before."""
        space = NamespaceName.parse("/".join(topic.split("/")[2:4]))
        answered = self.refused_since.get((space, role, action))
        return answered is not None and answered < since


async def publish(book: Book, role: str, topic: str) -> None:
    """Send messages until all are receipted or the time is over, with a new producer after each trouble."""
    number = 0
    while number < MESSAGES and not book.over:
        client: RawClient | None = None
        try:
            client = await client_of(role)
            producer = await client.producer(topic)
            while number < MESSAGES and not book.over:
                payload = f"{role} {topic} {number}"
                began = book.world.loop.time()
                book.sent[payload] = topic, role, began
                number += 1
                await producer.receipt(producer.send(payload.encode()))
                if book.forbidden(topic, role, "produce", began):
                    book.wrong.append(f"{payload} was receipted after the revocation was answered")
                book.receipted.add(payload)
                await asyncio.sleep(book.world.rng.uniform(0.0, 0.05))
        except TROUBLE:
            await asyncio.sleep(book.world.rng.uniform(0.02, 0.2))
        finally:
            if client is not None:
                client.transport.close()


async def consume(book: Book, role: str, topic: str) -> None:
    """Receive and acknowledge until the time is over, with a new consumer after each trouble."""
    while not book.over:
        client: RawClient | None = None
        try:
            client = await client_of(role, patience_s=2.0)
            earliest = c.InitialPosition.Earliest
            consumer = await client.subscribe(topic, f"of-{role}", c.SubType.Shared, initial_position=earliest)
            consumer.flow(1000)
            while not book.over:
                message = await consumer.receive()
                payload = payload_of(message.entry).decode()
                _, _, sent = book.sent[payload]
                if book.forbidden(topic, role, "consume", sent):
                    book.wrong.append(f"{payload}, sent after the revocation was answered, was delivered to {role}")
                book.received[topic, role].add(payload)
                await consumer.ack(message.message_id)
        except TROUBLE:
            await asyncio.sleep(book.world.rng.uniform(0.02, 0.2))
        finally:
            if client is not None:
                client.transport.close()


async def subscribe_all() -> None:
    """Make every role's subscription, or what the others acknowledged may be trimmed before it is there."""
    client = await client_of("steady")
    for topic in TOPICS:
        for role in ROLES:
            earliest = c.InitialPosition.Earliest
            await client.subscribe(topic, f"of-{role}", c.SubType.Shared, initial_position=earliest)
    client.transport.close()


async def change(book: Book, space: NamespaceName, role: str, actions: set[str]) -> None:
    """Grant just these, as REST does: durable, and in force, before it is answered."""
    broker, key = book.world.machine.broker, (space, role)
    revoked = book.granted[key] - actions
    for action in actions:
        book.refused_since.pop((space, role, action), None)
    book.granted[key] = actions
    roles = {one: sorted(book.granted[space, one]) for one in ROLES}
    await broker.resources.namespaces.update(space, auth_policies=policies_of(namespace=roles))
    await broker.service.grants_in_force()
    for action in revoked:
        book.refused_since[space, role, action] = book.world.loop.time()


async def grants_come_and_go(world: World) -> None:
    """Two roles lose and get their grants, a third keeps them."""
    await world.boot()
    book, rng = Book(world), world.rng
    resources = world.machine.broker.resources
    await resources.namespaces.create("public", "other")
    for space in SPACES:
        await change(book, space, "steady", set(ACTIONS))
    await subscribe_all()
    for topic in TOPICS:
        world.start(*(consume(book, role, topic) for role in ROLES))
        world.start(*(publish(book, role, topic) for role in ROLES))
    for turn in range(12):
        await asyncio.sleep(rng.uniform(0.02, 0.4))
        space, role = rng.choice(SPACES), rng.choice(ROLES[:2])
        await change(book, space, role, {action for action in ACTIONS if rng.random() < 0.5})
        if turn == 6 and rng.random() < 0.5:
            await world.crash()
    for space in SPACES:
        for role in ROLES[:2]:
            await change(book, space, role, set(ACTIONS))
    await arrive(book)
    world.check_tasks()
    assert not book.wrong, book.wrong


async def arrive(book: Book) -> None:
    """Everybody may do everything now: what was receipted reaches every role."""
    missing: dict[Any, set[str]] = {}
    for _ in range(600):
        await asyncio.sleep(0.1)
        wanted = defaultdict(set)
        for payload in book.receipted:
            wanted[book.sent[payload][0]].add(payload)
        missing = {
            (topic, role): left
            for topic in TOPICS
            for role in ROLES
            if (left := wanted[topic] - book.received[topic, role])
        }
        under_way = [payload for payload, (_, role, _) in book.sent.items() if role == "steady"]
        if not missing and len(under_way) == MESSAGES * len(TOPICS):
            break
    book.over = True
    assert not missing, missing
    await asyncio.sleep(3)


def test_a_revocation_that_was_answered_holds_and_costs_nobody_else() -> None:
    """Rule 12.9."""
    run_seeds(grants_come_and_go, 8, tamper=believing, settings=SETTINGS)


def test_open_handles_that_nobody_looks_at_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrantChanges, "_begin", lambda self: None)
    caught(grants_come_and_go, believing, settings=SETTINGS)


def test_consumers_that_nobody_looks_at_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = GrantChanges._judge

    def blind(self: GrantChanges, authorizer: Authorizer, session: Any, number: int, held: Any, wanted: Any) -> None:
        if not hasattr(held, "consumer"):
            judge(self, authorizer, session, number, held, wanted)

    monkeypatch.setattr(GrantChanges, "_judge", blind)
    caught(grants_come_and_go, believing, settings=SETTINGS)


def test_handlers_that_do_not_ask_are_noticed() -> None:
    def trusting(broker: Any) -> None:
        broker.service.authorizer.decide = lambda caller, access: type("Yes", (), {"allowed": True, "reason": ""})()

    caught(grants_come_and_go, both(believing, trusting), settings=SETTINGS)


def test_closing_everybody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that loses the acknowledged messages of those who may stay is no answer."""

    def lossy(self: GrantChanges, *_: Any) -> None:
        for topic in self._service.topics.values():
            for name in list(topic.subscriptions):
                topic.delete_subscription(name, lambda: None)

    monkeypatch.setattr(GrantChanges, "_namespace_changed", lossy)
    caught(grants_come_and_go, believing, settings=SETTINGS)
