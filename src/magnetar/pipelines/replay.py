"""Dead letters back to the topics they came from, each once, with their original bytes, key, properties and time.

A replay is planned first: its number, the end of the dead-letter topic, and what was asked for, as a file in the
checkpoint (``replays/<number>.json``). It takes the letters before its end that match, except those that an earlier
replay took. So which letters it takes is a function of files, and one that was broken off is finished before the next
one begins: it sends the same rows in the same order under the same name and numbers (`spark.sequences`), and what the
broker has is skipped.

A message goes to the topic-partition it was read from. A row that failed behind a step is replaced by the message it
was made of, if the steps carried its position and the topic still has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.errors import DataLossError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.client.reader import RangeReader, last_place
from magnetar.columnar.messages import Messages
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.pipelines.checkpoint import Checkpoint, write_whole
from magnetar.pipelines.letters import MESSAGE, Letter, letter
from magnetar.pipelines.model import Pipeline
from magnetar.pipelines.secrets import resolve
from magnetar.pipelines.status import open_lookup, partitions_there
from magnetar.protocol.commands import Pairs
from magnetar.spark.options import sink_options
from magnetar.spark.publish import Numbering, TaskSink

_ROWS: Final = 1_000


class Found(NamedTuple):
    """One message of the dead-letter topic, or one that it stands for."""

    topic: str
    at: Place
    value: bytes | None
    key: bytes | None
    event_time: int
    publish_time: int
    properties: Pairs


@dataclass(frozen=True, slots=True)
class Plan:
    """What one replay takes."""

    number: int
    end: dict[str, str]
    since_ms: int = 0
    """Died (were published) then or later."""
    cause: str = ""
    done: bool = False

    def takes(self, found: Found, one: Letter) -> bool:
        """Whether it is among them, apart from what others took."""
        before_end = found.at < Place.parse(self.end.get(found.topic, "-1:0"))
        return before_end and found.publish_time >= self.since_ms and self.cause in ("", one.cause)


class Replayed(NamedTuple):
    sent: int
    """Put back by this call."""
    known: int
    """The broker had them from a call that was broken off."""
    left: int
    """Rows without the position of a message."""
    gone: int
    """Their topic does not have them any more."""


def plans(checkpoint: Checkpoint) -> list[Plan]:
    """All so far, in order."""
    directory = checkpoint.directory / "replays"
    found = [json.loads(path.read_text()) for path in directory.glob("*.json")] if directory.is_dir() else []
    return sorted((Plan(**one) for one in found), key=lambda one: one.number)


def chosen(all_plans: list[Plan], plan: Plan, found: Found, one: Letter) -> bool:
    """Whether ``plan`` takes it and no earlier one did."""
    return plan.takes(found, one) and not any(
        other.takes(found, one) for other in all_plans if other.number < plan.number
    )


def replay(pipeline: Pipeline, *, since_ms: int = 0, cause: str = "") -> Replayed:
    """Finish what was broken off, then take what is there now."""
    if pipeline.dead_letter is None:
        raise InvalidValueError(f"pipeline {pipeline.name} has no dead-letter topic")
    checkpoint = Checkpoint(pipeline.checkpoint)
    query = checkpoint.query_id()
    if query is None:
        raise InvalidValueError(f"pipeline {pipeline.name} has not run yet, so there are no dead letters of it")
    with checkpoint.alone(), open_lookup(pipeline) as lookup:
        known = plans(checkpoint)
        total = Replayed(0, 0, 0, 0)
        for plan in known:
            if not plan.done:
                total = _carried_out(pipeline, checkpoint, lookup, query, known, plan)
        topics = partitions_there(lookup, pipeline.dead_letter)
        end = {topic: str(last_place(lookup, topic)) for topic in topics}
        plan = Plan(len(known), end, since_ms, cause)
        _keep(checkpoint, plan)
        one = _carried_out(pipeline, checkpoint, lookup, query, [*known, plan], plan)
        return Replayed(*(a + b for a, b in zip(total, one, strict=True)))


def _keep(checkpoint: Checkpoint, plan: Plan) -> None:
    path = checkpoint.directory / "replays" / f"{plan.number}.json"
    write_whole(path, json.dumps(asdict(plan), indent=1) + "\n")


def _carried_out(
    pipeline: Pipeline, checkpoint: Checkpoint, lookup: Lookup, query: str, all_plans: list[Plan], plan: Plan
) -> Replayed:
    counts = {"left": 0, "gone": 0}
    options = sink_options({name: resolve(text) for name, text in pipeline.broker().items()})
    sink = TaskSink(options, Numbering(f"spark.{query}/replay.0", plan.number))
    done = sink.run(_batches(_taken(pipeline, lookup, all_plans, plan, counts)))
    _keep(checkpoint, Plan(plan.number, plan.end, plan.since_ms, plan.cause, True))
    return Replayed(done.messages, done.skipped, counts["left"], counts["gone"])


def _taken(
    pipeline: Pipeline, lookup: Lookup, all_plans: list[Plan], plan: Plan, counts: dict[str, int]
) -> Iterator[Found]:
    """The messages to send, in the order of the dead-letter topic."""
    for topic, end in sorted(plan.end.items()):
        for found in messages(lookup, topic, START, Place.parse(end)):
            one = letter(found.properties)
            if one is None or one.pipeline != pipeline.name or not chosen(all_plans, plan, found, one):
                continue
            if not one.topic:
                counts["left"] += 1
            elif one.kind == MESSAGE:
                yield found._replace(topic=one.topic, properties=one.original)
            elif (original := _original(lookup, one)) is not None:
                yield original
            else:
                counts["gone"] += 1


def _original(lookup: Lookup, one: Letter) -> Found | None:
    """None if it is gone for good. Whatever may be otherwise in a minute is an error: a letter is taken only once."""
    end = one.position._replace(batch=one.position.batch + 1)
    try:
        return next(iter(messages(lookup, one.topic, one.position, end)), None)
    except DataLossError:
        return None
    except RefusedError as error:
        if error.error is ServerError.TopicNotFound:
            return None
        raise


def messages(lookup: Lookup, topic: str, start: Place, end: Place) -> Iterator[Found]:
    """All of a range, as they are stored."""
    found = Messages()
    for block in RangeReader(lookup, topic, start, end, fail_on_data_loss=False).blocks():
        for _ in found.add(block):
            yield from _rows_of(topic, found)
    yield from _rows_of(topic, found)


def _rows_of(topic: str, found: Messages) -> Iterator[Found]:
    columns = (
        found.ledgers().tolist(),
        found.entries().tolist(),
        found.places().tolist(),
        found.values().to_pylist(),
        found.keys().to_pylist(),
        found.event_times().tolist(),
        found.publish_times().tolist(),
        found.properties().to_pylist(),
    )
    for ledger, entry, place, value, key, event_time, publish_time, pairs in zip(*columns, strict=True):
        yield Found(topic, Place(ledger, entry, place), value, key, event_time, publish_time, tuple(pairs))


def _batches(found: Iterator[Found]) -> Iterator[Any]:
    rows: list[Found] = []
    for one in found:
        rows.append(one)
        if len(rows) == _ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[Found]) -> Any:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([one.value for one in rows], pa.binary()),
            pa.array([one.key for one in rows], pa.binary()),
            pa.array([one.topic for one in rows], pa.string()),
            pa.array([one.event_time for one in rows], pa.int64()),
            pa.array([list(one.properties) for one in rows], pa.map_(pa.string(), pa.string())),
        ],
        names=["value", "__key", "__topic", "__eventTime", "__messageProperties"],
    )
