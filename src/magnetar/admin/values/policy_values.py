"""Bodies of policies: functions from JSON to the value that is stored, or an error with Pulsar's text.

Bodies are taken as Pulsar's parser takes them: a number may come in quotes, members of an object that it does not know
are dropped, missing ones get their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.config.setting_field import INT_MAX, LONG_MAX
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.policies import PARTITIONS_MAX, Json, JsonObject
from magnetar.model.topic_policies import ALL_SUBSCRIPTION_TYPES, QuotaPolicy

Check = Callable[[Json], Json]

QUOTA_LIMITS: Final = {"destination_storage": "limitSize", "message_age": "limitTime"}
"""Types of backlog quotas, each with the limit that counts for it."""
STRATEGIES: Final = (
    *("UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL"),
    *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
)
AUTO_UPDATE_STRATEGIES: Final = (
    *("AutoUpdateDisabled", "Backward", "Forward", "Full", "AlwaysCompatible"),
    *("BackwardTransitive", "ForwardTransitive", "FullTransitive"),
)
_LONG: Final = frozenset(
    ("dispatchThrottlingRateInByte", "publishThrottlingRateInByte", "tickTime", "maxDeliveryDelayInMillis")
)
_BOOKIES_MAX: Final = 5
"""Pulsar's default of ``managedLedgerMaxEnsembleSize`` and of those of the quorums."""
_GROUP_MAX: Final = 1024
PROPERTIES_MAX: Final = 1 << 20
"""Characters of all properties of a namespace or a topic: each request adds some."""
INACTIVE_MODES: Final = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
_WORDS: Final = {"inactiveTopicDeleteMode": INACTIVE_MODES}
"""Members that are one of a few words."""

_RETENTION_ZERO: Final = (
    "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a "
    "non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits "
    "must be set to 0."
)


whole: Final = coercion.number


def count(refusal: str, most: int = INT_MAX) -> Check:
    """A check for a number that is not negative; ``refusal`` is the error's text."""

    def check(value: Json) -> Json:
        number = whole(value, most=most)
        if number < 0:
            raise PreconditionFailedError(refusal)
        return number

    return check


def offload_seconds(value: Json) -> Json:
    """Seconds, -1 for never; the error's text is Apache Pulsar's (rule 11.1.3)."""
    number = whole(value)
    if number < -1:
        raise PreconditionFailedError("Invalid value for offloadThresholdInSecond")
    return number


flag: Final[Check] = coercion.flag
text: Final[Check] = coercion.text


def group(value: Json) -> Json:
    """The name of an anti-affinity group, as it was sent."""
    found = coercion.text(value)
    if not found.strip():
        raise PreconditionFailedError("antiAffinityGroup can't be empty")
    if len(found) > _GROUP_MAX:
        raise PreconditionFailedError(f"antiAffinityGroup has {_GROUP_MAX} characters at most")
    return found


def one_of(*choices: str) -> Check:
    """A check for one of these words."""

    def check(value: Json) -> Json:
        if value not in choices:
            raise InvalidValueError(f"expected one of {', '.join(choices)}, got {excerpt(value)}")
        return value

    return check


def members(**defaults: Json) -> Check:
    """A check for an object with these members, each of the type of its default."""

    def check(value: Json) -> Json:
        given = mapping(value)
        return {name: _member(name, given.get(name), default) for name, default in defaults.items()}

    return check


def mapping(value: Json) -> JsonObject:
    """An object, as it was sent. Raises InvalidValueError."""
    if not isinstance(value, dict):
        raise InvalidValueError(f"expected a JSON object, got {excerpt(value)}")
    return value


def texts(value: Json) -> Json:
    """An object of texts."""
    return {**coercion.texts(value)}


def words(choices: frozenset[str] | None = None) -> Check:
    """A check for a list of texts, limited to ``choices`` if given; stored sorted, without duplicates."""

    def check(value: Json) -> Json:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidValueError(f"expected a list of texts, got {excerpt(value)}")
        found = sorted({item for item in value if isinstance(item, str)})
        unknown = [item for item in found if choices is not None and item not in choices]
        if unknown:
            raise InvalidValueError(f"{unknown[0]} is none of {', '.join(sorted(choices or ()))}")
        return [*found]

    return check


def with_member(before: Json, name: str, value: Json) -> Json:
    """Return a policy that is an object with that member set, or removed by ``None``; ``None`` if none is left."""
    given = before if isinstance(before, dict) else {}
    left: JsonObject = {key: one for key, one in {**given, name: value}.items() if one is not None}
    return left or None


subscription_types: Final = words(ALL_SUBSCRIPTION_TYPES)


def _member(name: str, given: Json, default: Json) -> Json:
    if given is None:
        return default
    if isinstance(default, bool):
        return coercion.flag(given, f"true or false as {name}")
    if isinstance(default, float):
        return coercion.fraction(given, f"a number as {name}")
    if isinstance(default, int):
        return coercion.number(given, f"a whole number as {name}", most=LONG_MAX if name in _LONG else INT_MAX)
    choices = _WORDS.get(name)
    if choices is not None and given not in choices:
        raise InvalidValueError(f"expected {' or '.join(choices)} as {name}, got {excerpt(given)}")
    return coercion.text(given, f"a text as {name}")


def _or(value: Json, default: Json) -> Json:
    return default if value is None else value


# objects with rules of their own ------------------------------------------------------------------------------------


def retention(value: Json) -> Json:
    """A retention policy (rule 4.4.2)."""
    given = mapping(value)
    minutes = whole(_or(given.get("retentionTimeInMinutes"), 0), "retentionTimeInMinutes", most=INT_MAX)
    size = whole(_or(given.get("retentionSizeInMB"), 0), "retentionSizeInMB")
    for limit, number in (("time", minutes), ("size", size)):
        if number < -1:
            raise InvalidValueError(f"Invalid retention policy: {limit} limit must be >= -1")
    if (minutes == 0) != (size == 0):
        raise InvalidValueError(_RETENTION_ZERO)
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size}


def backlog_quota(value: Json, refused: str) -> JsonObject:
    """A backlog quota (rule 4.6.1); ``refused`` begins the error's text."""
    given = mapping(value)
    try:
        policy = QuotaPolicy(given.get("policy"))
    except ValueError:
        raise InvalidValueError(
            f"{refused} backlog quota failed because the data validation failed. the attribute policy cannot be null"
        ) from None
    size = whole(_or(given.get("limitSize"), _or(given.get("limit"), -1)), "limitSize")
    seconds = whole(_or(given.get("limitTime"), -1), "limitTime", most=INT_MAX)
    return {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy.value}


def fits(quota: Json, kept: Json) -> bool:
    """Whether retention keeps more than the quota allows (rule 4.4.3); a missing one restricts nothing."""
    if not isinstance(quota, dict) or not isinstance(kept, dict):
        return True
    minutes, size = whole(kept.get("retentionTimeInMinutes", 0)), whole(kept.get("retentionSizeInMB", 0))
    if size > 0 and whole(quota.get("limitSize", -1)) >= size << 20:
        return False
    return minutes <= 0 or whole(quota.get("limitTime", -1)) < minutes * 60


def persistence(value: Json) -> Json:
    """A persistence policy, which is stored and shown without effect: there are no bookies here (rule 11.3.2)."""
    found = mapping(members(**PERSISTENCE)(value))
    counts = []
    for name in ("Ensemble", "WriteQuorum", "AckQuorum"):
        counts.append(whole(found[f"bookkeeper{name}"]))
        if not 0 < counts[-1] <= _BOOKIES_MAX:
            raise InvalidValueError(f"Bookkeeper-{name} must be <= {_BOOKIES_MAX} and > 0.")
    ensemble, write, ack = counts
    if not ensemble >= write >= ack:
        raise InvalidValueError(f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})")
    return found


def entry_filters(value: Json) -> Json:
    """Entry filters: magnetar has none, so every name is unknown."""
    names = [name.strip() for name in str(text(mapping(value).get("entryFilterNames", ""))).split(",") if name.strip()]
    if names:
        raise InvalidValueError(f"Entry filter '{names[0]}' not found")
    return {"entryFilterNames": ""}


def auto_topic_creation(value: Json) -> Json:
    """A policy for automatic creation of topics (rules 2.12, 11.1.3)."""
    given = mapping(value)
    stored: JsonObject = {"allowAutoTopicCreation": flag(given.get("allowAutoTopicCreation", False))}
    kind, partitions = given.get("topicType"), given.get("defaultNumPartitions")
    wrong = ""
    if stored["allowAutoTopicCreation"]:
        # Apache Pulsar looks at nothing else where none are created, and its Go client sends an empty type
        if kind not in ("partitioned", "non-partitioned"):
            wrong = f"Unknown topic type [{kind}]"
        elif kind == "partitioned" and partitions is None:
            wrong = "[defaultNumPartitions] cannot be null when the type is partitioned."
        elif kind == "partitioned" and whole(partitions, most=INT_MAX) <= 0:
            wrong = "[defaultNumPartitions] cannot be less than 1 for partition type."
        elif kind == "partitioned" and whole(partitions) > PARTITIONS_MAX:
            wrong = f"[defaultNumPartitions] cannot be more than {PARTITIONS_MAX}, which is as many as a broker serves."
        elif kind == "non-partitioned" and partitions is not None:
            wrong = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    if wrong:
        raise PreconditionFailedError(f"Invalid configuration for autoTopicCreationOverride. the detail is {wrong}")
    stored["topicType"] = None if kind is None else coercion.text(kind, "a text as topicType")
    stored["defaultNumPartitions"] = None if partitions is None else whole(partitions, most=INT_MAX)
    return {name: item for name, item in stored.items() if item is not None}


PERSISTENCE: Final[Mapping[str, Json]] = {
    "bookkeeperEnsemble": 0, "bookkeeperWriteQuorum": 0, "bookkeeperAckQuorum": 0,
    "managedLedgerMaxMarkDeleteRate": 0.0,
}  # fmt: skip

auto_subscription: Final = members(allowAutoSubscriptionCreation=False)
delayed: Final = members(tickTime=0, active=False, maxDeliveryDelayInMillis=0)
inactive: Final = members(
    inactiveTopicDeleteMode="delete_when_no_subscriptions", maxInactiveDurationSeconds=0, deleteWhileInactive=False
)
dispatch_rate: Final = members(
    dispatchThrottlingRateInMsg=-1, dispatchThrottlingRateInByte=-1, relativeToPublishRate=False, ratePeriodInSecond=1
)
publish_rate: Final = members(publishThrottlingRateInMsg=-1, publishThrottlingRateInByte=-1)
subscribe_rate: Final = members(subscribeThrottlingRatePerConsumer=-1, ratePeriodInSecond=30)
