"""The official client with grants that come and go, on a broker of its own process; and what its audit log says."""

from __future__ import annotations

import json
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers import magnetar
from tools.servers.process import Server

from tests.support.signed_tokens import SECRET, inline, signed

PERMISSIONS = "/admin/v2/namespaces/public/default/permissions"
PATIENCE_MS = 10_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("authorized")
    settings = {
        "authenticationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": inline(SECRET),
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "allowAclChangesOnNonExistentTopics": "true",
        "auditLogFile": str(directory / "audit.log"),
    }
    with magnetar.start(directory, settings=settings) as running:
        yield running


def token(role: str) -> str:
    return signed({"sub": role, "exp": int(time.time()) + 3600})


def ask(server: Server, method: str, path: str, body: object = None) -> None:
    """Ask over REST as the superuser."""
    request = urllib.request.Request(server.http_url + path, method=method)
    request.add_header("Authorization", f"Bearer {token('admin')}")
    request.add_header("Content-Type", "application/json")
    if body is not None:
        request.data = json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=10):
        pass


@pytest.fixture
def clients(server: Server) -> Iterator[Any]:
    opened: list[Any] = []

    def client_of(role: str) -> Any:
        made = pulsar.Client(
            server.broker_url,
            pulsar.AuthenticationToken(token(role)),
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            operation_timeout_seconds=10,
        )
        opened.append(made)
        return made

    yield client_of
    for one in opened:
        one.close()


def test_grants_come_and_go(server: Server, clients: Any) -> None:
    """Without a grant nothing, with it everything, and after its end nothing again; others go on (rule 12.9)."""
    alice, bob, topic = clients("alice"), clients("bob"), "persistent://public/default/shared"
    ask(server, "POST", f"{PERMISSIONS}/bob", ["produce", "consume"])
    with pytest.raises(pulsar.AuthorizationError):
        alice.create_producer(topic)
    ask(server, "POST", f"{PERMISSIONS}/alice", ["produce"])
    hers, his = alice.create_producer(topic, send_timeout_millis=5000), bob.create_producer(topic)
    consumer = bob.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    with pytest.raises(pulsar.AuthorizationError):
        alice.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    hers.send(b"granted")
    ask(server, "DELETE", f"{PERMISSIONS}/alice")
    with pytest.raises(pulsar.PulsarException):
        hers.send(b"revoked")
    his.send(b"still there")
    got = [consumer.receive(PATIENCE_MS).data() for _ in range(2)]
    assert got == [b"granted", b"still there"]
    ask(server, "POST", f"{PERMISSIONS}/alice", ["produce"])
    alice.create_producer(topic).send(b"again")
    assert consumer.receive(PATIENCE_MS).data() == b"again"


def test_a_grant_on_a_partitioned_topic_holds_for_its_partitions(server: Server, clients: Any) -> None:
    ask(server, "PUT", "/admin/v2/persistent/public/default/parts/partitions", 2)
    path = "/admin/v2/persistent/public/default/parts/permissions/carol"
    ask(server, "POST", path, ["produce", "consume"])
    carol = clients("carol")
    consumer = carol.subscribe("public/default/parts", "s")
    producer = carol.create_producer("public/default/parts")
    for number in range(4):
        producer.send(b"%d" % number)
    assert sorted(consumer.receive(PATIENCE_MS).data() for _ in range(4)) == [b"0", b"1", b"2", b"3"]
    with pytest.raises(pulsar.AuthorizationError):
        carol.create_producer("public/default/other")


def test_a_grant_waits_for_its_topic(server: Server, clients: Any) -> None:
    """With allowAclChangesOnNonExistentTopics a role is let in before the topic exists, and makes it (rule 11.4.7)."""
    ask(server, "POST", "/admin/v2/persistent/public/default/to-come/permissions/erin", ["produce"])
    erin = clients("erin")
    erin.create_producer("public/default/to-come").send(b"first")
    with pytest.raises(pulsar.AuthorizationError):
        erin.create_producer("public/default/to-come-2")


def test_the_audit_log_has_the_refusals_and_the_grants(server: Server, clients: Any) -> None:
    with pytest.raises(pulsar.AuthorizationError):
        clients("mallory").create_producer("public/default/audited")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{server.http_url}/admin/v2/clusters?secret=not-recorded", timeout=10)
    ask(server, "POST", f"{PERMISSIONS}/dave", ["consume"])
    file = server.log.with_name("audit.log")
    deadline = time.monotonic() + 10
    records: list[Any] = []
    while time.monotonic() < deadline and not any(one.get("operation") == "ADMINISTER" for one in records):
        records = [json.loads(line) for line in file.read_text().splitlines()]
    (stranger,) = (one for one in records if one["request"] == "GET /admin/v2/clusters")
    assert (stranger["operation"], stranger["outcome"], "role" in stranger) == ("connect", "refused", False)
    assert stranger["reason"].startswith("login refused: no credentials")
    refused = [one for one in records if one.get("role") == "mallory"]
    assert refused and {one["outcome"] for one in refused} == {"refused"}
    assert all(one["method"] == "token" and one["object"].startswith("persistent://public/default/") for one in refused)
    assert any(one.get("role") == "admin" and one["outcome"] == "allowed" for one in records)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
