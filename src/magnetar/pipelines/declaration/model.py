"""A pipeline, once its file is checked. Frozen; texts are as written, with references to secrets unresolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from magnetar.client.login import ClientLogin
from magnetar.spark.options.login_options import options_of

DEAD_LETTERS: Final = "dead-letters"
"""The name of that output among the sinks."""


class Action(Enum):
    """What happens to a row that does not meet an expectation."""

    DROP = "drop"
    DEAD_LETTER = "dead-letter"
    FAIL = "fail"


class Trigger(Enum):
    """The times at which micro-batches run."""

    CONTINUOUS = "continuous"
    INTERVAL = "interval"
    AVAILABLE_NOW = "available-now"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition that is true for a good row; null counts as not true."""

    name: str
    condition: str
    action: Action
    where: str


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late rows of a source may be, by one of its columns."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class TopicSource:
    """A stream of topics."""

    name: str
    where: str
    options: Mapping[str, str]
    """Options of format("pulsar"), by the names of docs/spark.md, without broker and subscription."""
    subscription: str
    value: str
    """binary, string or json (with ``fields``), decoded here; or schema: decoded by the data source."""
    fields: str
    """The columns of a JSON value, as Spark's DDL."""
    watermark: Watermark | None
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table in any format of Spark, read again in every micro-batch."""

    name: str
    where: str
    format: str
    path: str | None
    fields: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A step that is a query over earlier sources and steps."""

    name: str
    where: str
    sql: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class PythonStep:
    """A step that is a function over earlier sources and steps."""

    name: str
    where: str
    function: str
    """module:function"""
    inputs: tuple[str, ...]
    parameters: Mapping[str, object]
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class TopicSink:
    """A topic that rows are written to, effectively once."""

    name: str
    where: str
    source: str
    """The source or step whose rows these are."""
    topic: str
    columns: Mapping[str, str]
    """value, key, event-time, properties, ordering-key, partition, deliver-at: SQL expressions."""
    options: Mapping[str, str]
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table that rows are written to: parquet, delta or iceberg."""

    name: str
    where: str
    source: str
    format: str
    path: str
    """Absolute, or a URL, or begins with a reference."""
    options: Mapping[str, str]
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainSink:
    """A sink that keeps nothing: console or noop."""

    name: str
    where: str
    source: str
    format: str
    expectations: tuple[Expectation, ...] = ()


Source = TopicSource | TableSource
Step = SqlStep | PythonStep
Sink = TopicSink | TableSink | PlainSink


def target_of(sink: Sink) -> str:
    """Return the topic of a sink, or its format and path."""
    if isinstance(sink, TopicSink):
        return sink.topic
    return f"{sink.format} {sink.path}" if isinstance(sink, TableSink) else sink.format


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A declared pipeline."""

    name: str
    file: str
    service_url: str
    login: ClientLogin
    """How it logs in there, with references to secrets."""
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    dead_letter: str | None
    """The topic."""
    trigger: Trigger
    interval: float
    """Seconds, for Trigger.INTERVAL."""
    output_mode: str
    """append, update or complete: what a step with state gives."""
    checkpoint: str
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def topic_sources(self) -> tuple[TopicSource, ...]:
        return tuple(one for one in self.sources if isinstance(one, TopicSource))

    @property
    def topic_sinks(self) -> tuple[TopicSink, ...]:
        return tuple(one for one in self.sinks if isinstance(one, TopicSink))

    def broker(self) -> dict[str, str]:
        """Return the options of format("pulsar") for the connection; secrets stay references, which workers read."""
        return {"service.url": self.service_url, **options_of(self.login)}
