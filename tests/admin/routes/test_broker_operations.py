"""What one broker serves and can be asked to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from tests.admin.conftest import World, world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.isolation_policy import isolation_policy

BROKERS = "/admin/v2/brokers"
SHARED = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


@pytest.fixture(scope="module")
def shared() -> World:
    """One application for the tests here."""
    return world(Settings())


@pytest.fixture
def rest(shared: World) -> RestClient:
    return shared.rest


@pytest.fixture
def broker(shared: World) -> FakeBroker:
    return shared.broker


def test_owned_bundles_follow_topics_splits_and_isolation(rest: RestClient, broker: FakeBroker) -> None:
    own = broker.broker_id()
    path = f"{BROKERS}/standalone/{own}/ownedNamespaces"
    heartbeats = {f"pulsar/{name}/0x00000000_0xffffffff": SHARED for name in (f"standalone/{own}", own)}
    assert rest.get(path).json() == heartbeats
    topic = TopicName.parse("persistent://ref/main/t")
    broker.topics = {topic: {}, TopicName.parse(f"persistent://pulsar/{own}/healthcheck"): {}}
    bundle = rest.get("/lookup/v2/topic/persistent/ref/main/t/bundle").text
    assert rest.get(path).json() == {**heartbeats, f"ref/main/{bundle}": SHARED}
    assert rest.put(f"/admin/v2/namespaces/ref/main/{bundle}/split").status_code == 204
    half = rest.get("/lookup/v2/topic/persistent/ref/main/t/bundle").text
    assert half != bundle
    policies = "/admin/v2/clusters/standalone/namespaceIsolationPolicies/"
    for word, changes in (
        ("primary", {}),
        ("secondary", {"primary": ["x"], "secondary": ["127.*"]}),
        ("shared", {"primary": ["x"]}),
    ):
        assert rest.post(policies + "iso", json=isolation_policy(**changes)).status_code == 204
        controlled = {"broker_assignment": word, "is_controlled": True, "is_active": True}
        assert rest.get(path).json() == {**heartbeats, f"ref/main/{half}": controlled}
    # Pulsar does not look at the cluster's name
    assert rest.get(f"{BROKERS}/nope/{own}/ownedNamespaces").json() == rest.get(path).json()
    missing = rest.get(f"{BROKERS}/standalone/other:1/ownedNamespaces")
    assert (missing.status_code, missing.json()["reason"]) == (
        404,
        "Broker id 'other:1' not found in available brokers.",
    )


def test_quotas_are_checked_when_asked(rest: RestClient, broker: FakeBroker) -> None:
    assert rest.get(BROKERS + "/backlog-quota-check").status_code == 204
    assert broker.quotas_checked == 1


def test_shutdown(rest: RestClient, broker: FakeBroker) -> None:
    refused = rest.post(BROKERS + "/shutdown?maxConcurrentUnloadPerSec=x")
    assert (refused.status_code, broker.stopped) == (400, False)
    assert rest.post(BROKERS + "/shutdown?forcedTerminateTopic=true").status_code == 200
    assert broker.stopped


def test_a_backup(rest: RestClient, broker: FakeBroker) -> None:
    assert rest.get(BROKERS + "/backup").status_code == 404
    for body in (None, {}, {"name": 1}, {"name": "a", "path": "/"}, "a", [{"name": "a"}]):
        assert rest.post(BROKERS + "/backup", json=body).status_code == 400
    begun = rest.post(BROKERS + "/backup", json={"name": "monday"})
    assert (begun.status_code, begun.json(), broker.backups) == (
        202,
        {"name": "monday", "status": "RUNNING"},
        ["monday"],
    )
    assert rest.get(BROKERS + "/backup").json() == begun.json()


def test_internal_configuration_has_pulsars_members(rest: RestClient) -> None:
    shown = rest.get(BROKERS + "/internal-configuration").json()
    assert set(shown) == {
        *("zookeeperServers", "configurationStoreServers", "metadataStoreUrl", "configurationMetadataStoreUrl"),
        "ledgersRootPath",
    }


def test_status_says_what_the_file_says(rest: RestClient, tmp_path: Path) -> None:
    assert rest.get("/status.html").status_code == 404
    file = tmp_path / "in-rotation"
    asked = world(Settings(statusFilePath=str(file))).rest
    assert asked.get("/status.html").status_code == 404
    file.touch()
    shown = asked.get("/status.html")
    assert (shown.status_code, shown.text, shown.headers["content-type"].partition(";")[0]) == (200, "OK", "text/plain")
    file.unlink()
    file.mkdir()
    assert asked.get("/status.html").status_code == 404
