"""Offload policies: bodies, answers, and the refusal of any place but the operator's."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.admin.values import offload_policies
from magnetar.broker.policies.policy_rules import resolve
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.topic_policies import TopicPolicies
from tests.admin.conftest import World, world

NS = "/admin/v2/namespaces/ref/main"
T = "/admin/v2/persistent/ref/main/t"
FILES = "file:///mnt/copies"
BUCKET = "s3://b/prefix"
S3: dict[str, Any] = {"managedLedgerOffloadDriver": "aws-s3", "managedLedgerOffloadBucket": "b"}


@pytest.mark.parametrize(
    ("url", "body", "reason"),
    [
        (FILES, None, "The offloadPolicies must be specified for namespace offload."),
        (FILES, {}, "The driver is not supported, support value: S3,aws-s3,google-cloud-storage,filesystem,azureblob"),
        (FILES, {"managedLedgerOffloadDriver": "bogus"}, "The driver is not supported"),
        (BUCKET, {"managedLedgerOffloadDriver": "aws-s3"}, "The bucket must be specified for namespace offload."),
        (FILES, S3, "not that of offloadUrl"),
        ("", {"managedLedgerOffloadDriver": "filesystem"}, "set offloadUrl"),
        (BUCKET, {**S3, "managedLedgerOffloadBucket": "other"}, "the bucket other is not that of offloadUrl"),
        (BUCKET, {**S3, "managedLedgerOffloadDriver": "aliyun-oss"}, "aliyun-oss is not that of offloadUrl"),
        (BUCKET, {**S3, "s3ManagedLedgerOffloadCredentialSecret": "x"}, "from the broker's environment"),
        (BUCKET, {**S3, "managedLedgerOffloadServiceEndpoint": "http://evil"}, "from the broker's environment"),
        (FILES, {"managedLedgerOffloadDriver": "filesystem", "fileSystemURI": "file:///etc"}, "is not offloadUrl"),
    ],
)
def test_refusals(url: str, body: Any, reason: str) -> None:
    with pytest.raises(PreconditionFailedError, match=reason):
        offload_policies.checked(body, url)


@pytest.mark.parametrize("body", [[], "x", {**S3, "managedLedgerOffloadThresholdInBytes": "x"},
                                  {**S3, "managedLedgerOffloadedReadPriority": "x"}])  # fmt: skip
def test_what_is_no_policy_is_400(body: Any) -> None:
    with pytest.raises(InvalidValueError):
        offload_policies.checked(body, BUCKET)


@pytest.mark.parametrize("driver", ["s3", "AWS-S3"])
def test_the_case_of_a_driver_does_not_count(driver: str) -> None:
    given = {**S3, "managedLedgerOffloadDriver": driver}
    shown = offload_policies.shown(offload_policies.checked(given, BUCKET))
    assert (shown["managedLedgerOffloadDriver"], shown["s3Driver"]) == (driver, True)
    with pytest.raises(PreconditionFailedError, match="not that of offloadUrl"):
        offload_policies.checked(given, FILES)


@pytest.mark.parametrize("word", ["BOOKKEEPER_FIRST", "bookkeeper-first"])
def test_priorities_are_shown_as_java_reads_them(word: str) -> None:
    given = {**S3, "managedLedgerOffloadedReadPriority": word}
    assert offload_policies.checked(given, BUCKET)["managedLedgerOffloadedReadPriority"] == "BOOKKEEPER_FIRST"
    assert offload_policies.shown(given)["managedLedgerOffloadedReadPriority"] == "BOOKKEEPER_FIRST"


def test_the_answer_has_pulsars_members() -> None:
    given: dict[str, Any] = {
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadThresholdInBytes": 5,
        "bogus": 1,
    }
    assert offload_policies.shown(offload_policies.checked(given, FILES)) == {
        "offloadersDirectory": "./offloaders",
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadMaxThreads": 2,
        "managedLedgerOffloadReadThreads": 2,
        "managedLedgerOffloadPrefetchRounds": 1,
        "managedLedgerOffloadThresholdInBytes": 5,
        "managedLedgerExtraConfigurations": {},
        "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 67108864,
        "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1048576,
        "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
        "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 134217728,
        "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1048576,
        "s3Driver": False,
        "gcsDriver": False,
        "fileSystemDriver": True,
    }


@pytest.fixture(scope="module")
def offloading() -> World:
    return world(Settings(offloadUrl=FILES))


def test_of_a_namespace(offloading: World) -> None:
    rest = offloading.rest
    path = NS + "/offloadPolicies"
    assert (rest.get(path).status_code, rest.get(path).text) == (200, "")
    body = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadThresholdInBytes": 9}
    assert rest.post(path, json=body).status_code == 204
    # the older routes say and change the same
    assert rest.get(NS + "/offloadThreshold").json() == 9
    assert rest.put(NS + "/offloadDeletionLagMs", json=88).status_code == 204
    found = rest.get(path).json()
    assert (found["managedLedgerOffloadThresholdInBytes"], found["managedLedgerOffloadDeletionLagInMillis"]) == (9, 88)
    assert rest.post(path, json={"managedLedgerOffloadDriver": "bogus"}).status_code == 412
    assert rest.get(path).json() == found
    assert rest.delete(NS + "/removeOffloadPolicies").status_code == 204
    assert (rest.get(path).text, rest.get(NS + "/offloadThreshold").json()) == ("", -1)
    assert rest.get("/admin/v2/namespaces/ref/none/offloadPolicies").status_code == 404
    assert rest.post("/admin/v2/namespaces/ref/none/offloadPolicies", json=body).status_code == 404


def test_of_a_topic(offloading: World) -> None:
    rest = offloading.rest
    assert rest.put(T).status_code == 204
    path = T + "/offloadPolicies"
    assert (rest.get(path).status_code, rest.get(path).text) == (200, "")
    assert rest.post(path, content=b"null").status_code == 412
    body = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerOffloadDeletionLagInMillis": 7}
    assert rest.post(path, json=body).status_code == 204
    assert rest.get(path).json()["managedLedgerOffloadDeletionLagInMillis"] == 7
    assert rest.delete(path).status_code == 204
    assert rest.get(path).text == ""
    assert rest.put(NS + "/offloadThreshold", json=3).status_code == 204
    assert rest.get(path + "?applied=true").json()["managedLedgerOffloadThresholdInBytes"] == 3


def test_a_topics_thresholds_come_before_its_namespaces() -> None:
    topic: dict[str, Any] = {
        "offloadPolicies": {"managedLedgerOffloadThresholdInBytes": 1, "managedLedgerOffloadDeletionLagInMillis": -1}
    }
    namespace = {"offload_threshold": 2, "offload_threshold_in_seconds": 3, "offload_deletion_lag_ms": 4}
    found = resolve(TopicPolicies(), namespace, topic)
    assert (found.offload_threshold, found.offload_threshold_s, found.offload_deletion_lag_ms) == (1, 3, -1)
