"""``magnetar pipeline replay``: puts dead letters back into the topics they came from, each once and unchanged.

They get their original bytes, key, properties and event time. A replay is planned first: its number, the end of the
dead-letter topic, and its filter, as a file in the checkpoint (``replays/<number>.json``). It takes the letters before
its end that match, except those that an earlier replay took. So which letters it takes is a function of files, and an
interrupted replay is finished before the next one begins: it sends the same rows in the same order under the same name
and numbers (`spark.sink.sequence_ids`), and what the broker has is skipped.

A message goes to the topic-partition it was read from. A row that failed after a step is replaced by the message it
was made of, if the steps carried its position and the topic still has it. What is too large for one entry goes in
chunks. Into the topics of a source that has a private key everything goes encrypted, for the public half of that key:
nothing that came encrypted is put back in the clear.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.positions import last_position
from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.columnar.entries.column_builder import ColumnBuilder
from magnetar.columnar.single_entries.opener import CryptoFailureAction
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.pipelines.declaration.model import Pipeline, TopicSource
from magnetar.pipelines.declaration.secrets import resolved_options
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint, text_of
from magnetar.pipelines.state.dead_letter import MESSAGE, DeadLetter, parse_dead_letter
from magnetar.pipelines.state.status import open_lookup, partitions_there
from magnetar.pipelines.state.stored_messages import (
    has_key,
    reader_options,
    sealed_count,
    sources_by_topic,
    stored_messages,
)
from magnetar.protocol.commands import KeyValues
from magnetar.spark.durable_files import write_whole
from magnetar.spark.options.encryption_keys import encryption_like
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import SourceOptions
from magnetar.spark.sink.sequence_ids import UnreplayableError
from magnetar.spark.sink.task_sink import Numbering, TaskSink

_log: Final = logging.getLogger(__name__)
_ROWS: Final = 1_000
_BYTES: Final = 32 << 20
"""Bytes of values that are held at a time, about."""


class RedriveMessage(NamedTuple):
    """One message of the dead-letter topic, or one that it stands for."""

    topic: str
    at: ReadPosition
    value: bytes | None
    key: bytes | None
    event_time: int
    publish_time: int
    properties: KeyValues
    ordering_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class RedrivePlan:
    """Which dead letters one replay takes; stored as a file."""

    number: int
    end: dict[str, str]
    since_ms: int = 0
    """Only letters published then or later."""
    cause: str = ""
    done: bool = False

    def takes(self, found: RedriveMessage, one: DeadLetter) -> bool:
        """Return whether the plan matches a dead letter, whatever earlier replays took."""
        before_end = found.at < ReadPosition.parse(self.end.get(found.topic, "-1:0"))
        return before_end and found.publish_time >= self.since_ms and self.cause in ("", one.cause)


class RedriveResult(NamedTuple):
    """Numbers of messages and rows of a replay."""

    sent: int
    """Messages put back by this call."""
    known: int
    """Messages that the broker had from an interrupted call."""
    left: int
    """Rows without the position of a message."""
    gone: int
    """Rows whose messages their topic no longer has."""
    closed: int
    """Encrypted messages that no key of their source opens."""


def redrive_plans(checkpoint: PipelineCheckpoint) -> list[RedrivePlan]:
    """Return all plans so far, in order. InvalidValueError if one is missing or damaged."""
    directory = checkpoint.directory / "replays"
    found = sorted(map(_plan_of, directory.glob("*.json")), key=lambda one: one.number) if directory.is_dir() else []
    for number, plan in enumerate(found):
        if plan.number != number:
            raise InvalidValueError(
                f"{directory}/{number}.json is missing: it says which dead letters a replay took; restore it from a "
                f'backup. Without one, write {{"number": {number}, "end": {{}}, "done": true}} into it: letters that '
                "it took may be put back once more then"
            )
    return found


def _plan_of(path: Path) -> RedrivePlan:
    try:
        found = RedrivePlan(**json.loads(text_of(path)))
        _ = [ReadPosition.parse(place) for place in found.end.values()], found.number + found.since_ms
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(
            f"{path} is damaged: {error}. It says which dead letters a replay took: restore it from a backup, or "
            "letters would be put back twice"
        ) from None
    return found


def chosen(all_plans: list[RedrivePlan], plan: RedrivePlan, found: RedriveMessage, one: DeadLetter) -> bool:
    """Return whether ``plan`` takes a letter and no earlier plan did."""
    return plan.takes(found, one) and not any(
        other.takes(found, one) for other in all_plans if other.number < plan.number
    )


def redrive(pipeline: Pipeline, *, since_ms: int = 0, cause: str = "") -> RedriveResult:
    """Finish interrupted replays, then take the dead letters that are there now."""
    if pipeline.dead_letter is None:
        raise InvalidValueError(f"pipeline {pipeline.name} has no dead-letter topic")
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    query = checkpoint.query_id()
    if query is None:
        raise InvalidValueError(f"pipeline {pipeline.name} has not run yet, so there are no dead letters of it")
    with checkpoint.alone(), open_lookup(pipeline) as lookup:
        known = redrive_plans(checkpoint)
        total = RedriveResult(0, 0, 0, 0, 0)
        for plan in known:
            if not plan.done:
                total = _carried_out(pipeline, checkpoint, lookup, query, known, plan)
        topics = partitions_there(lookup, pipeline.dead_letter)
        end = {topic: str(last_position(lookup, topic)) for topic in topics}
        plan = RedrivePlan(len(known), end, since_ms, cause)
        _keep(checkpoint, plan)
        one = _carried_out(pipeline, checkpoint, lookup, query, [*known, plan], plan)
        return RedriveResult(*(a + b for a, b in zip(total, one, strict=True)))


def _file_of(checkpoint: PipelineCheckpoint, plan: RedrivePlan) -> Path:
    return checkpoint.directory / "replays" / f"{plan.number}.json"


def _keep(checkpoint: PipelineCheckpoint, plan: RedrivePlan) -> None:
    write_whole(_file_of(checkpoint, plan), json.dumps(asdict(plan), indent=1) + "\n")


def _carried_out(
    pipeline: Pipeline,
    checkpoint: PipelineCheckpoint,
    lookup: Lookup,
    query: str,
    all_plans: list[RedrivePlan],
    plan: RedrivePlan,
) -> RedriveResult:
    given = resolved_options(pipeline.broker())
    options = sink_options({**given, "pulsar.producer.chunkingEnabled": "true"})
    sources = sources_by_topic(pipeline, checkpoint)
    counts = Counter[str]()
    # One sender for what is not encrypted, and one for each source with a key.
    for number, source in enumerate((None, *pipeline.topic_sources)):
        sending = options
        if source is not None:
            if not has_key(source):
                continue
            keys = reader_options(pipeline, pipeline.dead_letter or "", source.options).decryption
            assert keys is not None, "it has one"
            sending = replace(options, encryption=encryption_like(keys))
        taken = RedriveSelection(pipeline, lookup, sources, source, all_plans, plan)
        numbering = Numbering(f"spark.{query}/replay.{number}", plan.number)
        try:
            done = TaskSink(sending, numbering).run(_batches(taken.all()))
        except UnreplayableError as error:
            raise InvalidValueError(
                f"replay {plan.number} was broken off, and dead letters or original messages that it had put back are "
                "gone since, or the file has other sources or keys: what is left of it cannot be known. To give it up, "
                f'set "done" to true in {_file_of(checkpoint, plan)}: what it has not put back stays out, and later '
                "dead letters are put back as ever"
            ) from error
        counts.update(taken.counts, sent=done.messages, known=done.skipped)
    _keep(checkpoint, RedrivePlan(plan.number, plan.end, plan.since_ms, plan.cause, True))
    return RedriveResult(*(counts[name] for name in RedriveResult._fields))


@dataclass
class RedriveSelection:
    """The messages that one sender of a replay sends."""

    pipeline: Pipeline
    lookup: Lookup
    sources: Mapping[str, TopicSource]
    """The source of each topic-partition."""
    only: TopicSource | None
    """The source with a key whose topics this sender serves; None for the topics of all others."""
    all_plans: list[RedrivePlan]
    plan: RedrivePlan
    counts: Counter[str] = field(default_factory=Counter)
    """What cannot be sent, by the names of `RedriveResult`."""

    def all(self) -> Iterator[RedriveMessage]:
        """Yield the messages to send, in the order of the dead-letter topic."""
        for topic, end in sorted(self.plan.end.items()):
            # Our letters are not encrypted; messages of others in this topic are skipped.
            options = reader_options(self.pipeline, topic, {}, CryptoFailureAction.SKIP)
            for found in messages(self.lookup, topic, START, ReadPosition.parse(end), options):
                one = parse_dead_letter(found.properties)
                if one is None or one.pipeline != self.pipeline.name or not self._meant(one):
                    continue
                if chosen(self.all_plans, self.plan, found, one) and (sent := self._sent(found, one)) is not None:
                    yield sent

    def _meant(self, one: DeadLetter) -> bool:
        source = self.sources.get(one.topic)
        return (source if source is not None and has_key(source) else None) == self.only

    def _sent(self, found: RedriveMessage, one: DeadLetter) -> RedriveMessage | None:
        if not one.topic:
            self.counts["left"] += 1
            return None
        if one.kind == MESSAGE:
            original: RedriveMessage | None = found._replace(topic=one.topic, properties=one.original)
        else:
            source = self.sources.get(one.topic)
            given = {} if source is None else source.options
            original = _original(
                self.lookup, one, reader_options(self.pipeline, one.topic, given, CryptoFailureAction.CONSUME)
            )
        if original is None:
            self.counts["gone"] += 1
        elif sealed_count(original.properties) is not None:
            self.counts["closed"] += 1
            _log.warning(
                "%s: the message at %s is encrypted, and no key opens it; it stays out", one.topic, one.position
            )
        else:
            return original
        return None


def _original(lookup: Lookup, one: DeadLetter, options: SourceOptions) -> RedriveMessage | None:
    """Read an original message; None if it is gone for good. A transient failure raises: a letter is taken only
    once."""
    at = one.position
    try:
        found = next(messages(lookup, one.topic, at, at._replace(batch=at.batch + 1), options), None)
        if found is None and at.batch:
            # A batch that no key opens is one message, wherever in it ours was.
            whole = next(messages(lookup, one.topic, at._replace(batch=0), at._replace(batch=1), options), None)
            found = whole if whole is not None and sealed_count(whole.properties) is not None else None
        return found
    except DataLossError:
        return None
    except RefusedError as error:
        if error.code is ServerError.TopicNotFound:
            return None
        raise


def messages(
    lookup: Lookup, topic: str, start: ReadPosition, end: ReadPosition, options: SourceOptions
) -> Iterator[RedriveMessage]:
    """Yield all messages of a range."""
    for some in stored_messages(lookup, topic, start, end, options):
        yield from _rows_of(topic, some)


def _rows_of(topic: str, found: ColumnBuilder) -> Iterator[RedriveMessage]:
    columns = (
        found.ledgers().tolist(),
        found.entries().tolist(),
        found.places().tolist(),
        found.values().to_pylist(),
        found.keys().to_pylist(),
        found.event_times().tolist(),
        found.publish_times().tolist(),
        found.properties().to_pylist(),
        found.ordering_keys().to_pylist(),
    )
    for ledger, entry, place, value, key, event_time, publish_time, pairs, ordering in zip(*columns, strict=True):
        yield RedriveMessage(
            topic, ReadPosition(ledger, entry, place), value, key, event_time, publish_time, tuple(pairs), ordering
        )


def _batches(found: Iterator[RedriveMessage]) -> Iterator[Any]:
    rows: list[RedriveMessage] = []
    size = 0
    for one in found:
        rows.append(one)
        size += len(one.value or b"")
        if len(rows) == _ROWS or size > _BYTES:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[RedriveMessage]) -> Any:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([one.value for one in rows], pa.binary()),
            pa.array([one.key for one in rows], pa.binary()),
            pa.array([one.topic for one in rows], pa.string()),
            pa.array([one.event_time for one in rows], pa.int64()),
            pa.array([list(one.properties) for one in rows], pa.map_(pa.string(), pa.string())),
            pa.array([one.ordering_key for one in rows], pa.binary()),
        ],
        names=["value", "__key", "__topic", "__eventTime", "__messageProperties", "__orderingKey"],
    )
