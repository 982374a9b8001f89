"""The answers of a running broker are what the description says: nothing is missing, nothing is unknown.

Every operation is asked. Those that cannot succeed here are named with their reason.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import jsonschema_rs
from pydantic import BaseModel, TypeAdapter, ValidationError

from magnetar.admin_api.description import document
from magnetar.admin_api.operation import MetricsText, Operation, PlainText, RawMessage
from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.client.rest import RestAnswer
from magnetar.protocol.commands import SubType
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.real_broker import RealBroker, run_on_broker

BARE = (PlainText, MetricsText, RawMessage)
VALUES: Mapping[str, object] = {
    "domain": "persistent", "tenant": "public", "namespace": "default", "topic": "t", "subscription": "s",
    "subName": "s", "cluster": "standalone", "clusterName": "standalone", "role": "alice", "key": "team",
    "value": "payments", "version": 0, "seconds": 1000000, "count": 1, "position": 1, "timestamp": 0, "ledger": 0,
    "entry": 0, "ledgerId": 0, "entryId": 0, "mostSigBits": 0, "leastSigBits": 0, "timeout": 0, "domainName": "rack",
    "policyName": "mine", "resourcegroup": "batch", "group": "group-a", "coordinatorId": 0, "partition": 0,
    "configName": "maxPublishRatePerTopicInMessages", "configValue": "0", "bookie": "127.0.0.1:3181",
}  # fmt: skip
OTHER: Mapping[str, Mapping[str, object]] = {
    "tenants.create": {"tenant": "made"}, "tenants.update": {"tenant": "made"}, "tenants.delete": {"tenant": "made"},
    "namespaces.create": {"namespace": "made"}, "namespaces.delete": {"namespace": "made"},
    "clusters.create": {"cluster": "made"}, "clusters.update": {"cluster": "made"},
    "clusters.delete": {"cluster": "made"},
    "topics.create": {"topic": "made"}, "topics.delete": {"topic": "made"}, "topics.terminate": {"topic": "ended"},
    "topics.create_partitioned": {"topic": "parts2"}, "topics.delete_partitioned": {"topic": "parts2"},
    "topics.update_partitions": {"topic": "parts2"}, "topics.create_missed_partitions": {"topic": "parts"},
    "topics.terminate_partitioned": {"topic": "parts"}, "topics.get_partitioned_stats": {"topic": "parts"},
    "topics.get_partitioned_internal_stats": {"topic": "parts"}, "topics.publish_to_partition": {"topic": "parts"},
    "subscriptions.create": {"subscription": "made"}, "subscriptions.delete": {"subscription": "made"},
    "subscriptions.get_unacknowledged": {"subscription": "keys"},
    "namespaces.split_bundle": {"namespace": "split"}, "topics.publish": {"topic": "orders"},
    "namespaces.delete_bundle": {"namespace": "other"}, "namespaces.unsubscribe": {"subscription": "none"},
    "namespaces.unsubscribe_bundle": {"subscription": "none"},
}  # fmt: skip
"""Other values of parameters, of single operations."""
QUERY = {
    "namespaces.list_anti_affinity_namespaces": "tenant=public",
    "permissions.explain": "role=a&operation=produce&topic=t",
    "topic_policies.set_message_ttl": "messageTTL=100", "subscriptions.get_unacknowledged": "key=k",
}  # fmt: skip
BODY: Mapping[str, object] = {
    "namespaces.set_encryption_required": False, "namespaces.set_schema_validation_enforced": False,
    "topic_policies.set_schema_validation_enforced": False,
    "clusters.set_migration": None, "subscriptions.reset_cursor_to_id": "earliest", "namespaces.split_bundle": None,
    "clusters.set_peers": [], "namespaces.set_bookie_affinity_group": {},
}  # fmt: skip
FIRST = ("clusters.", "resource_groups.put", "transactions.", "schemas.create", "topics.create")
LAST = (
    ".remove", ".delete", ".clear", ".revoke", "topics.truncate", "topics.terminate", ".unsubscribe", ".skip_all",
    "transactions.abort", "schemas.delete", "topics.trigger", ".expire", ".unload", "brokers.delete",
)  # fmt: skip
REFUSED = {
    "bookies.get_rack": 404, "bookies.delete_rack": 404, "brokers.status": 404,
    "topics.set_shadow_topics": 412, "transactions.scale_coordinators": 501,
    "topics.adopt_offloaded_ledger": 403, "topics.adopt_compaction": 409,
    "transactions.get_metadata": 404, "transactions.abort": 404, "transactions.get_pending_ack_internal_stats": 503,
    "namespaces.set_offload_policies": 412, "topic_policies.set_offload_policies": 412,
    "subscriptions.expire_messages": 409,
    "subscriptions.expire_messages_of_all": 409,
    "broker_stats.get_broker_resource_availability": 409,
}  # fmt: skip
"""There are no bookies, no status file, no object store, no shadow topics, one coordinator without transactions and no
copies of ledgers; nothing is old."""
NOT_ASKED = {"brokers.shutdown"}


class Asking:
    """Requests to a broker, each of whose answers is held against the description."""

    def __init__(self, broker: RealBroker, bundle: str, places: Mapping[str, object]) -> None:
        address = urlsplit(broker.node.broker.service.web_service_url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)
        self._values = {**VALUES, **places, "bundle": bundle, "broker": address.netloc, "brokerId": address.netloc}
        self._document = document("1")
        self.findings: list[str] = []

    def all(self) -> None:
        """Ask every operation, what makes before what shows, and what removes at the end."""
        for operation in sorted(OPERATIONS, key=_turn):
            if operation.name not in NOT_ASKED:
                answer = self.ask(operation)
                self._judge(operation, answer)
        self._connection.close()

    def ask(self, operation: Operation) -> RestAnswer:
        """One request with its example."""
        values, path = {**self._values, **OTHER.get(operation.name, {})}, operation.path
        for name in operation.path_parameters:
            path = path.replace(f"{{{name}}}", quote(str(values[name]), safe=""))
        query = QUERY.get(operation.name)
        body = BODY.get(operation.name, operation.example)
        data = None if operation.body is None or body is None else json.dumps(body)
        headers = {"content-type": "application/json"}
        self._connection.request(operation.method, path + (f"?{query}" if query else ""), data, headers)
        answered = self._connection.getresponse()
        return RestAnswer(answered.status, dict(answered.headers.items()), answered.read())

    def _judge(self, operation: Operation, answer: RestAnswer) -> None:
        status, name = answer.http_status, operation.name
        described = self._document["paths"][operation.path][operation.method.lower()]["responses"]
        wanted = REFUSED.get(name, operation.status)
        if status != wanted and status != operation.unset:
            self.findings.append(f"{name}: {status} instead of {wanted}: {answer.content[:300]!r}")
        elif str(status) not in described:
            self.findings.append(f"{name}: {status} is not described: {answer.content[:200]!r}")
        elif status < 300:
            self._compare(operation, answer)

    def _compare(self, operation: Operation, answer: RestAnswer) -> None:
        name = operation.name
        if operation.answer is None or not answer.content:
            if answer.content or (operation.answer is not None and not operation.unset):
                self.findings.append(f"{name}: a body is {'not ' if answer.content else ''}described")
            return
        if operation.answer in BARE:
            return
        found = answer.json()
        content = self._document["paths"][operation.path][operation.method.lower()]["responses"]
        schema = content[str(operation.status)]["content"]["application/json"]["schema"]
        validator = jsonschema_rs.validator_for({**schema, "components": self._document["components"]})
        self.findings += [
            f"{name}: {error.instance_path}: {error.message[:200]}" for error in validator.iter_errors(found)
        ]
        try:
            value = TypeAdapter(operation.answer).validate_python(found)
        except ValidationError as error:
            self.findings.append(f"{name}: {error}")
            return
        self.findings += [f"{name}: unknown: {one}" for one in sorted(set(_unknown(value, "")))]


def _turn(operation: Operation) -> tuple[int, int]:
    """Making, then setting, then looking, then removing."""
    name = operation.name
    if any(word in name for word in LAST):
        return 3, 0 if "delete" not in name else 1 if "topic" in name or "subscr" in name else 2
    if operation.method == "GET" or name.startswith("permissions"):
        return 2, 0
    return (0 if any(name.startswith(word) or ".create" in name for word in FIRST) else 1), 0


def _unknown(value: Any, where: str) -> list[str]:
    """The members that no model knows, by their path."""
    if isinstance(value, BaseModel):
        extra = [f"{where}.{name}" for name in value.model_extra or ()]
        return extra + [
            one for name in type(value).model_fields for one in _unknown(getattr(value, name), f"{where}.{name}")
        ]
    if isinstance(value, dict):
        return [one for each in value.values() for one in _unknown(each, f"{where}.*")]
    if isinstance(value, list):
        return [one for each in value for one in _unknown(each, f"{where}[]")]
    return []


async def _scene(broker: RealBroker) -> Asking:
    """A topic with messages, subscriptions of two types, an open transaction; a partitioned topic; names to remove."""
    client = await broker.client()
    topic = "persistent://public/default/t"
    producer = await client.producer(topic)
    for name, start in (("s", "earliest"), ("keys", "earliest")):
        await broker.ask("PUT", f"/admin/v2/persistent/public/default/t/subscription/{name}", start)
    await client.subscribe(topic, "keys", sub_type=SubType.Key_Shared)
    now = broker.node.broker.service.clock.now_ms()  # a time to live is given to them, which is not over
    ids = [
        (
            await producer.receipt(producer.send(b"", entry=build_entry(EntryMetadata("p", number, now), b"order")))
        ).message_id
        for number in range(5)
    ]
    for path, body in (
        ("persistent/public/default/parts/partitions", 2), ("persistent/public/default/ended", None),
        ("namespaces/public/other", None), ("namespaces/public/split", None),
        ("persistent/public/default/orders", None),
    ):  # fmt: skip
        assert (await broker.ask("PUT", "/admin/v2/" + path, body))[0] == 204
    status, bundles = await broker.ask("GET", "/admin/v2/namespaces/public/default/bundles")
    assert status == 200 and ids[0] is not None
    low, high = bundles["boundaries"][:2]
    return Asking(broker, f"{low}_{high}", {"ledger": ids[0].ledger, "ledgerId": ids[0].ledger})


def test_every_answer_is_described(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        asking = await _scene(broker)
        await asyncio.to_thread(asking.all)
        assert asking.findings == [], "\n" + "\n".join(asking.findings)

    (tmp_path / "backups").mkdir()
    settings = {"transactionCoordinatorEnabled": True, "backupDirectory": str(tmp_path / "backups")}
    run_on_broker(tmp_path / "data", scenario, **settings)
