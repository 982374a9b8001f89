"""From YAML to a pipeline; every mistake at its place, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.pipelines.command import app
from magnetar.pipelines.declared import KEYS, load, parse, problems_of_functions
from magnetar.pipelines.document import InvalidPipelineError
from magnetar.pipelines.elements import SINK_COLUMNS
from magnetar.pipelines.model import Action, PythonStep, SqlStep, TableSource, TopicSink, TopicSource, Trigger
from tests.unit.pipelines.example import TEXT, changed


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidPipelineError) as caught:
        parse(text, "f.yaml")
    return str(caught.value).splitlines()


def test_the_whole(tmp_path: Path) -> None:
    pipeline = parse(TEXT, str(tmp_path / "f.yaml"))
    flights, airports = pipeline.sources
    assert isinstance(flights, TopicSource) and isinstance(airports, TableSource)
    assert flights.options == {"topic": "flights", "startingOffsets": "earliest"}
    assert (flights.subscription, flights.value) == ("small.flights", "json")
    assert [(one.name, one.action) for one in flights.expectations] == [("known", Action.DEAD_LETTER)]
    assert isinstance(pipeline.steps[0], SqlStep)
    (out,) = pipeline.sinks
    assert isinstance(out, TopicSink) and out.source == "late"
    assert pipeline.dead_letter == "persistent://public/default/dead"
    assert pipeline.checkpoint == str(tmp_path / "work")
    assert (pipeline.trigger, pipeline.output_mode) == (Trigger.CONTINUOUS, "append")


@pytest.mark.parametrize(
    ("old", "new", "where", "told"),
    [
        ("    topic: flights\n", "    topc: flights\n", "f.yaml:8:11: sources.flights.topc", "did you mean 'topic'?"),
        ("startingOffsets: earliest", "startingOffsets: erliest", "f.yaml:9:22: sources.flights", "is no offset"),
        ("otherwise: dead-letter", "otherwise: dead", "sources.flights.expect.known.otherwise", "it can be drop"),
        ("dead-letter: dead\n", "", "sources.flights.expect.known.otherwise", "add the key 'dead-letter'"),
        ("    fields: origin STRING, delay BIGINT\n", "", "f.yaml:8:5: sources.flights", "needs 'fields'"),
        ("FROM flights JOIN", "FROM fligths JOIN", "f.yaml:19:10: steps[0].sql", "did you mean 'flights'?"),
        ("    topic: late\n", "    topic: late\n    from: lat\n", "sinks.out.from", "did you mean 'late'?"),
        ("  service.url: pulsar://", "  service.url: http://", "f.yaml:3:16: broker.service.url", "unknown scheme"),
        ("checkpoint: work", "checkpoint: s3://bucket/x", "f.yaml:4:13: checkpoint", "directory"),
        ("name: small", "nome: small", "f.yaml:1:7: nome", "did you mean 'name'?"),
        ("  - name: late\n", "  - name: flights\n", "steps[0].name", "earlier source or step"),
        ("    topic: late\n", "    format: parket\n    path: x\n", "sinks.out.format", "it can be parquet"),
        ("    topic: late\n", "    format: parquet\n", "sinks.out", "needs 'path'"),
        (
            "    topic: late\n",
            "    format: delta\n    path: x\n    options: {partitionColums: a}\n",
            "f.yaml:24:14: sinks.out.options",
            "did you mean 'partitionColumns'?",
        ),
        ("dead-letter: dead\n", "dead-letter: dead\ntrigger: {interval: 10 parsecs}\n", "trigger.interval", "10 s"),
        ("dead-letter: dead\n", "dead-letter: dead\ntrigger: now\n", "f.yaml:6:10: trigger", "available-now"),
        ("dead-letter: dead\n", "dead-letter: dead\ndead-letter: x\n", "f.yaml:6:1: dead-letter", "twice"),
        ("    topic: flights\n", "    topic:\n", "sources.flights.topic", "there is no value"),
        ("    topic: late\n", "    topic: late\n    delivery: at-least-once\n", "sinks.out.delivery", "not known here"),
        ("  airports:", "  flights2: {topic: flights, subscription: small.flights}\n  airports:", "sources", "its own"),
        ("sinks:\n  out:\n    topic: late\n", "sinks: {}\n", "f.yaml:20:8: sinks", "{format: noop}"),
    ],
)
def test_a_mistake(old: str, new: str, where: str, told: str) -> None:
    found = problems(changed(old, new))
    assert any(where in line and told in line for line in found), found


def test_several_mistakes_at_once() -> None:
    text = changed("otherwise: dead-letter", "otherwise: dead").replace("topic: late", "tpic: late")
    found = problems(text)
    assert len(found) >= 2
    assert all(line.startswith("f.yaml:") for line in found)


def test_what_is_no_yaml_says_where() -> None:
    assert problems("name: [\n")[0].startswith("f.yaml:2:1: this is no YAML")
    assert "empty" in problems("# nothing\n")[0]


@pytest.mark.parametrize("token", ["abc", "${env:}", "${vault:x}"])
def test_a_token_is_a_reference(token: str) -> None:
    text = changed("  service.url: pulsar://localhost:6650\n", f"  service.url: pulsar://h\n  token: '{token}'\n")
    assert "broker.token" in problems(text)[0]


def test_sql_may_use_names_of_its_own() -> None:
    text = changed(
        "SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60",
        "WITH fligths AS (SELECT * FROM flights) SELECT EXTRACT(YEAR FROM t), 'FROM flight' FROM fligths",
    )
    assert parse(text, "f.yaml").steps


def python_step(call: str, directory: Path, more: str = "") -> list[str]:
    text = changed(
        "    sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60\n", f"    {call}\n{more}"
    )
    pipeline = parse(text, str(directory / "f.yaml"))
    assert isinstance(pipeline.steps[0], PythonStep)
    return problems_of_functions(pipeline)


def test_functions(tmp_path: Path) -> None:
    (tmp_path / "cleaning_steps.py").write_text("def clean(df, least=0):\n    return df\n")
    (tmp_path / "broken_steps.py").write_text("1 / 0\n")
    assert python_step("python: cleaning_steps:clean", tmp_path, "    with: {least: 5}\n") == []
    (told,) = python_step("python: cleaning_steps:cleam", tmp_path)
    assert "steps.late.python" in told and "did you mean 'clean'?" in told
    assert "no module cleaning" in python_step("python: cleaning:clean", tmp_path)[0]
    assert "ZeroDivisionError" in python_step("python: broken_steps:x", tmp_path)[0]
    (told,) = python_step(
        "python: cleaning_steps:clean", tmp_path, "    from: [flights, airports]\n    with: {last: 5}\n"
    )
    assert "cannot be called with 2 DataFrames and last" in told


def test_parameters_keep_their_types(tmp_path: Path) -> None:
    more = "    with: {a: 5, b: true, c: [1.5, x], d: {e: null}}\n"
    text = changed(
        "    sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60\n", "    python: m:f\n" + more
    )
    (step,) = parse(text, str(tmp_path / "f.yaml")).steps
    assert isinstance(step, PythonStep)
    assert step.parameters == {"a": 5, "b": True, "c": [1.5, "x"], "d": {"e": None}}


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("file", sorted((ROOT / "examples/pipelines").glob("*.yaml")), ids=lambda file: file.name)
def test_examples_are_valid(file: Path) -> None:
    assert not problems_of_functions(load(file))


def test_every_word_is_documented() -> None:
    document = (ROOT / "docs/pipelines.md").read_text()
    commands = [f"magnetar pipeline {one.callback.__name__} FILE" for one in app.registered_commands if one.callback]
    words = [
        *KEYS,
        *SINK_COLUMNS,
        *(one.value for one in (*Action, *Trigger)),
        *commands,
        "watermark",
        "fields",
        "with",
    ]
    assert len(commands) == 6
    assert [word for word in words if word not in document] == []


def test_the_command_tells_all_mistakes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(changed("otherwise: dead-letter", "otherwise: dead").replace("topic: late", "tpic: late"))
    with pytest.raises(SystemExit) as ended:
        app(["check", str(file)])
    assert ended.value.code == 2
    assert len(capfd.readouterr().err.splitlines()) >= 2
    file.write_text(TEXT)
    with pytest.raises(SystemExit) as ended:
        app(["check", str(file)])
    assert ended.value.code == 0
    assert "pipeline small with 2 sources, 1 steps and 1 sinks is valid" in capfd.readouterr().out
