"""Parses sources, steps, sinks and expectations of a document; every mistake is noted at its place.

Options of ``format("pulsar")`` stand beside the pipeline's own keys, under the names of docs/spark.md, and are checked
by the same code that the data source uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from magnetar.columnar.arrow_decoder import METADATA, chosen_columns
from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.model.errors import MagnetarError
from magnetar.model.names import TopicName
from magnetar.pipelines.declaration.ddl import TIMES, DdlColumn, DdlError, columns_of, problem_of_interval
from magnetar.pipelines.declaration.document import Item, nearest
from magnetar.pipelines.declaration.functions import problem_of_name
from magnetar.pipelines.declaration.model import (
    DEAD_LETTERS,
    Action,
    Expectation,
    PlainSink,
    PythonStep,
    Sink,
    Source,
    SqlStep,
    Step,
    TableSink,
    TableSource,
    TopicSink,
    TopicSource,
    Watermark,
)
from magnetar.pipelines.declaration.place import beside
from magnetar.pipelines.declaration.secrets import is_reference, problem_of
from magnetar.pipelines.declaration.source_columns import kinds_of
from magnetar.spark.options.login_options import LOGIN_TITLES
from magnetar.spark.options.option_list import OPTIONS
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import check_selected
from magnetar.spark.options.value_options import KINDS

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINK_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_OURS: Final = frozenset(
    {
        *("service.url", "endingoffsets", "endingtime", "ondecodeerror", "pushdownfilters"),
        *("delivery", "txnappid", "txnversion", "staging", "repeatable"),
        *(title.lower() for title in LOGIN_TITLES),
    }
)
"""Options of format("pulsar") that the pipeline sets itself."""
SINK_COLUMNS: Final = {
    "value": "value",
    "key": "__key",
    "event-time": "__eventTime",
    "properties": "__messageProperties",
    "ordering-key": "__orderingKey",
    "partition": "__partition",
    "deliver-at": "__deliverAt",
}
"""Keys of a topic sink, and the columns of docs/spark.md that they set."""
VERIFY_KEY: Final = "decryption.privateKey"
"""Key of a topic sink with which `verify` opens what the sink has encrypted."""
NAME_MAX: Final = 200
"""Characters; names become subscriptions, producers and directories."""
UNKEPT: Final = (
    "keeps no messages, so nothing of it could be written effectively once, read again or proven; "
    "name a persistent:// topic"
)
"""What is wrong with a topic that is not persistent."""
_KEYS: Final = (VERIFY_KEY, "encryption.publicKey")
_WORDS: Final = frozenset({"path", "format", "topic", "topics", "topicsPattern", "subscription"})
"""Keys whose values must be text."""
_FORMATS: Final = ("parquet", "delta", "iceberg", "noop", "console")
_NEXT_TO_FROM: Final = re.compile(r"\b(?:FROM|JOIN)\s+([A-Za-z_]\w*)\b(?!\s*[.(`])", re.IGNORECASE)
_SAID_BEFORE: Final = re.compile(r"\b([A-Za-z_]\w*)\s+AS\s*\(", re.IGNORECASE)
_QUERY: Final = re.compile(r"[\s(]*(?:SELECT|WITH|FROM|VALUES|TABLE|MAP|REDUCE)\b", re.IGNORECASE)
_NOT_SQL: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def pulsar_keys(side: str) -> list[str]:
    """Return the options that may stand beside the keys of a topic source or sink."""
    return [
        option.title
        for key, option in OPTIONS.items()
        if key not in _OURS and (option.source if side == "source" else option.sink)
    ]


def _texts(items: Mapping[str, Item], names: Iterable[str], *, empty: bool = False) -> dict[str, str]:
    found = {}
    for name in names:
        if name in items:
            found[name] = items[name].words() if name in _WORDS else items[name].text(empty=empty)
            if wrong := problem_of(found[name]):
                items[name].problem(wrong)
    return found


def written_topic(item: Item) -> str:
    """Return the topic of an output; empty, and noted, if it cannot be one."""
    topic = item.words()
    if "${" in topic:
        item.problem(f"{topic!r}: an output's topic is written out, since manifests and `verify` name it")
        return ""
    try:
        if topic and not TopicName.parse(topic).persistent:
            item.problem(f"{topic!r} {UNKEPT}")
            return ""
    except MagnetarError as error:
        item.problem(f"{topic!r} is no topic: {error}")
        return ""
    return topic


def _any_texts(items: Mapping[str, Item], key: str) -> dict[str, str]:
    given = items[key].entries("options and their values") if key in items else {}
    # Options of Spark's own formats may be empty: a delimiter, the text that stands for null.
    return _texts(given, given, empty=True)


def _checked_name(item: Item, name: str, pattern: re.Pattern[str]) -> None:
    if len(name) > NAME_MAX:
        item.problem(f"a name of {len(name):,} characters cannot be; it can have {NAME_MAX}")
    elif not pattern.fullmatch(name):
        item.problem(f"{name!r} cannot be a name; letters, digits and _ can, and it is used as a table's name in SQL")


def expectations(items: Mapping[str, Item], dead_letter: bool) -> tuple[Expectation, ...]:
    """Parse the key ``expect``: names with ``that`` and ``otherwise``."""
    found = []
    for name, item in (items["expect"].entries("expectations by name") if "expect" in items else {}).items():
        parts = item.keys(("that", "otherwise"), required=("that", "otherwise"))
        if not re.fullmatch(r"[\w .-]+", name):
            item.problem(f"{name!r} cannot be a name; letters, digits, spaces, '.', '_' and '-' can")
        if len(parts) == 2:
            action = Action(parts["otherwise"].choice([one.value for one in Action]))
            if action is Action.DEAD_LETTER and not dead_letter:
                parts["otherwise"].problem("there is no dead-letter topic; add the key 'dead-letter' to the pipeline")
            found.append(Expectation(name, parts["that"].text(), action, parts["that"].where))
    return tuple(found)


def source(item: Item, name: str, pipeline: str, file: str, dead_letter: bool) -> Source | None:
    """Parse one of ``sources``; None if it cannot be."""
    _checked_name(item, name, _NAME)
    if not item.is_mapping:
        item.problem("a source is a mapping, for instance with 'topic'")
        return None
    given = item.entries("a source's keys")
    if "format" in given and given["format"].text() != "pulsar":
        return _table_source(item, name, file)
    return _topic_source(item, name, pipeline, dead_letter)


def _table_source(item: Item, name: str, file: str) -> TableSource:
    items = item.keys(("format", "path", "fields", "options"), required=("format",))
    texts = _texts(items, ("format", "path", "fields"))
    if "fields" in items:
        _columns(items["fields"])
    return TableSource(
        name,
        item.where,
        texts.get("format", ""),
        beside(file, texts["path"]) if "path" in texts else None,
        texts.get("fields", ""),
        _any_texts(items, "options"),
    )


def _topic_source(item: Item, name: str, pipeline: str, dead_letter: bool) -> TopicSource:
    titles = pulsar_keys("source")
    items = item.keys(("format", *titles, "fields", "watermark", "expect"))
    options = _texts(items, [title for title in titles if title not in ("value", "subscription")])
    value = items["value"].choice(KINDS) if "value" in items else "binary"
    fields = items["fields"].text() if "fields" in items else ""
    columns = _columns(items["fields"]) if fields else None
    if value == "json" and not fields and "valueSchema" not in options:
        item.problem("value: json needs 'fields', the columns of the JSON, for instance: origin STRING, delay BIGINT")
    if value not in ("binary", "string") and not (value == "json" and fields):
        options["value"], value = value, "schema"
    if fields and value != "json":
        items["fields"].problem("'fields' belongs to value: json")
    watermark = None
    if "watermark" in items:
        parts = items["watermark"].keys(("column", "delay"), required=("column", "delay"))
        if len(parts) == 2:
            watermark = Watermark(parts["column"].words(), parts["delay"].text())
            known = None if value == "schema" or (fields and columns is None) else columns or []
            _check_watermark(parts, watermark, known, value, options.get("metadata", ""))
    subscription = items["subscription"].words() if "subscription" in items else f"{pipeline}.{name}"
    given = {"service.url": "pulsar://checked-elsewhere:6650", "subscription": subscription}
    try:
        found = source_options(given | _without_hidden_keys(options))
        chosen_columns(options.get("metadata", ""))
        if found.starting is not None:
            check_selected(found.starting.exceptions, found.topics, "startingOffsets")
        for one in (*found.topics.names, *(one for one, _ in found.topics.partitions)):
            if not TopicName.parse(one).persistent:
                _at_option(item, items, f"{one!r} {UNKEPT}")
    except MagnetarError as error:
        _at_option(item, items, str(error))
    return TopicSource(
        name, item.where, options, subscription, value, fields, watermark, expectations(items, dead_letter)
    )


def _columns(item: Item) -> list[DdlColumn] | None:
    """Parse a column list; None, and noted, if it is none."""
    text = item.text()
    try:
        found = columns_of(text) if text else None
    except DdlError as error:
        item.problem(str(error))
        return None
    for one in found or ():
        if one.name in METADATA:
            item.problem(f"{one.name!r} is a column of the message itself (docs/spark.md); choose another name")
    return found


def _check_watermark(
    parts: Mapping[str, Item], given: Watermark, columns: list[DdlColumn] | None, value: str, metadata: str
) -> None:
    """Check a watermark's column and delay; ``columns`` are those of the value, None if they are unknown here."""
    if given.delay and (wrong := problem_of_interval(given.delay)):
        parts["delay"].problem(wrong)
    if columns is None or not given.column:
        return
    try:
        kinds = kinds_of(columns, value, metadata)
    except MagnetarError:
        # It is reported at the option.
        return
    by_name = {name.lower(): name for name in kinds}
    first = given.column.split(".")[0].strip("`").lower()
    if first not in by_name:
        parts["column"].problem(f"there is no column {given.column!r}; {nearest(given.column, kinds)}")
    elif "." not in given.column and kinds[by_name[first]] not in TIMES:
        parts["column"].problem(
            f"{given.column!r} is {kinds[by_name[first]].upper()}, and a watermark needs a TIMESTAMP"
        )


def _without_hidden_keys(options: Mapping[str, str]) -> dict[str, str]:
    """Leave out keys that are references, which cannot be checked yet; other options take the reference as text."""
    return {title: text for title, text in options.items() if not (title in _KEYS and is_reference(text))}


def _at_option(item: Item, items: Mapping[str, Item], text: str) -> None:
    """Note a mistake at the option that the data source's error names, else at the whole item."""
    named = next((one for title, one in items.items() if f"'{title}'" in text), None)
    scalars = (one for one in items.values() if one.is_scalar)
    named = named or next((one for one in scalars if repr(one.text()) in text), None)
    (named or items.get("topic") or item).problem(text)


def step(item: Item, known: list[str], dead_letter: bool) -> Step | None:
    """Parse one of ``steps``; ``known`` are the names that its SQL may use."""
    items = item.keys(("name", "sql", "python", "from", "with", "expect"), required=("name",))
    name = items["name"].text() if "name" in items else ""
    if name:
        _checked_name(items["name"], name, _NAME)
        if before := next((one for one in known if one.lower() == name.lower()), None):
            items["name"].problem(
                f"{before!r} is the name of an earlier source or step, and SQL makes no difference between cases; "
                "choose another"
            )
    if ("sql" in items) == ("python" in items):
        item.problem("a step has either 'sql' or 'python'")
        return None
    expected = expectations(items, dead_letter)
    if "sql" in items:
        for key in ("from", "with"):
            if key in items:
                items[key].problem(f"{key!r} belongs to python steps; SQL names what it reads itself")
        text = items["sql"].words()
        sql = text.rstrip("; \n")
        if text and not _QUERY.match(_NOT_SQL.sub(" ", sql)):
            items["sql"].problem("a step's SQL is a query, which begins with SELECT, WITH, FROM, VALUES or TABLE")
        for name_used in _unknown_tables(sql, known):
            items["sql"].problem(
                f"it reads {name_used!r}, which is no source or earlier step; {nearest(name_used, known)}"
            )
        return SqlStep(name, items["sql"].where, sql, expected)
    inputs = items["from"].texts() if "from" in items else known[-1:]
    for one in inputs:
        if one and one not in known:
            items["from"].problem(f"{one!r} is no source or earlier step; {nearest(one, known)}")
    given = items["with"].entries("parameters") if "with" in items else {}
    function = items["python"].words()
    if function and (wrong := problem_of_name(function)):
        items["python"].problem(wrong)
    return PythonStep(
        name, items["python"].where, function, tuple(inputs), {key: one.plain() for key, one in given.items()}, expected
    )


def _unknown_tables(sql: str, known: list[str]) -> list[str]:
    """Return names after FROM and JOIN that look like a misspelt known one; others may be Spark's own tables."""
    text = _NOT_SQL.sub(" ", sql)
    local = {one.lower() for one in (*known, *_SAID_BEFORE.findall(text))}
    used = dict.fromkeys(_NEXT_TO_FROM.findall(text))
    return [name for name in used if name.lower() not in local and nearest(name, known).startswith("did you")]


def sink(item: Item, name: str, known: list[str], file: str, dead_letter: bool) -> Sink | None:
    """Parse one of ``sinks``."""
    _checked_name(item, name, _SINK_NAME)
    if name == DEAD_LETTERS:
        item.problem(f"{name!r} is the name of the dead-letter topic's own output; choose another")
    given = item.entries("a sink's keys")
    titles = [title for title in pulsar_keys("sink") if title != "topic"] + [VERIFY_KEY]
    two: list[str] = [key for key in ("path", "options") if key in given] if "topic" in given else []
    if "topic" in given and "format" in given and given["format"].text() != "pulsar":
        two.append("format")
    if two:
        item.problem(
            f"{name!r} is two things: 'topic' makes it a topic, and {' and '.join(map(repr, two))} "
            f"{'makes' if len(two) == 1 else 'make'} it a table; make two sinks"
        )
        return None
    is_topic = "topic" in given or ("format" in given and given["format"].text() == "pulsar")
    keys = (
        ("from", "format", "topic", *SINK_COLUMNS, *titles, "expect")
        if is_topic
        else ("from", "format", "path", "options", "expect")
    )
    items = item.keys(keys, required=("topic",) if is_topic else ("format",))
    start = items["from"].text() if "from" in items else (known[-1] if known else "")
    if start and start not in known:
        items["from"].problem(f"{start!r} is no source or step; {nearest(start, known)}")
    expected = expectations(items, dead_letter)
    if is_topic:
        return _topic_sink(item, items, name, start, titles, expected)
    if "format" not in items:
        return None
    form = items["format"].choice(_FORMATS)
    if form in ("noop", "console"):
        for key in ("path", "options"):
            if key in items:
                items[key].problem(f"{key!r} has no meaning for {form}")
        return PlainSink(name, item.where, start, form, expected)
    if "path" not in items:
        item.problem(f"a sink of format {form} needs 'path'")
    path = beside(file, _texts(items, ("path",)).get("path", ""))
    options = _any_texts(items, "options")
    for key in [key for key in options if key.lower() in ("txnappid", "txnversion")]:
        items["options"].problem(f"{key!r} is set by the pipeline itself; remove it")
    try:
        lake_options(TableKind(form), {**options, "path": path or "checked elsewhere"})
    except MagnetarError as error:
        (items.get("options") or item).problem(str(error))
    return TableSink(name, item.where, start, form, path, options, expected)


def _topic_sink(
    item: Item, items: Mapping[str, Item], name: str, start: str, titles: list[str], expected: tuple[Expectation, ...]
) -> TopicSink:
    topic = written_topic(items["topic"]) if "topic" in items else ""
    options = _texts(items, titles)
    given = {"service.url": "pulsar://checked-elsewhere:6650", "topic": topic}
    try:
        if topic:
            open_options = _without_hidden_keys(options)
            sink_options(given | {title: text for title, text in open_options.items() if title != VERIFY_KEY})
            if VERIFY_KEY in open_options:
                source_options(given | {VERIFY_KEY: open_options[VERIFY_KEY]})
    except MagnetarError as error:
        _at_option(item, items, str(error))
    return TopicSink(name, item.where, start, topic, _texts(items, SINK_COLUMNS), options, expected)
