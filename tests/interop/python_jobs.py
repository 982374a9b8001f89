"""What the peers of both Python libraries and of both faces share: a job's parameters, and a message as an answer."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from tests.interop.encodings import Fields, b64
from tests.interop.python_values import PythonValues

PATIENCE_MS: Final = 20_000
SILENCE_MS: Final = 300
SPELLED: Final = {"ZLIB": "ZLib"}
"""Kinds of compression that Python spells in another way than Java."""


class PythonJobs:
    """``library``: "pulsar", the official one, or "magnetar"."""

    def __init__(self, library: str, *, with_dataclasses: bool = False) -> None:
        self.of: Any = importlib.import_module(library)
        self.official = library == "pulsar"
        self.values = PythonValues(library, with_dataclasses=with_dataclasses)

    def kind(self, job: Mapping[str, Any]) -> str | None:
        """Return the name of the schema that a job asks for."""
        schema = job.get("schema")
        return None if schema is None else schema["kind"]

    def producer(self, job: Fields) -> Fields:
        """Return the parameters of `create_producer`."""
        options = job["producer"]
        found: Fields = {
            "producer_name": options["name"], "send_timeout_millis": 0,
            "batching_enabled": options.get("batching", False), "batching_max_publish_delay_ms": 200,
            "chunking_enabled": options.get("chunking", False),
        }  # fmt: skip
        if job.get("schema") is not None:
            found["schema"] = self.values.schema(self.kind(job), producing=True)
        if "compression" in options:
            kind = options["compression"]
            found["compression_type"] = getattr(self.of.CompressionType, SPELLED.get(kind, kind))
        if options.get("by_key"):
            found |= {"batching_type": self.of.BatchingType.KeyBased} if self.official else {"key_based_batching": True}
        if "public_key" in options:
            keys = self.of.CryptoKeyReader(options["public_key"], "" if self.official else None)
            found |= {"encryption_key": "k", "crypto_key_reader": keys}
        if job.get("transaction"):
            found["txn_enabled"] = True
        return found

    def message(self, one: Mapping[str, Any]) -> Fields:
        """Return the parameters of `send` beside the content."""
        found: Fields = {"properties": one.get("properties") or None}
        if "key" in one:
            found["partition_key"] = one["key"]
        if "key_bytes" in one:
            found["partition_key"] = base64.b64decode(one["key_bytes"])
        if "ordering_key" in one:
            key = base64.b64decode(one["ordering_key"])
            found["ordering_key"] = key.decode() if self.official else key
        if "event_time" in one:
            found["event_timestamp"] = one["event_time"]
        if "sequence_id" in one:
            found["sequence_id"] = one["sequence_id"]
        if "deliver_after_ms" in one:
            found["deliver_after"] = timedelta(milliseconds=one["deliver_after_ms"])
        return found

    def consumer(self, job: Fields) -> Fields:
        """Return the parameters of `subscribe`."""
        options = job.get("consumer") or {}
        kind = options.get("type", "Exclusive")
        found: Fields = {
            "consumer_type": getattr(self.of.ConsumerType, kind.replace("_", "")),
            "initial_position": self.of.InitialPosition.Earliest, "batch_index_ack_enabled": True,
            "negative_ack_redelivery_delay_ms": 100,
        }  # fmt: skip
        if job.get("schema") is not None:
            found["schema"] = self.values.schema(self.kind(job), producing=False)
        if "private_key" in options:
            found["crypto_key_reader"] = self.of.CryptoKeyReader("" if self.official else None, options["private_key"])
        if "max_redeliver_count" in options:
            found["dead_letter_policy"] = self.of.ConsumerDeadLetterPolicy(
                options["max_redeliver_count"], initial_subscription_name="review"
            )
        if options.get("retry"):
            found["retry_enable"] = True
        return found

    def shown(self, message: Any, kind: str | None) -> Fields:
        """Return a message as an answer shows it."""
        one: Fields = {}
        if message.has_null_value():
            one["null"] = True
        else:
            one["data"] = b64(message.data())
            if kind is not None:
                one["value"] = self.values.plain(kind, message.value())
        # the official client shows a key of bytes as the base64 that it travels in
        key = message.partition_key().encode() if self.official else message.key_bytes()
        if self.official or message.has_key():
            one["key_bytes"] = b64(key)
        ordering = message.ordering_key().encode() if self.official else message.ordering_key_bytes()
        if ordering:
            one["ordering_key"] = b64(ordering)
        one |= {
            "properties": dict(message.properties()), "event_time": message.event_timestamp(),
            "producer": message.producer_name(), "topic": message.topic_name(),
            "redeliveries": message.redelivery_count(), "id": self.id(message.message_id()),
        }  # fmt: skip
        if not self.official:
            one["sequence_id"] = message.sequence_id()
        return one

    @staticmethod
    def id(one: Any) -> Fields:
        """Return an id of either library as an answer shows it."""
        found: Fields = {"ledger": one.ledger_id(), "entry": one.entry_id(), "batch_index": one.batch_index()}
        return found | {"bytes": b64(one.serialize()), "text": str(one)}
