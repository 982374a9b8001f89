"""The options of a source, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from magnetar.client.login import ClientLogin
from magnetar.client.lookup import Lookup
from magnetar.columnar.values import ERRORS, NEW_SCHEMAS
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.spark.options.encryption_keys import Decryption, decryption
from magnetar.spark.options.json_members import json_members
from magnetar.spark.options.limits import ReadLimits, TaskSizes
from magnetar.spark.options.login_options import login_of
from magnetar.spark.options.offsets import NamedOffset, OffsetSpec, TimeOffset, parse_offset, parse_time
from magnetar.spark.options.option_list import STREAMS_ONLY, fault, service_url, topic_name
from magnetar.spark.options.option_table import OptionTable
from magnetar.spark.options.topic_selection import (
    TopicSelection,
    topics_by_name,
    topics_by_partition,
    topics_by_pattern,
)
from magnetar.spark.options.value_options import KINDS, ValueOptions


class TopicOffsets(NamedTuple):
    """One offset for all topics, with exceptions for single topics or topic-partitions."""

    general: OffsetSpec
    exceptions: dict[str, OffsetSpec]

    def of(self, name: str) -> OffsetSpec:
        """Return the offset of a topic-partition."""
        parent = TopicName.parse(name).parent.fqn
        return self.exceptions.get(name, self.exceptions.get(parent, self.general))


@dataclass(frozen=True, slots=True)
class SourceOptions:
    service_url: str
    topics: TopicSelection
    subscription: str | None
    starting: TopicOffsets | None
    ending: TopicOffsets | None
    limits: ReadLimits
    least_messages: int
    trigger_delay: float
    """Seconds that a micro-batch may wait for ``least_messages``."""
    target_trigger: float
    """Seconds that a micro-batch should take; 0 is "as long as it takes"."""
    value: ValueOptions
    metadata: str
    min_partitions: int
    max_partitions: int
    sizes: TaskSizes
    """About what a task has."""
    fail_on_data_loss: bool
    poll_timeout: float
    operation_timeout: float
    login: ClientLogin
    chunk_timeout: float = 60.0
    """Seconds."""
    decryption: Decryption | None = None
    push_down: bool = False
    backlog_bytes: int = 0
    """About what a micro-batch without limits has; 0 is everything."""


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the options of a source, checked. Raises InvalidValueError."""
    table = OptionTable(given, lambda key: fault(key, "source"))
    if table.get("maxTriggerDelayMs") is not None and table.get("minMessagesPerTrigger") is None:
        raise InvalidValueError("option 'maxTriggerDelayMs' has no meaning without 'minMessagesPerTrigger'")
    return SourceOptions(
        service_url=service_url(table),
        topics=_topics(table),
        subscription=table.get("subscription"),
        starting=_offsets(table, "startingOffsets", "startingTime", NamedOffset.EARLIEST),
        ending=_offsets(table, "endingOffsets", "endingTime", NamedOffset.LATEST),
        limits=ReadLimits(table.number("maxMessagesPerTrigger", 0, 1), table.number("maxBytesPerTrigger", 0, 1)),
        least_messages=table.number("minMessagesPerTrigger", 0, 1),
        trigger_delay=table.number("maxTriggerDelayMs", 900_000, 0) / 1000,
        target_trigger=table.number("targetTriggerMs", 0, 1) / 1000,
        value=_value(table),
        metadata=table.get("metadata") or "",
        min_partitions=table.number("minPartitions", 0, 0),
        max_partitions=table.number("maxPartitions", 0, 0),
        fail_on_data_loss=table.flag("failOnDataLoss", True),
        poll_timeout=table.number("pollTimeoutMs", 120_000, 1) / 1000,
        operation_timeout=table.number("operationTimeoutMs", 30_000, 1) / 1000,
        login=login_of(table),
        backlog_bytes=table.number("backlogBytesPerTrigger", 2 << 30, 0),
        sizes=TaskSizes(table.number("maxRecordsPerPartition", 0, 1), table.number("maxBytesPerPartition", 0, 1)),
        push_down=table.flag("pushDownFilters", False),
        chunk_timeout=table.number("chunkTimeoutMs", 60_000, 0) / 1000,
        decryption=decryption(table.get("decryption.privateKey"), table.get("decryption.onFailure")),
    )


def open_lookup(options: SourceOptions) -> Lookup:
    """Return a lookup for the process that calls; connections do not travel with options."""
    return options.login.lookup(options.service_url, options.operation_timeout)


def check_stream(options: SourceOptions) -> str:
    """Check the options of ``spark.readStream`` and return the subscription; raises InvalidValueError."""
    if options.push_down:
        raise InvalidValueError("option 'pushDownFilters' has no meaning for a stream: Spark pushes no filters there")
    if options.subscription is None:
        raise InvalidValueError(
            "option 'subscription' is missing: a stream needs a name, unique to this query, under which the broker "
            "remembers where it began and keeps what it has not processed; for instance "
            ".option('subscription', 'my-query')"
        )
    return options.subscription


def check_batch(given: Mapping[str, str]) -> None:
    """Check the options of ``spark.read``: InvalidValueError names all that only streams have."""
    keys = {key.lower() for key, value in given.items() if value and value.strip()}
    if wrong := [title for title in STREAMS_ONLY if title.lower() in keys]:
        named = ", ".join(map(repr, wrong))
        raise InvalidValueError(
            f"{'option' if len(wrong) == 1 else 'options'} {named} {'has' if len(wrong) == 1 else 'have'} no meaning "
            "for a batch read: bound it with 'startingOffsets' and 'endingOffsets', its tasks with "
            "'maxRecordsPerPartition'. To share options with a stream: magnetar.spark.options.for_batch(options)"
        )


def for_batch(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source without those that only streams have (`STREAMS_ONLY`)."""
    titles = {title.lower() for title in STREAMS_ONLY}
    return {key: value for key, value in options.items() if key.lower() not in titles}


def _value(table: OptionTable) -> ValueOptions:
    version = table.get("schemaVersion")
    found = ValueOptions(
        kind=table.choice("value", KINDS, "binary"),
        version=None if version is None or version.lower() == "latest" else table.number("schemaVersion", 0, 0),
        given=table.get("valueSchema"),
        message=table.get("valueMessage"),
        on_new_schema=table.choice("onNewSchema", NEW_SCHEMAS, "fail"),
        on_error=table.choice("onDecodeError", ERRORS, "fail"),
    )
    found.check()
    return found


def _topics(table: OptionTable) -> TopicSelection:
    """Return the topics that the one option of four names."""
    given = [title for title in ("topic", "topics", "topicsPattern", "assign") if table.get(title) is not None]
    if len(given) != 1:
        found = f"; given are {', '.join(given)}" if given else ""
        raise InvalidValueError(
            f"give exactly one of the options 'topic', 'topics', 'topicsPattern' and 'assign'{found}"
        )
    text = table.get(given[0]) or ""
    if given[0] == "topicsPattern":
        return topics_by_pattern(text)
    if given[0] == "assign":
        return topics_by_partition(text)
    return topics_by_name([text] if given[0] == "topic" else text.split(","))


def _offsets(table: OptionTable, title: str, time_title: str, word: NamedOffset) -> TopicOffsets | None:
    text, time = table.get(title), table.get(time_title)
    if text is not None and time is not None:
        raise InvalidValueError(f"give either the option {title!r} or {time_title!r}")
    if time is not None:
        return TopicOffsets(TimeOffset(parse_time(time)), {})
    if text is None:
        return None
    if not text.startswith("{"):
        found = parse_offset(text)
        if title == "endingOffsets" and found is NamedOffset.EARLIEST:
            raise InvalidValueError("option 'endingOffsets' is 'earliest'; it can be latest or JSON")
        return TopicOffsets(found, {})
    by_topic: dict[str, OffsetSpec] = {}
    for name, at in json_members(title, text).items():
        topic, offset = topic_name(name), parse_offset(at)
        if by_topic.setdefault(topic, offset) != offset:
            raise InvalidValueError(f"option {title!r} names {topic} in two spellings, with two offsets: give one")
    # What JSON does not name: from its beginning, up to its end.
    return TopicOffsets(word, by_topic)
