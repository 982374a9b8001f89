"""The options of a sink, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from magnetar.client.login import ClientLogin
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.compression import CompressionType
from magnetar.spark.options.encryption_keys import Encryption, encryption
from magnetar.spark.options.login_options import login_of
from magnetar.spark.options.option_list import fault, service_url, topic_name
from magnetar.spark.options.option_table import OptionTable
from magnetar.spark.options.value_options import HALF_KINDS, STRUCTURED, WRITTEN_KINDS, PairOptions

_DELIVERIES: Final = ("effectively-once", "at-least-once")


_HASHING: Final = ("JavaStringHash", "Murmur3_32Hash")


_PAIR: Final = PairOptions()


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
    login: ClientLogin
    schema: str | None = None
    """None: the column ``value`` is bytes or text, and the broker gets no schema."""
    value_schema: str | None = None
    value_message: str | None = None
    encryption: Encryption | None = None
    pair: PairOptions = _PAIR
    chunking: bool = False


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Return the options of a sink, checked. Raises InvalidValueError."""
    table = OptionTable(given, lambda key: fault(key, "sink"))
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
        service_url=service_url(table),
        topic=None if topic is None else topic_name(topic),
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
        login=login_of(table),
        schema=schema,
        value_schema=table.get("valueSchema"),
        value_message=table.get("valueMessage"),
        encryption=encryption(table.get("encryption.publicKey")),
        pair=_pair(table),
        chunking=table.flag("pulsar.producer.chunkingEnabled", False),
    )


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


def _absolute(directory: str | None) -> str | None:
    """Make a path absolute in the driver, which reads the options: tasks work in directories of their own."""
    return directory if directory is None or ":" in directory.partition("/")[0] else str(Path(directory).absolute())
