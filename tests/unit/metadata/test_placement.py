"""Placement data and migrations are there again after a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magnetar.config.settings import Settings
from magnetar.metadata.placement import DEFAULT_QUOTA
from magnetar.metadata.resources import Resources
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.names import NamespaceName
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from tests.support.at_once import at_once

NAMESPACE = NamespaceName.parse("public/default")
BUNDLE = "0x00000000_0x40000000"


def opened(path: Path) -> Resources:
    return Resources(MetadataLog(OsFileSystem(str(path))), Settings())


def test_all_of_it_survives_a_restart(tmp_path: Path) -> None:
    before = opened(tmp_path)
    placement, quota = before.placement, {**DEFAULT_QUOTA, "memory": 1.0}
    at_once(before.ensure_defaults())
    at_once(before.clusters.create("c2", {}))
    at_once(before.clusters.set_peers("c2", ["standalone"]))
    at_once(before.clusters.set_migration("c2", {"migrated": True}))
    at_once(placement.set_failure_domain("c2", "d", {"brokers": ["a:1"]}, lambda domains: None))
    at_once(placement.change_isolation_policies("c2", lambda policies: {**policies, "p": {"primary": ["x"]}}))
    at_once(placement.set_default_quota(quota))
    at_once(placement.set_quota(NAMESPACE, BUNDLE, quota))
    at_once(placement.set_bookie_affinity(NAMESPACE, {"bookkeeperAffinityGroupPrimary": "g"}))
    at_once(before.close())

    after = opened(tmp_path)
    assert after.clusters.get("c2")["peerClusterNames"] == ["standalone"]
    assert after.clusters.migration("c2") == {"migrated": True}
    assert after.placement.failure_domains("c2") == {"d": {"brokers": ["a:1"]}}
    assert after.placement.isolation_policies("c2") == {"p": {"primary": ["x"]}}
    assert after.placement.default_quota() == after.placement.quota(NAMESPACE, BUNDLE) == quota
    assert after.placement.bookie_affinity(NAMESPACE) == {"bookkeeperAffinityGroupPrimary": "g"}
    at_once(after.change_together(lambda: after.placement.without_quota(NAMESPACE, BUNDLE)))
    assert after.placement.without_quota(NAMESPACE, BUNDLE) == []
    assert after.placement.quota(NAMESPACE, BUNDLE) is None
    assert after.placement.bookie_affinity(NAMESPACE) is not None
    at_once(after.delete_namespace(NAMESPACE))
    at_once(after.delete_cluster("c2"))
    at_once(after.close())

    last = opened(tmp_path)
    assert last.placement.isolation_policies("c2") is None
    assert last.placement.bookie_affinity(NAMESPACE) is None
    at_once(last.close())


def test_a_bundle_of_which_nothing_was_said_has_apache_pulsars_quota(tmp_path: Path) -> None:
    placement = opened(tmp_path).placement
    assert placement.quota(NAMESPACE, BUNDLE) is None
    assert placement.default_quota() == {
        "msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 100_000.0, "bandwidthOut": 300_000.0, "memory": 80.0,
        "dynamic": True,
    }  # fmt: skip


def test_all_that_is_said_about_a_cluster_takes_a_megabyte_and_not_one_byte_more(tmp_path: Path) -> None:
    """A record is written and read whole; characters count as they are stored."""
    placement = opened(tmp_path).placement

    def said(size: int) -> None:
        domain = {"brokers": ["ü"]}
        rest = size - len(json.dumps({"d": domain}, ensure_ascii=False).encode())
        at_once(placement.set_failure_domain("c", "d", {"brokers": ["ü" + "x" * rest]}, lambda domains: None))

    said(1 << 20)
    kept = placement.failure_domains("c")
    assert len(json.dumps(kept, ensure_ascii=False).encode()) == 1 << 20
    with pytest.raises(PreconditionFailedError, match="all that is said about c would take more than 1048576 bytes"):
        said((1 << 20) + 1)
    assert placement.failure_domains("c") == kept
