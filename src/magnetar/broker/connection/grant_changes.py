"""Asks again for what clients have opened when grants change, and closes what is not allowed any more (rule 12.9).

What a producer, a consumer or a watch needs is asked when it is opened, and not for each message. A change of a record
of a tenant or of a namespace, here or by another broker, therefore has everything that is open in there judged again:
the first of it before the change returns, the rest in turns of the loop; :meth:`GrantChanges.in_force` returns when all
of it is done, and REST answers only then. Of a record only what grants is looked at: any other policy may change as
often as it likes. A producer or consumer gets CLOSE_PRODUCER or CLOSE_CONSUMER, one that is
being opened its refusal; a watch gets no more updates, for which the protocol has no word. The connection stays.

Stricter than Pulsar, which looks at neither the proxy's own role, nor administrators of tenants, nor watches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from magnetar.authorization.access import Access, NamespaceAccess, TopicAccess
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.decision import Decision
from magnetar.authorization.operations import NamespaceOperation, TopicOperation
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.broker.connection.handlers.guarded_commands import SessionHandles
from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.open_handles import OpenConsumer, OpenWatch, PendingOpen
from magnetar.broker.connection.session import Session
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.publish.producer import Producer
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.protocol import commands as c

log = logging.getLogger(__name__)

AT_ONCE: Final = 200
"""Handles and connections that are looked at in one turn of the loop; about a millisecond."""
REQUEST: Final = "change of grants"
"""What asks, for the audit log."""

TENANT_GRANTS: Final = ("adminRoles",)
"""What of a tenant's record decides about what is open."""
NAMESPACE_GRANTS: Final = ("auth_policies", "subscription_auth_mode")
"""The same of a namespace's."""

Handle = Producer | OpenConsumer | OpenWatch | PendingOpen


class GrantChanges:
    """The judge of what is open; lives on the event loop."""

    def __init__(self, service: BrokerService, connections: Connections) -> None:
        self._service = service
        self._connections = connections
        self._tenants: set[str] = set()
        """Changed, and not looked at yet."""
        self._namespaces: set[NamespaceName] = set()
        self._looking: Iterator[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        """For the end of the look that is going on."""
        self._waiting_next: list[asyncio.Future[None]] = []
        """For the end of the one after it."""
        self._seen: dict[str | NamespaceName, tuple[Json, ...]] = {}
        """What grants in each tenant and each namespace, as the records had it when they were last heard of."""
        if service.authorizer is not None:
            service.resources.tenants.changed = self._tenant_changed
            service.resources.namespaces.grants_changed = self._namespace_changed
            service.grants_in_force = self.in_force
            for tenant in service.resources.tenants.names():
                self._grants_differ(tenant, service.resources.tenants.find(tenant), TENANT_GRANTS)
            for namespace in service.resources.namespaces.all():
                self._grants_differ(namespace, service.resources.namespaces.find(namespace), NAMESPACE_GRANTS)

    def _tenant_changed(self, tenant: str) -> None:
        if self._grants_differ(tenant, self._service.resources.tenants.find(tenant), TENANT_GRANTS):
            self._tenants.add(tenant)
            self._begin()

    def _namespace_changed(self, namespace: NamespaceName) -> None:
        if self._grants_differ(namespace, self._service.resources.namespaces.find(namespace), NAMESPACE_GRANTS):
            self._namespaces.add(namespace)
            self._begin()

    def _grants_differ(self, name: str | NamespaceName, record: JsonObject | None, fields: tuple[str, ...]) -> bool:
        """Whether what grants is another than before, which is remembered; a record that comes or goes differs."""
        before = self._seen.get(name)
        if record is None:
            self._seen.pop(name, None)
            return before is not None
        now = self._seen[name] = tuple(record.get(one) for one in fields)
        return now != before

    def everything(self) -> None:
        """Judge all that is open again: who is a superuser has changed."""
        self._tenants.update(self._service.resources.tenants.names())
        self._begin()

    async def in_force(self) -> None:
        """Return when everything that is open has been judged by the grants of now; later changes do not delay it."""
        if self._looking is not None:
            waiting = asyncio.get_running_loop().create_future()
            # the look that is going on has not heard of a change that came after it began
            unseen = self._tenants or self._namespaces
            (self._waiting_next if unseen else self._waiting).append(waiting)
            await waiting

    def _begin(self) -> None:
        if self._looking is None and len(self._connections):
            self._looking = self._look()
            self._work()
        elif self._looking is None:
            self._tenants.clear()
            self._namespaces.clear()

    def _work(self) -> None:
        assert self._looking is not None
        for _ in range(AT_ONCE):
            try:
                next(self._looking)
            except StopIteration:
                break
        else:
            asyncio.get_running_loop().call_soon(self._work)
            return
        self._looking = None
        self._answer()
        if self._tenants or self._namespaces:
            self._begin()
        if self._looking is None:
            # nothing is open any more, or the next look is over already
            self._answer()

    def _answer(self) -> None:
        waiting, self._waiting, self._waiting_next = self._waiting, self._waiting_next, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _look(self) -> Iterator[None]:
        """Go through all that is open, for the changes that are known when it begins; one step for each handle."""
        tenants, self._tenants = self._tenants, set()
        namespaces, self._namespaces = self._namespaces, set()
        authorizer = self._service.authorizer
        assert authorizer is not None
        for listener in list(self._connections):
            session = listener.session
            yield
            if session.closed or authorizer.superuser(session.caller):
                continue
            for handles in (session.producers, session.consumers, session.watches):
                for number in list(handles):
                    yield
                    # what is being opened may be open by now
                    held = handles.get(number)
                    if held is None or session.closed:
                        continue
                    try:
                        wanted = [one for one in _needed(session, held) if _concerns(one, tenants, namespaces)]
                        self._judge(authorizer, session, number, held, wanted)
                    except Exception:
                        text = "%s: what it has opened could not be judged by new grants"
                        log.exception(text, session.address, extra=session.known)
                        session.close("what it may do has changed")

    def _judge(
        self, authorizer: Authorizer, session: Session, number: int, held: Handle, wanted: Iterable[Access]
    ) -> None:
        for access in wanted:
            decision = authorizer.decide(session.caller, access)
            if not decision.allowed:
                authorizer.record(session.caller, access, decision, REQUEST)
                session.complain("unauthorized", "closed what it had opened: %s", decision.reason)
                _close(session, number, held, decision)
                return


def _needed(session: Session, held: Handle) -> Iterable[Access]:
    """What it took to open it."""
    if isinstance(held, PendingOpen):
        row = None if held.command is None else COMMAND_PERMISSIONS[type(held.command)]
        return () if row is None or row.accesses is None else row.accesses(held.command, SessionHandles(session))
    if isinstance(held, Producer):
        return (TopicAccess(TopicName.stored(held.log.name), TopicOperation.PRODUCE),)
    if isinstance(held, OpenConsumer):
        return (TopicAccess(held.topic.name, TopicOperation.CONSUME, held.subscription.name),)
    return (NamespaceAccess(held.namespace, NamespaceOperation.GET_TOPICS),)


def _concerns(access: Access, tenants: set[str], namespaces: set[NamespaceName]) -> bool:
    namespace = access.topic.namespace if isinstance(access, TopicAccess) else None
    if isinstance(access, NamespaceAccess):
        namespace = access.namespace
    return namespace is not None and (namespace in namespaces or namespace.tenant in tenants)


def _close(session: Session, number: int, held: Handle, decision: Decision) -> None:
    if isinstance(held, Producer):
        held.connection.close()
        session.service.producer_left(held)
    elif isinstance(held, OpenConsumer):
        held.consumer.connection.close()
        held.leave()
    elif isinstance(held, PendingOpen):
        _give_up(session, number, held, decision)
    else:
        del session.watches[number]
        held.close()


def _give_up(session: Session, number: int, held: PendingOpen, decision: Decision) -> None:
    """Refuse what is being opened."""
    command = held.command
    if isinstance(command, c.CommandProducer):
        del session.producers[number]
    else:
        del session.consumers[number]
    held.cancel()
    if command is not None:
        row = COMMAND_PERMISSIONS[type(command)]
        assert row.refused is not None
        session.send(row.refused(command, session.caller, decision))
