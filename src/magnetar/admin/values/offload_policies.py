"""Offload policies, of a namespace or a topic: what a body may hold, and the answer in Apache Pulsar's shape.

A policy says *when* ledgers are offloaded. *Where* they go is the operator's: ``offloadUrl``, with credentials from the
broker's environment. So a policy may name the driver, the bucket or the directory of that place, and no other one; who
administers a tenant can neither make the broker write to a path of its machine nor send messages elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from magnetar.admin.values import coercion
from magnetar.admin.values.policy_values import mapping
from magnetar.config.setting_field import INT_MAX
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.policies import Json, JsonObject

THRESHOLDS: Final[Mapping[str, str]] = MappingProxyType({
    "managedLedgerOffloadThresholdInBytes": "offload_threshold",
    "managedLedgerOffloadThresholdInSeconds": "offload_threshold_in_seconds",
    "managedLedgerOffloadDeletionLagInMillis": "offload_deletion_lag_ms",
})  # fmt: skip
"""Members that have an effect here, with the keys of a namespace's policies that hold the same."""

_DRIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "S3": ("s3", "s3a"),
    "aws-s3": ("s3", "s3a"),
    "google-cloud-storage": ("gs",),
    "filesystem": ("file", ""),
    "azureblob": ("az", "azure", "abfs", "abfss", "adl"),
    "aliyun-oss": (),
}
"""Pulsar's drivers with the schemes of ``offloadUrl`` that mean the same."""
_PRIORITY: Final = "managedLedgerOffloadedReadPriority"
_PRIORITIES: Final = ("TIERED_STORAGE_FIRST", "BOOKKEEPER_FIRST")
"""As Java's clients write and read them; the command line's words (``bookkeeper-first``) mean the same."""
_DEFAULTS: Final[Mapping[str, Json]] = {
    "offloadersDirectory": "./offloaders",
    "managedLedgerOffloadDriver": None,
    "managedLedgerOffloadMaxThreads": 2,
    "managedLedgerOffloadReadThreads": 2,
    "managedLedgerOffloadPrefetchRounds": 1,
    **dict.fromkeys(THRESHOLDS),
    _PRIORITY: None,
    "managedLedgerExtraConfigurations": {},
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 64 << 20,
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 128 << 20,
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
    "managedLedgerOffloadBucket": None,
    "managedLedgerOffloadRegion": None,
    "fileSystemProfilePath": None,
    "fileSystemURI": None,
}
"""The members in Pulsar's order; those without a default are shown only if they are set."""
_OLD_NAMES: Final[Mapping[str, str]] = {
    "s3ManagedLedgerOffloadBucket": "managedLedgerOffloadBucket",
    "s3ManagedLedgerOffloadRegion": "managedLedgerOffloadRegion",
    "gcsManagedLedgerOffloadBucket": "managedLedgerOffloadBucket",
    "gcsManagedLedgerOffloadRegion": "managedLedgerOffloadRegion",
}
_FROM_ENVIRONMENT: Final = (
    "managedLedgerOffloadServiceEndpoint", "s3ManagedLedgerOffloadServiceEndpoint",
    "s3ManagedLedgerOffloadCredentialId", "s3ManagedLedgerOffloadCredentialSecret", "s3ManagedLedgerOffloadRole",
    "gcsManagedLedgerOffloadServiceAccountKeyFile",
)  # fmt: skip


def checked(value: Json, url: str) -> JsonObject:
    """A whole policy from a body; ``url`` is ``offloadUrl``. Raises PreconditionFailedError, InvalidValueError."""
    if value is None:
        raise PreconditionFailedError("The offloadPolicies must be specified for namespace offload.")
    given = mapping(value)
    given = {**{new: given[old] for old, new in _OLD_NAMES.items() if given.get(old) is not None}, **given}
    found = {name: _member(name, given.get(name), default) for name, default in _DEFAULTS.items()}
    driver, bucket = _driver(found["managedLedgerOffloadDriver"]), found["managedLedgerOffloadBucket"]
    if driver is None:
        raise PreconditionFailedError(f"The driver is not supported, support value: {','.join(_DRIVERS)}")
    if driver != "filesystem" and not bucket:
        raise PreconditionFailedError("The bucket must be specified for namespace offload.")
    for name in _FROM_ENVIRONMENT:
        if given.get(name) is not None:
            raise PreconditionFailedError(
                f"{name} is refused: magnetar takes credentials and endpoints of the object store from the broker's "
                "environment (docs/offload.md)"
            )
    _require_place(driver, bucket, found["fileSystemURI"], url)
    return {name: item for name, item in found.items() if item is not None}


def _member(name: str, given: Json, default: Json) -> Json:
    if given is None:
        return default
    if name in THRESHOLDS:
        return coercion.number(given, f"a whole number as {name}")
    if isinstance(default, int):
        return coercion.number(given, f"a whole number as {name}", most=INT_MAX)
    if name == "managedLedgerExtraConfigurations":
        return {**coercion.texts(given)}
    text = coercion.text(given, f"a text as {name}")
    if name == _PRIORITY and (text := _priority(text)) not in _PRIORITIES:
        raise InvalidValueError(f"expected {' or '.join(_PRIORITIES)} as {name}")
    return text


def _driver(said: Json) -> str | None:
    """Return Pulsar's name of a driver, in whatever case it was said; None if there is none."""
    if not isinstance(said, str):
        return None
    return next((name for name in _DRIVERS if name.lower() == said.lower()), None)


def _priority(text: str) -> str:
    return text.upper().replace("-", "_")


def _require_place(driver: str, bucket: Json, directory: Json, url: str) -> None:
    """Raise PreconditionFailedError unless the policy names the place that the operator chose."""
    if not url:
        raise PreconditionFailedError(
            f"the driver {driver} has no place to offload to: set offloadUrl (file:///path, s3://bucket/prefix, ...)"
        )
    place = urlsplit(url)
    if place.scheme not in _DRIVERS[driver]:
        raise PreconditionFailedError(f"the driver {driver} is not that of offloadUrl, which is {url}")
    if driver != "filesystem" and bucket != place.netloc:
        raise PreconditionFailedError(f"the bucket {bucket} is not that of offloadUrl, which is {url}")
    if driver == "filesystem" and directory is not None and _path(str(directory)) != _path(url):
        raise PreconditionFailedError(f"fileSystemURI {directory} is not offloadUrl, which is {url}")


def _path(url: str) -> str:
    return urlsplit(url).path.rstrip("/") if urlsplit(url).scheme == "file" else url.rstrip("/")


def shown(stored: Json) -> JsonObject:
    """A policy as GET answers it."""
    values = {**_DEFAULTS, **(stored if isinstance(stored, dict) else {})}
    driver, priority = _driver(values.get("managedLedgerOffloadDriver")), values.get(_PRIORITY)
    if isinstance(priority, str):  # earlier versions stored the command line's words
        values[_PRIORITY] = _priority(priority)
    return {
        **{name: value for name, value in values.items() if value is not None},
        "s3Driver": driver in ("S3", "aws-s3"),
        "gcsDriver": driver == "google-cloud-storage",
        "fileSystemDriver": driver == "filesystem",
    }


def to_namespace(policy: JsonObject) -> JsonObject:
    """What a namespace stores for a policy: the thresholds under their own keys, which other routes change too."""
    rest = {name: value for name, value in policy.items() if name not in THRESHOLDS}
    return {"offload_policies": rest, **{key: policy.get(name) for name, key in THRESHOLDS.items()}}


def _says(key: str, value: Json) -> bool:
    """Whether a namespace decides by that value: a threshold of -1 leaves it to the broker (rule 11.1.3)."""
    return isinstance(value, int) and (value >= 0 or key == "offload_deletion_lag_ms")


def of_namespace(policies: JsonObject) -> JsonObject | None:
    """A namespace's policy as GET answers it; ``None`` if it sets nothing."""
    stored = policies.get("offload_policies")
    thresholds = {name: policies.get(key) for name, key in THRESHOLDS.items() if _says(key, policies.get(key))}
    if not isinstance(stored, dict) and not thresholds:
        return None
    return shown({**(stored if isinstance(stored, dict) else {}), **thresholds})
