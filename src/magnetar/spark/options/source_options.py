"""The options of ``format("pulsar")``: one table, checked once, with errors that say what to write instead.

Spark hands over all keys in lower case, so the table's keys are lower case and `title` is what people write. A key
that is not in the table is an error with the nearest name, because a misspelt option that is ignored reads or writes
the wrong thing silently. Spark's own keys for sinks (``queryname``, ``checkpointlocation``, ``path``) are let through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from magnetar.client.address import parse_service_url
from magnetar.columnar.values import ERRORS, NEW_SCHEMAS
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.names import TopicName
from magnetar.protocol.compression import CompressionType
from magnetar.spark.options.encryption_keys import Decryption, Encryption, decryption, encryption
from magnetar.spark.options.offsets import At, Moment, Word, parse_at, parse_time
from magnetar.spark.options.option_table import OptionTable, unknown
from magnetar.spark.options.topic_selection import Topics, assigned, listed, pattern
from magnetar.spark.options.value_options import HALF_KINDS, KINDS, STRUCTURED, WRITTEN_KINDS, PairOptions, ValueOptions
from magnetar.spark.source.planning.admission import Limits
from magnetar.spark.source.planning.slices import Sizes


class Option(NamedTuple):
    title: str
    help: str
    source: bool
    sink: bool


OPTIONS: Final[dict[str, Option]] = {
    option.title.lower(): option
    for option in (
        Option("service.url", "pulsar://host:port of the broker, or several hosts with commas", True, True),
        Option("topic", "one topic, with or without partitions", True, True),
        Option("topics", "several topics, with commas", True, False),
        Option("topicsPattern", "namespace and a regular expression: tenant/namespace/flights-.*", True, False),
        Option("assign", 'JSON of topics to partitions: {"flights": [0, 2]}', True, False),
        Option("subscription", "durable name of a stream: where it began, and what must not be trimmed", True, False),
        Option("startingOffsets", "earliest, latest, or JSON of topic or topic-partition to an offset", True, False),
        Option("endingOffsets", "latest, an offset or JSON; in streams with Trigger.AvailableNow", True, False),
        Option("startingTime", "publish time of the first message: milliseconds or ISO 8601", True, False),
        Option("endingTime", "publish time before which a read ends; the same in streams", True, False),
        Option("maxMessagesPerTrigger", "messages in a micro-batch at most", True, False),
        Option("maxBytesPerTrigger", "bytes in a micro-batch at most, as stored; one message goes beyond", True, False),
        Option("targetTriggerMs", "a micro-batch takes about so long: its limit follows the rate", True, False),
        Option("backlogBytesPerTrigger", "without a limit: about so much at most, 2 GiB; 0 is everything", True, False),
        Option("minMessagesPerTrigger", "a micro-batch waits until there are so many", True, False),
        Option("maxTriggerDelayMs", "but not longer than this", True, False),
        Option("value", "binary, string, auto (the registry's schema), avro, json, protobuf, int32, ...", True, False),
        Option("valueSchema", "of avro, json, protobuf: the schema's text, or a path", True, True),
        Option("valueMessage", "of protobuf: the message's full name", True, True),
        Option("schemaVersion", "latest, or the number of the version that rows are read as", True, False),
        Option("onNewSchema", "writer's schema that cannot be read as ours: fail, ignore (null) or raw", True, False),
        Option("onDecodeError", "fail, null, or column: null and __decodeError, __rawValue", True, False),
        Option("metadata", "all, none, or a list of __columns", True, False),
        Option("minPartitions", "split ranges until there are this many tasks", True, False),
        Option("maxPartitions", "put ranges together so that there are no more tasks", True, False),
        Option("maxRecordsPerPartition", "split ranges so that a task has about no more messages", True, False),
        Option("maxBytesPerPartition", "split ranges so that a task has about no more bytes, as stored", True, False),
        Option(
            "pushDownFilters", "true: batch reads take filters over, for a DataFrame that is used once", True, False
        ),
        Option("failOnDataLoss", "true: a range of which something is gone ends the query", True, False),
        Option("pollTimeoutMs", "how long a range may bring nothing", True, False),
        Option("operationTimeoutMs", "how long the broker may take to answer, reconnecting included", True, True),
        Option("chunkTimeoutMs", "how long an incomplete message in chunks is waited for", True, False),
        Option("decryption.privateKey", "PEM text or its file, or JSON of key names to these", True, False),
        Option("decryption.onFailure", "what no key opens: fail, skip, or consume (as it is)", True, False),
        Option("token", "authentication by this token", True, True),
        Option("delivery", "effectively-once (streams, and batches with txnAppId) or at-least-once", False, True),
        Option("staging", "streams: a directory in which each micro-batch is stored before it is sent", False, True),
        Option("repeatable", "true: your word that a repeated micro-batch has the same tasks and rows", False, True),
        Option(
            "txnAppId", "batch writes: who writes; with txnVersion, what is written again is kept once", False, True
        ),
        Option("txnVersion", "batch writes: a number that grows with each write of txnAppId", False, True),
        Option(
            "schema",
            "columns as avro, json, protobuf, keyvalue, string, int32, ... values; auto: registry's",
            False,
            True,
        ),
        Option("keyvalue.encoding", "of keyvalue: INLINE, or SEPARATED (the key is the message's)", False, True),
        Option(
            "keyvalue.key", "of keyvalue: avro, json, string, int32, ...; default: by the column's type", False, True
        ),
        Option("keyvalue.value", "the same for the value", False, True),
        Option("keySchema", "of keyvalue: the key's schema, as valueSchema is the value's", False, True),
        Option("encryption.publicKey", "PEM text or its file, or JSON of key names to these", False, True),
        Option("pulsar.producer.compressionType", "NONE, LZ4, ZLIB, ZSTD or SNAPPY", False, True),
        Option("pulsar.producer.batchingMaxMessages", "messages in a batch, 1000", False, True),
        Option("pulsar.producer.batchingMaxBytes", "bytes in a batch, 131072", False, True),
        Option("pulsar.producer.chunkingEnabled", "true: what is larger than the broker takes, in chunks", False, True),
        Option("pulsar.producer.sendTimeoutMs", "how long a receipt may take", False, True),
        Option("pulsar.producer.hashingScheme", "JavaStringHash or Murmur3_32Hash: keys to partitions", False, True),
    )
}

STREAMS_ONLY: Final = (
    "subscription",
    "maxMessagesPerTrigger",
    "maxBytesPerTrigger",
    "backlogBytesPerTrigger",
    "minMessagesPerTrigger",
    "maxTriggerDelayMs",
    "targetTriggerMs",
)
"""Of a source; a batch read has no micro-batches, and leaves nothing at the broker."""
_SPARK_KEYS: Final = frozenset({"queryname", "checkpointlocation", "path", "outputmode"})
_DELIVERIES: Final = ("effectively-once", "at-least-once")
_HASHING: Final = ("JavaStringHash", "Murmur3_32Hash")


_PAIR: Final = PairOptions()


class Offsets(NamedTuple):
    """One for all, with exceptions for single topics or topic-partitions."""

    general: At
    exceptions: dict[str, At]

    def of(self, name: str) -> At:
        """The one of a topic-partition."""
        parent = TopicName.parse(name).parent.fqn
        return self.exceptions.get(name, self.exceptions.get(parent, self.general))


@dataclass(frozen=True, slots=True)
class SourceOptions:
    service_url: str
    topics: Topics
    subscription: str | None
    starting: Offsets | None
    ending: Offsets | None
    limits: Limits
    least_messages: int
    trigger_delay: float
    """Seconds that a micro-batch may wait for ``least_messages``."""
    target_trigger: float
    """Seconds that a micro-batch should take; 0 is "as long as it takes"."""
    value: ValueOptions
    metadata: str
    min_partitions: int
    max_partitions: int
    sizes: Sizes
    """Of a task, about."""
    fail_on_data_loss: bool
    poll_timeout: float
    operation_timeout: float
    token: str | None
    chunk_timeout: float = 60.0
    """Seconds."""
    decryption: Decryption | None = None
    push_down: bool = False
    backlog_bytes: int = 0
    """Of a micro-batch without limits, about; 0 is everything."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    service_url: str
    topic: str | None
    """None: every row names its own in ``__topic``."""
    once: bool | None
    """Effectively once; None: where it can be."""
    app: tuple[str, int] | None
    """txnAppId and txnVersion."""
    staging: str | None
    """A directory or URI."""
    repeatable: bool
    compression: CompressionType
    batch_messages: int
    batch_bytes: int
    send_timeout: float
    murmur: bool
    operation_timeout: float
    token: str | None
    schema: str | None = None
    """None: the column ``value`` is bytes or text, and the broker is told no schema."""
    value_schema: str | None = None
    value_message: str | None = None
    encryption: Encryption | None = None
    pair: PairOptions = _PAIR
    chunking: bool = False


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """For reading, checked. Raises InvalidValueError."""
    table = OptionTable(given, lambda key: _fault(key, "source"))
    if table.get("maxTriggerDelayMs") is not None and table.get("minMessagesPerTrigger") is None:
        raise InvalidValueError("option 'maxTriggerDelayMs' has no meaning without 'minMessagesPerTrigger'")
    return SourceOptions(
        service_url=_service_url(table),
        topics=_topics(table),
        subscription=table.get("subscription"),
        starting=_offsets(table, "startingOffsets", "startingTime", Word.EARLIEST),
        ending=_offsets(table, "endingOffsets", "endingTime", Word.LATEST),
        limits=Limits(table.number("maxMessagesPerTrigger", 0, 1), table.number("maxBytesPerTrigger", 0, 1)),
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
        token=table.get("token"),
        backlog_bytes=table.number("backlogBytesPerTrigger", 2 << 30, 0),
        sizes=Sizes(table.number("maxRecordsPerPartition", 0, 1), table.number("maxBytesPerPartition", 0, 1)),
        push_down=table.flag("pushDownFilters", False),
        chunk_timeout=table.number("chunkTimeoutMs", 60_000, 0) / 1000,
        decryption=decryption(table.get("decryption.privateKey"), table.get("decryption.onFailure")),
    )


def check_stream(options: SourceOptions) -> str:
    """For ``spark.readStream``: the subscription; raises InvalidValueError."""
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
    """For ``spark.read``: raises InvalidValueError, which names all options that only streams have."""
    keys = {key.lower() for key, value in given.items() if value and value.strip()}
    if wrong := [title for title in STREAMS_ONLY if title.lower() in keys]:
        named = ", ".join(map(repr, wrong))
        raise InvalidValueError(
            f"{'option' if len(wrong) == 1 else 'options'} {named} {'has' if len(wrong) == 1 else 'have'} no meaning "
            "for a batch read: bound it with 'startingOffsets' and 'endingOffsets', its tasks with "
            "'maxRecordsPerPartition'. To share options with a stream: magnetar.spark.options.source_options.for_batch(options)"
        )


def for_batch(options: Mapping[str, str]) -> dict[str, str]:
    """The same options of a source without those that only streams have (`STREAMS_ONLY`)."""
    titles = {title.lower() for title in STREAMS_ONLY}
    return {key: value for key, value in options.items() if key.lower() not in titles}


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """For writing, checked. Raises InvalidValueError."""
    table = OptionTable(given, lambda key: _fault(key, "sink"))
    topic = table.get("topic")
    compression = table.choice("pulsar.producer.compressionType", tuple(kind.name for kind in CompressionType), "NONE")
    delivery = table.get("delivery")
    once = None if delivery is None else table.choice("delivery", _DELIVERIES, "") == _DELIVERIES[0]
    if once is False and table.get("staging") is not None:
        raise InvalidValueError(
            "option 'staging' is for effectively-once, and option 'delivery' is at-least-once: leave one of them out"
        )
    application = table.application()
    if once is False and application is not None:
        raise InvalidValueError(
            "option 'txnAppId' is for effectively-once, and option 'delivery' is at-least-once: leave one of them out"
        )
    schema = None if table.get("schema") is None else table.choice("schema", WRITTEN_KINDS, "")
    pair_titles = ("keyvalue.encoding", "keyvalue.key", "keyvalue.value", "keySchema")
    needs = {"valueSchema": (*STRUCTURED, "keyvalue"), "valueMessage": ("protobuf",)}
    for title, kinds in (needs | dict.fromkeys(pair_titles, ("keyvalue",))).items():
        if table.get(title) is not None and schema not in kinds:
            raise InvalidValueError(f"option {title!r} has no meaning without schema={' or '.join(kinds)}")
    return SinkOptions(
        service_url=_service_url(table),
        topic=None if topic is None else _topic(topic),
        once=once,
        app=application,
        staging=_absolute(table.get("staging")),
        repeatable=table.flag("repeatable", False),
        compression=CompressionType[compression],
        batch_messages=table.number("pulsar.producer.batchingMaxMessages", 1_000, 1),
        batch_bytes=table.number("pulsar.producer.batchingMaxBytes", 128 << 10, 1),
        send_timeout=table.number("pulsar.producer.sendTimeoutMs", 60_000, 1) / 1000,
        murmur=table.choice("pulsar.producer.hashingScheme", _HASHING, _HASHING[0]) == _HASHING[1],
        operation_timeout=table.number("operationTimeoutMs", 30_000, 1) / 1000,
        token=table.get("token"),
        schema=schema,
        value_schema=table.get("valueSchema"),
        value_message=table.get("valueMessage"),
        encryption=encryption(table.get("encryption.publicKey")),
        pair=_pair(table),
        chunking=table.flag("pulsar.producer.chunkingEnabled", False),
    )


def _fault(key: str, side: str) -> str | None:
    """What is wrong with a key."""
    option = OPTIONS.get(key.lower())
    if option is not None:
        return None if _has(option, side) else f"option {option.title!r} has no meaning for a {side}"
    if key.lower() in _SPARK_KEYS:
        return None
    known = (option.title for option in OPTIONS.values() if _has(option, side))
    return unknown(key, known, lambda titles: f"a {side} has {titles}")


def _has(option: Option, side: str) -> bool:
    return option.source if side == "source" else option.sink


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


def _pair(table: OptionTable) -> PairOptions:
    def half(title: str) -> str | None:
        return None if table.get(title) is None else table.choice(title, HALF_KINDS, "")

    return PairOptions(
        separated=table.choice("keyvalue.encoding", ("INLINE", "SEPARATED"), "INLINE") == "SEPARATED",
        key=half("keyvalue.key"),
        value=half("keyvalue.value"),
        key_schema=table.get("keySchema"),
        value_schema=table.get("valueSchema"),
    )


def _service_url(table: OptionTable) -> str:
    url = table.get("service.url")
    if url is None:
        raise InvalidValueError("option 'service.url' is missing; for instance pulsar://localhost:6650")
    parse_service_url(url)
    return url


def _absolute(directory: str | None) -> str | None:
    """Of the driver, which reads the options: tasks work in directories of their own."""
    return directory if directory is None or ":" in directory.partition("/")[0] else str(Path(directory).absolute())


def _topic(text: str) -> str:
    try:
        return TopicName.parse(text).fqn
    except MagnetarError as error:
        raise InvalidValueError(f"{text!r} is no topic: {error}") from None


def _topics(table: OptionTable) -> Topics:
    """From the one option of four that is given."""
    given = [title for title in ("topic", "topics", "topicsPattern", "assign") if table.get(title) is not None]
    if len(given) != 1:
        found = f"; given are {', '.join(given)}" if given else ""
        raise InvalidValueError(
            f"give exactly one of the options 'topic', 'topics', 'topicsPattern' and 'assign'{found}"
        )
    text = table.get(given[0]) or ""
    if given[0] == "topicsPattern":
        return pattern(text)
    if given[0] == "assign":
        return assigned(text)
    return listed([text] if given[0] == "topic" else text.split(","))


def _offsets(table: OptionTable, title: str, time_title: str, word: Word) -> Offsets | None:
    text, time = table.get(title), table.get(time_title)
    if text is not None and time is not None:
        raise InvalidValueError(f"give either the option {title!r} or {time_title!r}")
    if time is not None:
        return Offsets(Moment(parse_time(time)), {})
    if text is None:
        return None
    if not text.startswith("{"):
        found = parse_at(text)
        if title == "endingOffsets" and found is Word.EARLIEST:
            raise InvalidValueError("option 'endingOffsets' is 'earliest'; it can be latest or JSON")
        return Offsets(found, {})
    try:
        given = json.loads(text)
    except ValueError as error:
        raise InvalidValueError(f"option {title!r} is {text!r}, which is no JSON: {error}") from None
    # What JSON does not name: from its beginning, up to its end.
    return Offsets(word, {_topic(name): parse_at(at) for name, at in given.items()})
