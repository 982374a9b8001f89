"""Messages of topics as they were sent: chunks joined, encrypted ones opened with the keys that the file names.

`redrive` and `verify` read topics with the client, without Spark. A source's topics are opened with its
``decryption.privateKey``, an output with that of its sink; dead letters are never encrypted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.columnar.entries.column_builder import ColumnBuilder
from magnetar.columnar.single_entries.opener import PROPERTY, CryptoFailureAction
from magnetar.pipelines.declaration.model import Pipeline, TopicSource
from magnetar.pipelines.declaration.secrets import resolve, resolved_options
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.protocol.commands import KeyValues
from magnetar.spark.options.source_options import SourceOptions, source_options
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.reading.range_entries import range_blocks

_SEALED: Final = f"{PROPERTY}numMessagesInBatch"
_CHUNK: Final = f"{PROPERTY}chunk"
_PARAM: Final = f"{PROPERTY}param"
_KEY: Final = "decryption.privateKey"
_USED: Final = (_KEY, "chunkTimeoutMs", "operationTimeoutMs")


def stored_messages(
    lookup: Lookup, topic: str, start: ReadPosition, end: ReadPosition, options: SourceOptions
) -> Iterator[ColumnBuilder]:
    """Yield all messages of a range, some at a time; each is valid until the next one is asked for."""
    found = ColumnBuilder()
    for block in range_blocks(options, lookup, Range(topic, start, end)):
        for _ in found.add(block):
            yield found
    yield found


def reader_options(
    pipeline: Pipeline, topic: str, given: Mapping[str, str], failure: CryptoFailureAction = CryptoFailureAction.FAIL
) -> SourceOptions:
    """Return how `stored_messages` reads a topic, with options of a source or sink; what was trimmed is left out."""
    options = resolved_options({name: given[name] for name in _USED if name in given})
    options |= {"service.url": resolve(pipeline.service_url), "topic": topic, "failOnDataLoss": "false"}
    return source_options({**options, "decryption.onFailure": failure.value})


def has_key(source: TopicSource) -> bool:
    """Return whether a source opens encrypted messages."""
    return _KEY in source.options


def sources_by_topic(pipeline: Pipeline, checkpoint: PipelineCheckpoint) -> dict[str, TopicSource]:
    """Return which source has read each topic-partition; of two, one with a key, so that nothing leaves in the
    clear."""
    topics: dict[str, set[str]] = {name: set(places) for name, places in checkpoint.starts().items()}
    for manifest in checkpoint.manifests()[0]:
        for name, part in manifest.sources.items():
            topics.setdefault(name, set()).update(part.end)
    for batch in checkpoint.batches()[-1:]:
        # It may have dead letters, but no manifest yet. Sources are known by the topics they had before.
        for ends in checkpoint.ends(batch):
            for known in topics.values():
                if ends is not None and not known.isdisjoint(ends):
                    known.update(ends)
    return {
        topic: source for source in sorted(pipeline.topic_sources, key=has_key) for topic in topics.get(source.name, ())
    }


def sealed_count(properties: KeyValues) -> int | None:
    """Count the messages in an entry that no key has opened; None if it was opened or is not encrypted.

    Of a message in chunks the last one counts: after a crash between chunks the others may be there twice.
    """
    names = dict(properties)
    if _PARAM not in names:
        return None
    if _CHUNK in names:
        _, number, count = names[_CHUNK].rsplit(" ", 2)
        return int(int(number) == int(count) - 1)
    return int(names.get(_SEALED, "1"))
