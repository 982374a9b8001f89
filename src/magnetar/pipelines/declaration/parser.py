"""Parses a file into a `Pipeline`, or reports all of its mistakes at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from magnetar.client.login import UNKNOWN
from magnetar.model.errors import MagnetarError
from magnetar.model.names import TopicName
from magnetar.pipelines.declaration import functions
from magnetar.pipelines.declaration.broker_block import broker_block
from magnetar.pipelines.declaration.collisions import note_collisions
from magnetar.pipelines.declaration.document import InvalidPipelineError, Item, read, text_of
from magnetar.pipelines.declaration.elements import NAME_MAX, sink, source, step, written_topic
from magnetar.pipelines.declaration.model import Pipeline, PythonStep, Sink, Source, Step, TopicSource, Trigger
from magnetar.pipelines.declaration.place import beside, obstacle

KEYS: Final = (
    "name",
    "broker",
    "checkpoint",
    "trigger",
    "output-mode",
    "spark",
    "dead-letter",
    "sources",
    "steps",
    "sinks",
)
_REQUIRED: Final = ("name", "broker", "checkpoint", "sources", "sinks")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
_OUTPUT_MODES: Final = ("append", "update", "complete")


def load(path: Path) -> Pipeline:
    """Read and check a file. Raises InvalidPipelineError with all mistakes."""
    return parse(text_of(path), str(path))


def parse(text: str, file: str) -> Pipeline:
    """Check the text of a file; ``file`` is its path for errors, and relative paths begin in its directory."""
    root = read(text, file)
    items = root.keys(KEYS, required=_REQUIRED)
    name = items["name"].words() if "name" in items else ""
    if len(name) > NAME_MAX:
        items["name"].problem(f"a name of {len(name):,} characters cannot be; it can have {NAME_MAX}")
    elif name and not _NAME.fullmatch(name):
        items["name"].problem(f"{name!r} cannot be a name; letters, digits, '.', '_' and '-' can")
    service_url, login = broker_block(items["broker"], file) if "broker" in items else ("", UNKNOWN)
    dead_letter = _topic(items["dead-letter"]) if "dead-letter" in items else None
    given = items["sources"].entries("sources by name") if "sources" in items else {}
    sources = [source(item, key, name, file, dead_letter is not None) for key, item in given.items()]
    for key, item in given.items():
        if before := next((one for one in given if one.lower() == key.lower() and one != key), None):
            item.problem(f"there is a source {before!r}, too, and SQL makes no difference between cases; rename one")
    known = [one.name for one in sources if one is not None]
    steps: list[Step] = []
    for item in items["steps"].items() if "steps" in items else []:
        made = step(item, known, dead_letter is not None)
        if made is not None and made.name:
            steps.append(made)
            known.append(made.name)
    given_sinks = items["sinks"].entries("sinks by name") if "sinks" in items else {}
    sinks = [sink(item, key, known, file, dead_letter is not None) for key, item in given_sinks.items()]
    _complete(items, [one for one in sources if one], [one for one in sinks if one])
    trigger, interval = _trigger(items["trigger"]) if "trigger" in items else (Trigger.CONTINUOUS, 0.0)
    settings = items["spark"].entries("settings of Spark") if "spark" in items else {}
    for key, item in settings.items():
        if not key.startswith("spark."):
            item.problem(f"{key!r} is no setting of Spark; they begin with 'spark.'")
    pipeline = Pipeline(
        name=name,
        file=file,
        service_url=service_url,
        login=login,
        sources=tuple(one for one in sources if one is not None),
        steps=tuple(steps),
        sinks=tuple(one for one in sinks if one is not None),
        dead_letter=dead_letter,
        trigger=trigger,
        interval=interval,
        output_mode=items["output-mode"].choice(_OUTPUT_MODES) if "output-mode" in items else "append",
        checkpoint=_directory(items["checkpoint"], file) if "checkpoint" in items else "",
        spark={key: item.text(empty=True) for key, item in settings.items()},
    )
    note_collisions(root, pipeline)
    if root.problems:
        raise InvalidPipelineError(root.problems)
    return pipeline


def problems_of_functions(pipeline: Pipeline) -> list[str]:
    """Import the Python steps and return what is wrong with them."""
    functions.make_findable(Path(pipeline.file).parent)
    found = []
    for one in pipeline.steps:
        if isinstance(one, PythonStep):
            try:
                wrong = functions.problem_of_call(functions.find(one.function), len(one.inputs), one.parameters)
            except MagnetarError as error:
                wrong = str(error)
            if wrong:
                found.append(f"{one.where}: steps.{one.name}.python: {wrong}")
    return found


def _complete(items: dict[str, Item], sources: list[Source], sinks: list[Sink]) -> None:
    if "sources" in items and not any(isinstance(one, TopicSource) for one in sources):
        items["sources"].problem("there is no source with a topic, so there is nothing to stream")
    if "sinks" in items and items["sinks"].is_mapping and not sinks:
        items["sinks"].problem("there is no sink; {format: noop} is one that keeps nothing")
    taken: dict[str, str] = {}
    for one in sources:
        if isinstance(one, TopicSource):
            if one.subscription in taken:
                items["sources"].problem(
                    f"{taken[one.subscription]} and {one.name} have one subscription, {one.subscription!r}; "
                    "each source needs its own"
                )
            taken[one.subscription] = one.name


def _topic(item: Item) -> str:
    text = written_topic(item)
    return TopicName.parse(text).fqn if text else ""


def _trigger(item: Item) -> tuple[Trigger, float]:
    if item.is_mapping:
        parts = item.keys(("interval",), required=("interval",))
        return Trigger.INTERVAL, parts["interval"].seconds() if "interval" in parts else 0.0
    words = [one.value for one in Trigger if one is not Trigger.INTERVAL]
    text = item.text()
    if text and text not in words:
        item.problem(f"{text!r} is no trigger; it can be {', '.join(words)}, or {{interval: 10 s}}")
        return Trigger.CONTINUOUS, 0.0
    return Trigger(text or Trigger.CONTINUOUS.value), 0.0


def _directory(item: Item, file: str) -> str:
    text = item.words()
    if "://" in text and not text.startswith("file://"):
        item.problem(
            f"{text!r}: manifests are kept beside Spark's own checkpoint, in a directory that this machine can write"
        )
    text = text.removeprefix("file://")
    if wrong := obstacle(beside(file, text)):
        item.problem(f"{text!r} cannot be a directory: {wrong}; name another place")
    return str((Path(file).parent / text).resolve()) if text else ""
