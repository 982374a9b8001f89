"""Arrow record batches to rows that can be packed into entries: columns checked, keys routed, lists per partition.

Columns: ``value`` (binary or string, null is a message without value), and if wanted ``__key`` (binary or
string), ``__topic``, ``__partition`` (a number; null is "by key"), ``__eventTime`` and ``__deliverAt`` (timestamp, or a
number of milliseconds), ``__orderingKey`` (binary or string), ``__messageProperties`` (map<string,string>). Others are
refused, since leaving them out silently would lose them.

A key always goes to the same partition: its hash modulo the number of partitions, JavaStringHash by default as Java
clients do, or Murmur3 (rules 6.7.4, 6.7.5). Rows without a key go to the partitions in turn, a batch's worth each.
All of this is a function of the rows and their ordinals, so a replayed task routes as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import java_string_hash, murmur3_31
from magnetar.model.names import TopicName
from magnetar.protocol.message_keys import key_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from magnetar.columnar.entries.message_columns import MessageColumns

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "value": ("binary", "string"),
    "__key": ("binary", "string"),
    "__topic": ("string",),
    "__eventTime": ("timestamp", "bigint"),
    "__messageProperties": ("map<string,string>",),
    "__partition": ("int", "bigint"),
    "__orderingKey": ("binary", "string"),
    "__deliverAt": ("timestamp", "bigint"),
}


class Rows(NamedTuple):
    """Messages for one topic, or one partition of it (-1: it has none), in order."""

    topic: str
    partition: int
    ordinals: NDArray[np.int64]
    picked: NDArray[np.int64]
    """Which rows of ``messages`` they are."""
    messages: MessageColumns
    """The messages of the whole record batch."""

    @property
    def target(self) -> str:
        """Return the internal topic that is written."""
        return self.topic if self.partition < 0 else TopicName.parse(self.topic).partition(self.partition).fqn


def check_columns(types: dict[str, str], topic: str | None) -> None:
    """Check that rows of these columns (name to Spark's name of the type) can be written. Raises InvalidValueError."""
    if "value" not in types:
        raise InvalidValueError(
            "the sink needs a column 'value'; for instance .selectExpr('to_json(struct(*)) AS value')"
        )
    for name, kind in types.items():
        if name not in COLUMNS:
            raise InvalidValueError(f"column {name!r} is none of {', '.join(COLUMNS)}; put it into 'value' or drop it")
        if kind not in COLUMNS[name]:
            raise InvalidValueError(f"column {name!r} is {kind}; it can be {' or '.join(COLUMNS[name])}")
    if (topic is None) == ("__topic" not in types):
        raise InvalidValueError("give the topic either as the option 'topic' or in a column '__topic'")


class Router:
    """Turns record batches of one task into `Rows`; counts the task's rows."""

    def __init__(
        self,
        topic: str | None,
        partition_count: Callable[[str], int],
        *,
        murmur: bool = False,
        run: int = 1_000,
        hashing: Callable[[str], int] | None = None,
        only: float | None = None,
    ) -> None:
        """``hashing`` makes a number of a key's text, instead of JavaStringHash, or Murmur3 with ``murmur``; with
        ``only``, from 0 to 1, rows without a key go to the one partition there, instead of ``run`` at a time in turn.
        """
        self._topic = topic
        self._partition_count = partition_count
        self._hashing = hashing or ((lambda text: murmur3_31(text.encode())) if murmur else java_string_hash)
        self._only = only
        self._run = run
        self._hashes: dict[bytes, int] = {}
        self.ordinal = 0
        self.base64_keys = False
        """Whether all keys travel so, which also says where they go (KEY_VALUE, SEPARATED)."""

    def split(self, batch: Any) -> Iterator[Rows]:
        """Yield the rows of one batch by topic and partition; order within each is kept."""
        count = batch.num_rows
        first, self.ordinal = self.ordinal, self.ordinal + count
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        ordinals = np.arange(first, first + count, dtype="int64")
        messages = _messages(columns, self.base64_keys)
        for topic, chosen in self._by_topic(columns.get("__topic"), count):
            partitions = self._partition_count(topic)
            if not partitions:
                yield _rows(topic, -1, messages, first, np.arange(count) if chosen is None else np.flatnonzero(chosen))
                continue
            routes = self._routes(columns.get("__key"), ordinals, partitions)
            if "__partition" in columns:
                routes = _named(topic, columns["__partition"], routes, partitions, chosen)
            for partition in range(partitions):
                here = np.flatnonzero(routes == partition if chosen is None else chosen & (routes == partition))
                if len(here):
                    yield _rows(topic, partition, messages, first, here)

    def _by_topic(self, topics: Any, count: int) -> Iterator[tuple[str, NDArray[Any] | None]]:
        if topics is None:
            assert self._topic is not None, "check_columns has seen to it"
            if count:
                yield self._topic, None
            return
        if topics.null_count:
            raise InvalidValueError("column '__topic' is null in a row; every row needs a topic")
        encoded = topics.dictionary_encode()
        indices = encoded.indices.to_numpy()
        for index, name in enumerate(encoded.dictionary.to_pylist()):
            yield TopicName.parse(name).fqn, indices == index

    def _routes(self, keys: Any, ordinals: NDArray[Any], partitions: int) -> NDArray[Any]:
        in_turn = ordinals // self._run % partitions
        if self._only is not None:
            in_turn = np.full(len(ordinals), int(self._only * partitions), "int64")
        if keys is None:
            return in_turn
        encoded = keys.cast(pa.binary()).dictionary_encode()
        if not len(encoded.dictionary):
            return in_turn
        by_key = np.array([self._hash(key) % partitions for key in encoded.dictionary.to_pylist()], "int64")
        if not keys.null_count:
            routes: NDArray[Any] = by_key[encoded.indices.to_numpy()]
            return routes
        indices = pc.fill_null(encoded.indices, -1).to_numpy()
        return np.where(indices < 0, in_turn, by_key[indices])

    def _hash(self, key: bytes) -> int:
        found = self._hashes.get(key)
        if found is None:
            text = key_text(key, base64_always=self.base64_keys)[0]
            found = self._hashes[key] = self._hashing(text)
        return found


def _named(topic: str, given: Any, routes: NDArray[Any], partitions: int, chosen: NDArray[Any] | None) -> NDArray[Any]:
    """Return partitions from the column where it has one. Its values in rows of other topics do not count."""
    numbers = pc.fill_null(given.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    says = numbers[given.is_valid().to_numpy(zero_copy_only=False) & (True if chosen is None else chosen)]
    if len(says) and not (says.min() >= 0 and says.max() < partitions):
        wrong = next(int(one) for one in says if not 0 <= one < partitions)
        raise InvalidValueError(f"column '__partition' is {wrong}; {topic} has partitions 0 to {partitions - 1}")
    return np.where(numbers < 0, routes, numbers)


def _rows(topic: str, partition: int, messages: MessageColumns, first: int, picked: NDArray[np.int64]) -> Rows:
    return Rows(topic, partition, picked + first, picked, messages)


def _messages(columns: dict[str, Any], base64_keys: bool) -> MessageColumns:
    # Its kernels take a quarter of a second to load, and the driver only checks columns.
    from magnetar.columnar.entries.message_columns import message_columns

    times, delays = columns.get("__eventTime"), columns.get("__deliverAt")
    return message_columns(
        columns["value"],
        columns.get("__key"),
        None if times is None else _milliseconds(times),
        columns.get("__messageProperties"),
        columns.get("__orderingKey"),
        None if delays is None else _milliseconds(delays),
        base64_keys=base64_keys,
    )


def _milliseconds(times: Any) -> NDArray[np.int64]:
    numbers = times.cast(pa.int64())
    if pa.types.is_timestamp(times.type):
        numbers = _floored(times)
    found: NDArray[np.int64] = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    return found


def _floored(times: Any) -> Any:
    """Return the millisecond that a moment is in, also before 1970."""
    count = times.cast(pa.int64())
    if times.type.unit == "s":
        return pc.multiply_checked(count, 1000)
    parts = {"ms": 1, "us": 1_000, "ns": 1_000_000}[times.type.unit]
    whole = pc.divide(count, parts)
    return pc.if_else(pc.less(count, pc.multiply(whole, parts)), pc.subtract(whole, 1), whole)
