"""Policies whose request depends on more than one flag: quotas, offloading, delayed delivery, dispatch rates."""

from __future__ import annotations

from typing import Any, Final

from magnetar.cli.admin.call import Call
from magnetar.cli.admin.request import namespace_path, quoted
from magnetar.cli.admin.values import INT_MAX

_TICK_MILLIS: Final = 1000
_S3_DRIVERS: Final = ("s3", "aws-s3")
_GCS_DRIVER: Final = "google-cloud-storage"
_DRIVERS: Final = (*_S3_DRIVERS, _GCS_DRIVER, "filesystem", "azureblob", "aliyun-oss")
_PRIORITIES: Final = {"tiered-storage-first": "TIERED_STORAGE_FIRST", "bookkeeper-first": "BOOKKEEPER_FIRST"}
_FIXED: Final[dict[str, Any]] = {
    "offloadersDirectory": "./offloaders",
    "managedLedgerOffloadMaxThreads": 2,
    "managedLedgerOffloadReadThreads": 2,
    "managedLedgerOffloadPrefetchRounds": 1,
    "managedLedgerExtraConfigurations": {},
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 64 << 20,
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 128 << 20,
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
}
"""What the official tool sends beside the flags, whatever they say."""


def place(call: Call) -> str:
    """Return the path of the topic or namespace whose policy the command is about."""
    if "topic" in call.values:
        return call.topic
    return f"/admin/v2/namespaces/{namespace_path(call.values['namespace'])}"


def scope(call: Call) -> dict[str, Any]:
    """Return the query of a policy that may hold in all clusters."""
    return {"isGlobal": True if call.switch("global") else None}


def set_backlog_quota(call: Call) -> None:
    """Limit a backlog by size or by age."""
    kind, limit, age = call.text("type"), call.number("limit"), call.number("limitTime")
    if kind not in ("destination_storage", "message_age"):
        call.usage(f"--type {kind[:80]!r} is neither destination_storage nor message_age")
    if kind == "message_age" and age is None:
        call.usage("a quota of the type message_age needs --limitTime")
    if kind == "destination_storage" and limit is None:
        call.usage("a quota of the type destination_storage needs --limit")
    policies = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
    if call.text("policy") not in policies:
        call.usage(f"--policy {call.text('policy')[:80]!r} is none of {', '.join(policies)}")
    if age is not None and abs(age) > INT_MAX:
        call.usage("--limitTime is too long")
    size = limit if kind == "destination_storage" else -1
    time = age if kind == "message_age" else -1
    body = {"limit": size, "limitSize": size, "limitTime": time, "policy": call.text("policy")}
    call.send("POST", f"{place(call)}/backlogQuota", {**scope(call), "backlogQuotaType": kind}, body)


def set_delayed_delivery(call: Call) -> None:
    """Turn delayed delivery on or off."""
    body = {
        "tickTime": _TICK_MILLIS if call.number("time") is None else call.number("time"),
        "active": call.switch("enable"),
        "maxDeliveryDelayInMillis": call.number("maxDelay") or 0,
    }
    call.send("POST", f"{place(call)}/delayedDelivery", scope(call), body)


def set_offload_policies(call: Call) -> None:
    """Say where and when ledgers are offloaded."""
    driver = call.text("driver")
    if driver.lower() not in _DRIVERS:
        call.usage(f"--driver {driver[:80]!r} is none of {', '.join(_DRIVERS)}")
    s3, gcs = driver.lower() in _S3_DRIVERS, driver.lower() == _GCS_DRIVER
    if s3 and not call.text("region") and not call.text("endpoint"):
        call.usage("an offload to S3 needs --region or --endpoint")
    call.send("POST", f"{place(call)}/offloadPolicies", scope(call), _offload_body(call, driver, s3, gcs))


def _offload_body(call: Call, driver: str, s3: bool, gcs: bool) -> dict[str, Any]:
    block = _first(call, "maxBlockSizeInBytes", "maxBlockSize")
    buffer = _first(call, "readBufferSizeInBytes", "readBufferSize")
    body = {**_FIXED, "managedLedgerOffloadDriver": driver, "s3Driver": s3, "gcsDriver": gcs}
    body["fileSystemDriver"] = driver.lower() == "filesystem"
    store = {
        "Region": call.text("region") or None,
        "Bucket": call.text("bucket") or None,
        "ServiceEndpoint": call.text("endpoint") or None,
        "MaxBlockSizeInBytes": block if block is not None else 64 << 20,
        "ReadBufferSizeInBytes": buffer if buffer is not None else 1 << 20,
    }
    if s3:
        body |= {f"s3ManagedLedgerOffload{name}": value for name, value in store.items()}
        body |= {
            "s3ManagedLedgerOffloadCredentialId": call.text("aws-id") or None,
            "s3ManagedLedgerOffloadCredentialSecret": call.text("aws-secret") or None,
            "s3ManagedLedgerOffloadRole": call.text("s3-role") or None,
        }
        if call.text("s3-role-session-name"):
            body["s3ManagedLedgerOffloadRoleSessionName"] = call.text("s3-role-session-name")
    if gcs:
        kept = {name: value for name, value in store.items() if name != "ServiceEndpoint"}
        body |= {f"gcsManagedLedgerOffload{name}": value for name, value in kept.items()}
    body |= {f"managedLedgerOffload{name}": value for name, value in store.items()}
    body |= {
        "managedLedgerOffloadThresholdInBytes": _first(call, "offloadThresholdInBytes", "offloadAfterThreshold"),
        "managedLedgerOffloadThresholdInSeconds": _first(
            call, "offloadThresholdInSeconds", "offloadAfterThresholdInSeconds"
        ),
        "managedLedgerOffloadDeletionLagInMillis": _first(call, "offloadDeletionLagInMillis", "offloadAfterElapsed"),
        "managedLedgerOffloadedReadPriority": _priority(call),
    }
    return {key: value for key, value in body.items() if value is not None}


def _first(call: Call, *keys: str) -> int | None:
    return next((value for key in keys if (value := call.number(key)) is not None), None)


def _priority(call: Call) -> str | None:
    said = call.text("offloadedReadPriority")
    if said and said not in _PRIORITIES:
        call.usage(f"--offloadedReadPriority {said[:80]!r} is none of {', '.join(_PRIORITIES)}")
    return _PRIORITIES.get(said)


def subscription_dispatch_rate(call: Call) -> None:
    """Show, set or remove the dispatch rate of all subscriptions of a topic or of one."""
    subscription = call.text("subscription")
    path = (
        f"{call.topic}/{quoted(subscription)}/dispatchRate"
        if subscription
        else f"{call.topic}/subscriptionDispatchRate"
    )
    query = scope(call)
    if call.command.name.startswith("get"):
        return call.show("json", call.get(path, {**query, "applied": call.switch("applied")}))
    if call.command.name.startswith("remove"):
        call.send("DELETE", path, query)
        return None
    body = {
        "dispatchThrottlingRateInMsg": call.number("msg-dispatch-rate"),
        "dispatchThrottlingRateInByte": call.number("byte-dispatch-rate"),
        "relativeToPublishRate": call.switch("relative-to-publish-rate"),
        "ratePeriodInSecond": call.number("dispatch-rate-period"),
    }
    call.send("POST", path, query, body)
    return None


def set_offload_threshold(call: Call) -> None:
    """Set from which size and age the topics of a namespace are offloaded."""
    age = call.number("time")
    call.send("PUT", f"{place(call)}/offloadThreshold", body=call.number("size"))
    call.send("PUT", f"{place(call)}/offloadThresholdInSeconds", body=-1 if age is None else age)


def set_schema_autoupdate_strategy(call: Call) -> None:
    """Set which change of a schema producers may make."""
    names = {name.lower(): name for name in ("Full", "Backward", "Forward", "AlwaysCompatible", "BackwardTransitive",
                                             "ForwardTransitive", "FullTransitive")}  # fmt: skip
    wanted = call.text("compatibility")
    if call.switch("disabled"):
        strategy = "AutoUpdateDisabled"
    elif not wanted:
        call.usage("give either --compatibility or --disabled")
    elif wanted.lower() not in names:
        call.usage(f"--compatibility {wanted[:80]!r} is none of {', '.join(names.values())}")
    else:
        strategy = names[wanted.lower()]
    call.send("PUT", f"{place(call)}/schemaAutoUpdateCompatibilityStrategy", body=strategy)


def resource_quota(call: Call) -> None:
    """Show or set the default quota or that of one bundle."""
    namespace, bundle = call.text("namespace"), call.text("bundle")
    if bool(namespace) != bool(bundle):
        call.usage("--namespace and --bundle go together")
    path = "/admin/v2/resource-quotas"
    if namespace:
        path += f"/{namespace_path(namespace)}/{quoted(bundle)}"
    if call.command.name == "get":
        return call.show("json", call.get(path))
    names = ("msgRateIn", "msgRateOut", "bandwidthIn", "bandwidthOut", "memory")
    body: dict[str, Any] = {name: float(call.number(name) or 0) for name in names}
    call.send("POST", path, body={**body, "dynamic": call.switch("dynamic")})
    return None


def offload_threshold(call: Call) -> None:
    """Show from which size and age on the ledgers of a namespace are offloaded."""
    size = call.get(f"{place(call)}/offloadThreshold")
    age = call.get(f"{place(call)}/offloadThresholdInSeconds")
    if call.printer.shape == "json":
        return call.show("json", {"offloadThresholdInBytes": size, "offloadThresholdInSeconds": age})
    call.say(f"offloadThresholdInBytes: {size}")
    call.say(f"offloadThresholdInSeconds: {age}")
    return None
