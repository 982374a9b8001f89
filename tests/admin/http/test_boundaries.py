"""Every route of REST with boundary values in its path, query and body; then everything still works.

The routes come from the application's own description, so that none is left out. Whatever is asked, no answer is a 500,
nothing is logged as an error, what others have is unchanged, and a clean client can do everything afterwards. Seeded;
the slow form (more rounds) runs with ``MAGNETAR_BOUNDARY_ROUNDS``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from magnetar import __version__
from magnetar.admin.application import create_app
from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.routes.namespaces.namespace_policies import POLICIES as NAMESPACE_POLICIES
from magnetar.admin.routes.topics.topic_policies import POLICIES as TOPIC_POLICIES
from magnetar.admin_api.description import document
from magnetar.model.policies import POLICY_FIELDS
from tests.support.described_routes import by_route
from tests.support.real_broker import RealBroker, real_broker

ROUNDS: Final = int(os.environ.get("MAGNETAR_BOUNDARY_ROUNDS", "8"))
"""Requests per route."""
WITNESS: Final = "persistent://witness/main/t"
ALLOWED: Final = frozenset(range(200, 300)) | frozenset(
    (400, 404, 405, 406, 409, 412, 413, 415, 422, 501, 503, 403, 307)
)

NUMBERS: Final = (
    *(["0", "1", "-1", "2", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"]),
    *(["-9223372036854775808", "-9223372036854775809", "1.5", "1e3", "NaN", "+1", "0x10", "1_0", "null", "true"]),
    *("1" + "0" * 400, "9" * 5000, " 1", "\u0661", ""),
)
TEXTS: Final = (
    *(
        [
            "t",
            "pt",
            "sub",
            "nope",
            "a",
            "main",
            "odd",
            "standalone",
            "a-partition-0",
            "t-partition-99999999999",
            "..",
            ".",
            "%2F",
            "a/b",
            "'",
            "<script>",
            "{}",
            "[",
        ]
    ),
    *(
        [
            "0x00000000_0x40000000",
            "0x00000000_",
            "_",
            "__change_events",
            "persistent://x",
            "PERSISTENT",
            "earliest",
            "latest",
            "schema",
        ]
    ),
    *(["partitions", "%", "*", "a?b", "a#b", "a;b"]),
    *(" ", "\u00fc\U0001f600", "a" * 255, "a" * 4000, "\x00", "a\nb", '"', "\u2028"),
)
RAW_PARTS: Final = ("%ED%A0%80", "%FF", "%", "%zz", "%00", "a%2Fb", "%252F", "+")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 1.5, 3.0, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)),
    *("", "3", "x", "true", "\u00fc", "a" * 10_000, "AVRO", "Exclusive", "latest", "earliest", "0x0", "\ud800"),
    *([], [1], ["x"], [[]], [None], ["\ud800"]),
    *({}, {"a": 1}, {"a": {}}, {"policy": None}, {"a": "\udfff"}, {"\ud800": "x"}, {"boundaries": ["x", "y"]}),
)
RAW_BODIES: Final = (
    *(b"", b"null", b" ", b"{", b"NaN", b"-Infinity", b"1e999", b"1" * 5000, b'"\xed\xa0\x80"', b"\xff\xfe"),
    *(
        b'"\\ud800"',
        b'{"\\ud800": 1}',
        b'{"a": "\\udfff"}',
        b'{"a":1,"a":2}',
        b"3 4",
        b"//",
        b"'x'",
        b"\x00",
        b"{" * 100,
    ),
    *(b"[" * 2000, b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b'{"partitions": 1e400}'),
    *(b" " * (1 << 20) + b"1", b"\xef\xbb\xbf1"),
)
MEMBERS: Final = [
    "ledgerId",
    "entryId",
    "isExcluded",
    "properties",
    "partitions",
    "type",
    "schema",
    "adminRoles",
    "allowedClusters",
    "bundles",
    "name",
    "active",
    "serviceUrl",
    "brokerServiceUrl",
    "retentionTimeInMinutes",
    "retentionSizeInMB",
    "limit",
    "limitSize",
    "limitTime",
    "policy",
    "topicType",
    "allowAutoTopicCreation",
    "defaultNumPartitions",
    "bookkeeperEnsemble",
    "bookkeeperWriteQuorum",
    "bookkeeperAckQuorum",
    "tickTime",
    "managedLedgerMaxMarkDeleteRate",
    "ratePeriodInSecond",
    "dispatchThrottlingRateInMsg",
    "entryFilterNames",
    "inactiveTopicDeleteMode",
    "maxInactiveDurationSeconds",
    "peerClusterNames",
    "PULSAR.SHADOW_SOURCE",
]


class Requests:
    """Random requests to one route, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def path(self, template: str, parameters: dict[str, dict[str, Any]]) -> str:
        """A path that mostly names what exists, so that requests get far, and sometimes something else."""
        rng = self.rng
        parts = []
        last = next((part.strip("{}") for part in reversed(template.split("/")) if part in _NAMES), "")
        for part in template.split("/"):
            if not part.startswith("{"):
                parts.append(part)
                continue
            name = part.strip("{}")
            if name == "domain":
                parts.append(rng.choice(("persistent", "persistent", "non-persistent")))
            elif name == "policy":
                parts.append(rng.choice(list(TOPIC_POLICIES if "{topic}" in template else NAMESPACE_POLICIES)))
            elif parameters.get(name, {}).get("type") == "integer" or name in _COUNTS:
                parts.append(quote(rng.choice(NUMBERS), safe=""))
            elif rng.random() < (0.4 if name == last else 0.1) and "{" + name + "}" in _NAMES:
                # these were not prepared: they are made, odd or not, and used by later requests
                parts.append(f"n{rng.randrange(4)}")
            elif rng.random() < 0.75:
                parts.append(_USUAL.get(name, rng.choice(("t", "sub", "pt"))))
            elif rng.random() < 0.2:
                parts.append(rng.choice(RAW_PARTS))
            else:
                parts.append(quote(rng.choice(TEXTS), safe=""))
        return "/".join(parts)

    def query(self, names: list[str]) -> str:
        chosen = [name for name in names if self.rng.random() < 0.5]
        values = (*NUMBERS, *TEXTS, "true", "false", "message_age", "V2", "ALL")
        return "&".join(f"{name}={quote(self.rng.choice(values)[:200], safe='')}" for name in chosen)

    def body(self, template: str) -> bytes:
        rng = self.rng
        if rng.random() < 0.25:
            return rng.choice(RAW_BODIES)
        if rng.random() < 0.4:
            return json.dumps(rng.choice(VALUES)).encode()
        usual = sorted(POLICY_FIELDS) if template.endswith("/namespaces/{tenant}/{namespace}") else MEMBERS
        members = rng.sample(usual, rng.randrange(1, 5))
        if rng.random() < 0.3:
            members += ["ledgerId", "entryId"]
        return json.dumps({name: rng.choice(VALUES) for name in members}).encode()


_NAMES: Final = frozenset(("{tenant}", "{namespace}", "{topic}", "{subscription}", "{cluster}"))
_COUNTS: Final = frozenset(
    (
        "timestamp",
        "count",
        "seconds",
        "position",
        "ledger",
        "entry",
        "version",
        "mostSigBits",
        "leastSigBits",
        "timeout",
        "ledgerId",
        "entryId",
    )
)
_USUAL: Final = {
    "tenant": "odd",
    "namespace": "main",
    "cluster": "other",
    "topic": "t",
    "bundle": "0x00000000_0x40000000",
}
"""Tenant ``odd`` is what the requests may ruin; no request names ``witness``."""


async def prepare(http: httpx.AsyncClient, tenant: str) -> None:
    """A namespace with a topic, a partitioned topic and a subscription; existing ones stay."""
    await http.put(f"/admin/v2/tenants/{tenant}", json={"allowedClusters": ["standalone"]})
    await http.put(f"/admin/v2/namespaces/{tenant}/main")
    topics = f"/admin/v2/persistent/{tenant}/main"
    await http.put(topics + "/t")
    await http.put(topics + "/pt/partitions", json=3)
    await http.put(topics + "/t/subscription/sub", json="earliest")
    await http.put(f"/admin/v2/non-persistent/{tenant}/main/t")


async def complete(http: httpx.AsyncClient, broker: RealBroker, tenant: str) -> None:
    """Everything that an ordinary client does: nothing of it may fail."""
    client = await broker.client()
    made = f"/admin/v2/persistent/{tenant}/main/"
    assert (await http.put(made + "new")).status_code == 204
    assert (await http.put(made + "pt2/partitions", json=2)).status_code == 204
    topic = f"persistent://{tenant}/main/new"
    consumer = await client.subscribe(topic, "day")
    consumer.flow(10)
    producer = await client.producer(topic)
    for number in range(3):
        await producer.receipt(producer.send(b"%d" % number))
    for _ in range(3):
        await consumer.ack((await consumer.receive()).message_id)
    base = f"/admin/v2/persistent/{tenant}/main/new"
    for method, path, body, status in (
        ("GET", base + "/stats", None, 200),
        ("GET", base + "/internalStats", None, 200),
        ("GET", base + "/lastMessageId", None, 200),
        ("POST", base + "/retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5}, 204),
        ("GET", base + "/retention", None, 200),
        ("POST", base + "/subscription/day/resetcursor/0", None, 204),
        ("POST", base + "/subscription/day/skip_all", None, 204),
        ("GET", f"/admin/v2/namespaces/{tenant}/main/topics", None, 200),
        ("GET", f"/lookup/v2/topic/persistent/{tenant}/main/new", None, 200),
        ("GET", f"/lookup/v2/topic/persistent/{tenant}/main/new/bundle", None, 200),
        ("GET", "/admin/v2/brokers/health", None, 200),
        ("GET", "/metrics", None, 200),
        ("DELETE", f"/admin/v2/persistent/{tenant}/main/pt2/partitions?force=true", None, 204),
        ("DELETE", base + "?force=true", None, 204),
    ):
        answered = await http.request(method, path, json=body, follow_redirects=True)
        assert answered.status_code == status, (method, path, answered.text)
    await client.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_route_with_boundary_values(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    async def scenario() -> None:
        settings: dict[str, Any] = {
            "transactionCoordinatorEnabled": True,
            "forceDeleteNamespaceAllowed": True,
            "forceDeleteTenantAllowed": True,
            "maxNumPartitionsPerPartitionedTopic": 20,
            "brokerDeleteInactiveTopicsEnabled": False,
        }
        async with real_broker(tmp_path, **settings) as broker:
            inner = broker.node.broker
            app = create_app(
                local_ports(inner.service, inner.rates, inner.connections), inner.resources, inner.settings
            )
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=60) as http:
                await _attack(broker, document(__version__, authentication=False), http, seed)

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == []


async def _attack(broker: RealBroker, described: dict[str, Any], http: httpx.AsyncClient, seed: int) -> None:
    await prepare(http, "witness")
    client = await broker.client()
    writer = await client.producer(WITNESS)
    for number in range(5):
        await writer.receipt(writer.send(b"%d" % number))
    before = await _witness(http)
    requests, asked, changed = Requests(seed), 0, True
    for _ in range(ROUNDS):
        for template, operations in by_route(described).items():
            if changed:  # what was refused has ruined nothing
                await prepare(http, "odd")
                changed = False
            for method, taken in operations.items():
                parameters = {name: found["schema"] for name, found in taken.items()}
                in_query = [name for name, found in taken.items() if found["in"] == "query"]
                path = requests.path(template, parameters)
                query = requests.query(in_query)
                body = requests.body(template) if method in ("post", "put") else b""
                asked += 1
                answered = await http.request(
                    method.upper(), path + ("?" + query if query else ""), content=body,
                    headers={"content-type": "application/json"},
                )  # fmt: skip
                changed |= method != "get" and answered.is_success
                what = (seed, asked, method.upper(), template, path[:200], query[:200], body[:100])
                if "the broker do not have" in answered.text:
                    continue  # Pulsar's own 500 for a listener that is not advertised
                assert answered.status_code in ALLOWED, (what, answered.status_code, answered.text[:500])
                if answered.status_code >= 400:
                    assert "reason" in answered.json(), (what, answered.text[:200])
    assert asked >= ROUNDS * 120
    assert await _witness(http) == before
    await writer.receipt(writer.send(b"still"))
    await complete(http, broker, "witness")
    await client.close()


async def _witness(http: httpx.AsyncClient) -> Any:
    """Everything about the tenant that no request names: policies, topics, subscriptions, messages."""
    found = {}
    for path in (
        "/admin/v2/tenants/witness",
        "/admin/v2/namespaces/witness/main",
        "/admin/v2/namespaces/witness/main/topics?mode=ALL",
        "/admin/v2/persistent/witness/main/partitioned",
        "/admin/v2/persistent/witness/main/t/internalStats",
        "/admin/v2/persistent/witness/main/t/properties",
        "/admin/v2/persistent/witness/main/t/subscriptions",
        "/admin/v2/persistent/witness/main/t/lastMessageId",
    ):
        answered = await http.get(path)
        assert answered.status_code == 200, (path, answered.text)
        found[path] = answered.json()
    return found
