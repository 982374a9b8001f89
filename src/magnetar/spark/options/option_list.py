"""The options of ``format("pulsar")``: one table, checked once, with errors that say what to write instead.

Spark hands over all keys in lower case, so the table's keys are lower case and `title` is what people write. A key
that is not in the table is an error with the nearest name, because a misspelt option that is ignored reads or writes
the wrong thing silently. Spark's own keys for sinks (``queryname``, ``checkpointlocation``, ``path``) are let through.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.client.address import parse_service_url
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.names import TopicName
from magnetar.spark.options.option_table import OptionTable, unknown


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
        Option(
            "decryption.privateKey",
            "reference to a private key or its path, or JSON of key names to these",
            True,
            False,
        ),
        Option("decryption.onFailure", "what no key opens: fail, skip, or consume (as it is)", True, False),
        Option("token", "reference to a token: env:NAME, file:/path or command:PROGRAM ARGUMENTS", True, True),
        Option(
            "pulsar.client.authPluginClassName", "Pulsar's class of a login: token, basic, tls, OAuth 2", True, True
        ),
        Option("pulsar.client.authParams", "its parameters, with references instead of secrets", True, True),
        Option("clientConf", "path of Pulsar's client.conf, which each process reads", True, True),
        Option("pulsar.client.tlsTrustCertsFilePath", "certificates that are trusted, PEM", True, True),
        Option("pulsar.client.tlsCertificateFilePath", "the client's own certificate, PEM", True, True),
        Option("pulsar.client.tlsKeyFilePath", "the key of that certificate, PEM", True, True),
        Option("pulsar.client.tlsAllowInsecureConnection", "true: any certificate, for experiments only", True, True),
        Option("pulsar.client.tlsHostnameVerificationEnable", "false: a certificate of another host too", True, True),
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
"""Options of a source that a batch read refuses: it has no micro-batches, and leaves nothing at the broker."""


_SPARK_KEYS: Final = frozenset({"queryname", "checkpointlocation", "path", "outputmode"})


def fault(key: str, side: str) -> str | None:
    """Return what is wrong with a key for a source or a sink; None if nothing is."""
    option = OPTIONS.get(key.lower())
    if option is not None:
        return None if _has(option, side) else f"option {option.title!r} has no meaning for a {side}"
    if key.lower() in _SPARK_KEYS:
        return None
    known = (option.title for option in OPTIONS.values() if _has(option, side))
    return unknown(key, known, lambda titles: f"a {side} has {titles}")


def _has(option: Option, side: str) -> bool:
    return option.source if side == "source" else option.sink


def service_url(table: OptionTable) -> str:
    url = table.get("service.url")
    if url is None:
        raise InvalidValueError("option 'service.url' is missing; for instance pulsar://localhost:6650")
    parse_service_url(url)
    return url


def topic_name(text: str) -> str:
    try:
        return TopicName.parse(text).fqn
    except MagnetarError as error:
        raise InvalidValueError(f"{text!r} is no topic: {error}") from None
