"""The permission table of the wire is complete, and costs nothing where it asks nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.broker.connection.handlers.command_table import GUARDED_HANDLERS, HANDLERS
from magnetar.broker.connection.handlers.guarded_commands import guarded
from magnetar.model.errors import MagnetarError, ProtocolError
from magnetar.model.names import TopicName
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.server import FROM_CLIENT
from tests.support.command_strategies import instances

ASKING = [kind for kind, row in COMMAND_PERMISSIONS.items() if row.accesses is not None]


class Handles:
    """Every consumer id is open."""

    def consumed(self, consumer_id: int) -> tuple[TopicName, str]:
        return TopicName.parse("t"), "s"

    def sharing(self, topic: TopicName, schema: object, *, first: bool = False) -> TopicName:
        return topic.namesake


def test_every_command_of_clients_has_a_row() -> None:
    assert set(COMMAND_PERMISSIONS) == FROM_CLIENT
    assert set(GUARDED_HANDLERS) == set(HANDLERS) >= FROM_CLIENT


def test_what_asks_nothing_is_not_wrapped() -> None:
    same = {kind for kind, handler in HANDLERS.items() if GUARDED_HANDLERS[kind] is handler}
    assert same == set(HANDLERS) - set(ASKING)
    assert {c.CommandSend, c.CommandAck, c.CommandFlow, c.CommandConnect} <= same


def test_a_command_without_a_row_is_refused() -> None:
    class Unknown:
        """A command that a later version adds to what clients may send."""

    refused: list[Any] = []

    class Session:
        def fail(self, request_id: int, error: MagnetarError) -> None:
            refused.append((request_id, str(error)))

    patched = pytest.MonkeyPatch()
    with patched.context() as context:
        name = "magnetar.broker.connection.handlers.guarded_commands.FROM_CLIENT"
        context.setattr(name, FROM_CLIENT | {Unknown})
        handler: Any = guarded({Unknown: lambda session, command: refused.append("handled")})[Unknown]
    command = Unknown()
    with pytest.raises(ProtocolError, match="Unknown is not in the permission table"):
        handler(Session(), command)
    command.request_id = 7  # type: ignore[attr-defined]
    handler(Session(), command)
    assert refused == [(7, "Unknown is not in the permission table")]


@pytest.mark.parametrize("kind", ASKING)
def test_any_such_command_asks_or_names_something_invalid_and_can_be_refused(kind: type) -> None:
    row = COMMAND_PERMISSIONS[kind]
    decisions = (Decision(False, "no"), Decision(False, "no", missing=True), Decision(False, "no", prefix_missing=True))

    @settings(max_examples=30, deadline=None)
    @given(instances(kind))
    def ask(command: Any) -> None:
        assert row.accesses is not None and row.refused is not None
        try:
            asked = list(row.accesses(command, Handles()))
        except MagnetarError:
            return
        lists = [
            value for name in ("partitions", "subscriptions") if (value := getattr(command, name, None)) is not None
        ]
        assert asked or lists == [()]
        for decision in decisions:
            answer = row.refused(command, Caller("role"), decision)
            assert getattr(answer, "request_id") == command.request_id  # noqa: B009
            codec.encode(answer)

    ask()


@pytest.mark.parametrize(("topics", "units"), [(1, None), (16, None), (17, [48, 3]), (40, [48, 48, 24])])
def test_many_objects_of_one_command_are_judged_in_steps_that_cost_what_they_take(
    topics: int, units: list[int] | None
) -> None:
    """Each decision takes about as long as three units of a connection's turn."""
    handled: list[Any] = []
    allowing = SimpleNamespace(decide=lambda caller, access: Decision(True, ""), record=lambda *_: None)
    session: Any = SimpleNamespace(
        service=SimpleNamespace(authorizer=allowing),
        caller=Caller("alice", None, ""),
        request_permitted=lambda *_: None,
    )
    command = c.CommandAddPartitionToTxn(1, c.TxnId(0, 1), tuple(f"t{number}" for number in range(topics)))
    handler: Any = guarded({type(command): lambda session, command: handled.append(command)})[type(command)]
    steps = handler(session, command)
    assert (None if steps is None else list(steps)) == units
    assert handled == [command]
