"""A tenant of its own with roles and grants, on a broker that asks who somebody is and what they may.

Roles say what they may: ``topic-producer`` has produce on the topics of the stage, ``ns-consumer`` consume on the
namespace, ``member`` the same and is among the roles of the subscription ``own``; ``stranger`` is known and may
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from tools.servers.process import HOST

from magnetar.protocol.generated import pulsar_pb2 as schema
from tests.conformance.answers import Json, text
from tests.conformance.probe import Broker
from tests.conformance.rest import Answer, call
from tests.conformance.roles import until
from tests.conformance.tokens import SUPERUSER, credentials, token
from tests.conformance.transaction_stage import ASSIGN
from tests.conformance.wire import ClosedError, Frame, SilentError, Wire

ROLES: Final = (
    "stranger",
    "other-admin",
    "topic-producer",
    "topic-consumer",
    "ns-producer",
    "ns-consumer",
    "member",
    "tenant-admin",
    SUPERUSER,
)
CLUSTER: Final = "standalone"
STARTED_SECONDS_MAX: Final = 30.0
_ACTIONS: Final = (("producer", "produce"), ("consumer", "consume"))


class Stage:
    """The tenant, its namespace ``main`` and a namespace ``kept`` whose subscription ``own`` is for ``member`` only."""

    def __init__(self, broker: Broker, *topics: str) -> None:
        self.broker = broker
        self.tenant = broker.probe_id
        self.namespace = f"{self.tenant}/main"
        self.kept = f"{self.tenant}/kept"
        self._started()
        self.make("PUT", f"tenants/{self.tenant}-other", {"adminRoles": ["other-admin"], "allowedClusters": [CLUSTER]})
        for namespace in (self.namespace, self.kept):
            self.make("PUT", f"namespaces/{namespace}")
            for kind, action in _ACTIONS:
                self.make("POST", f"namespaces/{namespace}/permissions/ns-{kind}", [action])
            self.make("POST", f"namespaces/{namespace}/permissions/member", ["consume"])
        self.make("POST", f"namespaces/{self.kept}/permissions/subscription/own", ["member"])
        for topic in topics:
            self.add(topic)

    def _started(self) -> None:
        """Wait for the metadata of a broker that answers already, and make the tenant."""
        until_then = time.monotonic() + STARTED_SECONDS_MAX
        body = {"adminRoles": ["tenant-admin"], "allowedClusters": [CLUSTER]}
        while True:
            found = self.rest("PUT", f"tenants/{self.tenant}", SUPERUSER, body)
            if found.status in (204, 409):
                return
            assert time.monotonic() < until_then, f"no tenant: {found.told()}"
            time.sleep(0.2)

    def make(self, method: str, path: str, body: Json = None) -> None:
        """A request of the superuser that must succeed, or had succeeded before."""
        found = self.rest(method, path, SUPERUSER, body)
        assert found.status in (200, 204, 409), f"{method} {path}: {found.told()}"

    def name(self, topic: str = "t", domain: str = "persistent", namespace: str = "") -> str:
        return f"{domain}://{namespace or self.namespace}/{topic}"

    def add(self, topic: str, namespace: str = "") -> None:
        """A topic of both domains, which ``topic-producer`` and ``topic-consumer`` have grants on; `p…` has partitions.

        The non-persistent one is held open by the superuser, without which there is none.
        """
        where = namespace or self.namespace
        if topic.startswith("p"):
            self.make("PUT", f"persistent/{where}/{topic}/partitions", 2)
            self.make("PUT", f"non-persistent/{where}/{topic}/partitions", 2)
            opened = [f"{topic}-partition-0", f"{topic}-partition-1"]
        else:
            self.make("PUT", f"persistent/{where}/{topic}")
            opened = [topic]
        for one in opened:
            self.look_up(self.name(one, namespace=where))
            self.producer(self.login(SUPERUSER), self.name(one, "non-persistent", where))
        for domain in ("persistent", "non-persistent"):
            for kind, action in _ACTIONS:
                self.make("POST", f"{domain}/{where}/{topic}/permissions/topic-{kind}", [action])

    def look_up(self, topic: str) -> None:
        """Make Apache Pulsar take the topic's bundle."""
        wire = self.login(SUPERUSER)
        wire.request("LOOKUP", topic=topic)
        wire.close()

    def coordinator(self) -> Wire:
        """A connection of the superuser to a coordinator of transactions that is there."""
        wire = self.login(SUPERUSER)
        wire.request("LOOKUP", topic=f"{ASSIGN}-partition-0")

        def connect() -> Frame:
            got = wire.request("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
            return Frame("not yet", got.body) if got.has("error") else got

        until("TC_CLIENT_CONNECT_RESPONSE", connect, STARTED_SECONDS_MAX)
        return wire

    def begin(self, wire: Wire) -> dict[str, int]:
        begun = wire.request("NEW_TXN", tc_id=0, txn_ttl_seconds=600_000)
        return {name: begun.get(name) for name in ("txnid_most_bits", "txnid_least_bits")}

    def attempt(self, **fields: Json) -> tuple[Wire, Json]:
        """A CONNECT with these fields and its answer; whether the connection is closed then, if refused."""
        wire = self.broker.raw()
        wire.send("CONNECT", client_version="oracle", protocol_version=21, **fields)
        try:
            got = wire.receive("CONNECTED", "ERROR")
        except ClosedError:
            return wire, "closed"
        if got.kind == "CONNECTED":
            return wire, "CONNECTED"
        return wire, {**self.broker.say(got)[got.kind], "closed": wire.closed()}

    def login(self, role: str, **fields: Json) -> Wire:
        wire = self.broker.raw()
        wire.connect(**{**credentials(role), **fields})
        return wire

    def producer(self, wire: Wire, topic: str, producer_id: int = 1, **fields: Json) -> Frame:
        wire.request("LOOKUP", topic=topic)
        return wire.request("PRODUCER", topic=topic, producer_id=producer_id, **fields)

    def consumer(self, wire: Wire, topic: str, subscription: str, consumer_id: int = 1) -> Frame:
        wire.request("LOOKUP", topic=topic)
        return wire.request(
            "SUBSCRIBE", topic=topic, subscription=subscription, consumer_id=consumer_id, subType="Shared"
        )

    def rest(
        self, method: str, path: str, role: str | None, body: Json = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request as that role; without one, as nobody."""
        sent = {"Accept": "application/json", **(headers or {})}
        if role is not None:
            sent["Authorization"] = f"Bearer {token(role)}"
        return call(f"http://{HOST}:{self.broker.http_port}", method, path, body, sent)

    def outcome(self, answer: Answer, role: str = "") -> str:
        """``allowed``, or why not; the tenant and the role by words."""
        if answer.status not in (401, 403):
            return "allowed"
        reason = answer.body.get("reason") if isinstance(answer.body, dict) else ""
        return f"{answer.status} {self.plain(reason or '', role)}".rstrip()

    def verdict(self, answer: Answer) -> str:
        """``allowed``, or the status of the refusal, where its text is each broker's own."""
        return str(answer.status) if answer.status in (401, 403) else "allowed"

    def plain(self, value: str, role: str = "") -> str:
        """A text in which the tenant and the role are words."""
        value = text(value).replace(self.tenant, "<tenant>")
        return value.replace(f"[{role}]", "[<role>]") if role else value


def said(answer: Frame | str) -> str:
    """``allowed``, or the error and its text."""
    if isinstance(answer, str):
        return answer
    for code in ("error", "error_code"):
        if code in answer.body.DESCRIPTOR.fields_by_name and answer.has(code):
            value = schema.ServerError.Name(answer.get(code))
            texts = [name for name in ("message", "error_message") if name in answer.body.DESCRIPTOR.fields_by_name]
            told = next((answer.get(name) for name in texts), "")
            return f"{value} {told}".rstrip()
    return "allowed"


def asked(wire: Wire, kind: str, **fields: Json) -> Frame | str:
    """The answer to a request, or how there was none."""
    try:
        return wire.request(kind, **fields)
    except ClosedError:
        return "closed"
    except SilentError:
        return "no answer"


def by_outcome(roles: Iterable[str], ask: Callable[[str], str]) -> dict[str, str]:
    """Who gets which answer: roles by outcome, in the order of the roles."""
    found: dict[str, list[str]] = {}
    for role in roles:
        found.setdefault(ask(role), []).append(role)
    return {outcome: " ".join(those) for outcome, those in found.items()}
