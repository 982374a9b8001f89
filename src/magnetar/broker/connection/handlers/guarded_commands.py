"""Handlers that ask the authorizer first: what a session of a broker with authorization has (rule 12.7).

Each handler is wrapped once, at import, by its row of
:mod:`magnetar.authorization.permission_table.command_permissions`. Those whose row asks nothing stay as they are; a
command without a row is refused. A request with thousands of objects is judged in steps
(:mod:`magnetar.broker.connection.bounds.turns`), and nothing of it is done before all of them are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from magnetar.authorization.access import Access
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS, CommandPermission
from magnetar.broker.connection.open_handles import OpenConsumer, PendingOpen
from magnetar.broker.connection.session import Handler, Session
from magnetar.model.errors import (
    InvalidNamespaceNameError,
    InvalidTopicNameError,
    NotAllowedError,
    ProtocolError,
)
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.server import FROM_CLIENT

AT_ONCE: Final = 16
"""Objects of one request that are judged without a step in between."""
_UNITS_EACH: Final = 3
"""Units of work that a decision takes, about."""


class SessionHandles:
    """What a session has opened, as the permission table looks at it."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def consumed(self, consumer_id: int) -> tuple[TopicName, str] | None:
        """Topic and subscription of an open consumer."""
        held = self._session.consumers.get(consumer_id)
        return (held.topic.name, held.subscription.name) if isinstance(held, OpenConsumer) else None

    def sharing(self, topic: TopicName, schema: c.Schema | None, *, first: bool = False) -> TopicName | None:
        """The topic of the other domain that would get this schema as well (rule 10.2), if it exists."""
        if schema is None or schema.type is SchemaType.AUTO_CONSUME:
            return None
        service, other = self._session.service, topic.namesake
        if not service.exists(other) and not service.resources.partitioned.count(other):
            return None
        known = (
            service.schemas.versions(topic)
            if first
            else service.schemas.knows(topic, SchemaDefinition(schema.type, schema.schema_data))
        )
        return None if known else other


def guarded(handlers: Mapping[type, Handler]) -> dict[type, Handler]:
    """Return the table with handlers that ask first."""
    return {kind: _guarded(kind, handler) for kind, handler in handlers.items()}


def _guarded(kind: type, handler: Handler) -> Handler:
    if kind not in FROM_CLIENT:
        return handler  # the handshake and keep-alive, which a client without a role needs
    row = COMMAND_PERMISSIONS.get(kind)
    if row is None:
        return _without_row
    if (accesses := row.accesses) is None:
        return handler

    def guard(session: Session, command: Any) -> Iterator[int] | None:
        try:
            wanted = list(accesses(command, SessionHandles(session)))
        except (InvalidTopicNameError, InvalidNamespaceNameError):
            # the handler finds the same name invalid, and has its own answer for that
            return handler(session, command)
        if len(wanted) > AT_ONCE:
            return _judged_in_steps(session, command, row, wanted, handler)
        if not all(_allowed(session, command, row, access) for access in wanted):
            return None
        return _opened(session, command, handler(session, command))

    return guard


def _judged_in_steps(
    session: Session, command: Any, row: CommandPermission, wanted: Iterable[Access], handler: Handler
) -> Iterator[int]:
    rest = iter(wanted)
    while some := list(islice(rest, AT_ONCE)):
        if not all(_allowed(session, command, row, access) for access in some):
            return
        yield _UNITS_EACH * len(some)
    yield from handler(session, command) or ()


def _allowed(session: Session, command: Any, row: CommandPermission, access: Access) -> bool:
    """Whether it is; if not, the command is answered."""
    authorizer = session.service.authorizer
    assert authorizer is not None, "the guarded table is that of brokers which authorize"
    decision = authorizer.decide(session.caller, access)
    request = name_of(type(command))
    if decision.allowed:
        if row.recorded:
            authorizer.record(session.caller, access, decision, request)
        return True
    authorizer.record(session.caller, access, decision, request)
    session.complain("unauthorized", "%s refused: %s", request, decision.reason)
    if row.refused is not None:
        session.send(row.refused(command, session.caller, decision))
    return False


def _opened(session: Session, command: Any, steps: Iterator[int] | None) -> Iterator[int] | None:
    """Note with what is being opened which command did it, so that it can be judged again when grants change."""
    kind = type(command)
    held: object = None
    if kind is c.CommandProducer:
        held = session.producers.get(command.producer_id)
    elif kind is c.CommandSubscribe:
        held = session.consumers.get(command.consumer_id)
    # an id that is being opened already keeps the command that began it: the second one is refused
    if isinstance(held, PendingOpen) and held.command is None:
        held.command = command
    return steps


def still_allowed(session: Session, command: Any) -> bool:
    """Whether what a command opens is still allowed now that it is ready; if not, the command is answered.

    Between its question and this moment grants may have changed, while it waited in a queue or for the disk.
    """
    authorizer = session.service.authorizer
    if authorizer is None:
        return True
    row = COMMAND_PERMISSIONS[type(command)]
    for access in () if row.accesses is None else row.accesses(command, SessionHandles(session)):
        if not authorizer.decide(session.caller, access).allowed:
            return _allowed(session, command, row, access)
    return True


def _without_row(session: Session, command: Any) -> None:
    """Refuse a command that the permission table does not know."""
    request_id = getattr(command, "request_id", None)
    text = f"{name_of(type(command))} is not in the permission table"
    if request_id is None:
        raise ProtocolError(text)
    session.fail(request_id, NotAllowedError(text))
