"""A YAML file becomes a pipeline; every mistake is reported at its place, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.command import app
from magnetar.pipelines.declaration.document import InvalidPipelineError
from magnetar.pipelines.declaration.elements import SINK_COLUMNS
from magnetar.pipelines.declaration.model import (
    Action,
    PythonStep,
    SqlStep,
    TableSink,
    TableSource,
    TopicSink,
    TopicSource,
    Trigger,
)
from magnetar.pipelines.declaration.parser import KEYS, load, parse, problems_of_functions
from magnetar.pipelines.execution.outputs import table_options
from magnetar.pipelines.execution.progress import outline
from tests.unit.pipelines.example import TEXT, changed


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidPipelineError) as caught:
        parse(text, "f.yaml")
    return str(caught.value).splitlines()


def test_a_whole_file_is_parsed(tmp_path: Path) -> None:
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
    ("old", "new", "where", "problem"),
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
def test_a_mistake_is_reported_at_its_place(old: str, new: str, where: str, problem: str) -> None:
    found = problems(changed(old, new))
    assert any(where in line and problem in line for line in found), found


def test_relative_places_begin_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "elsewhere").mkdir()
    text = changed("    topic: late\n", "    format: parquet\n    path: PLACE\n")
    places = {
        "table": f"{tmp_path}/files/table",
        "../table": f"{tmp_path}/table",
        "/lake/table/": "/lake/table/",
        "s3://bucket/table": "s3://bucket/table",
        "${env:LAKE}/table": "${env:LAKE}/table",
    }
    monkeypatch.chdir(tmp_path / "elsewhere")
    for given, place in places.items():
        pipeline = parse(text.replace("PLACE", given), "../files/f.yaml")
        (out,) = pipeline.sinks
        assert isinstance(out, TableSink) and out.path == place
        assert isinstance(pipeline.sources[1], TableSource)
        assert (pipeline.sources[1].path, pipeline.checkpoint) == (
            f"{tmp_path}/files/airports.csv",
            f"{tmp_path}/files/work",
        )
        assert f"  sink out: late to parquet {place}" in outline(pipeline)


def test_a_place_behind_a_reference_is_resolved_and_must_be_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    text = changed("    topic: late\n", "    format: parquet\n    path: ${env:LAKE}/table\n")
    (out,) = parse(text, "f.yaml").sinks
    assert isinstance(out, TableSink)
    monkeypatch.setenv("LAKE", "/lake")
    assert table_options(out).path == "/lake/table"
    monkeypatch.setenv("LAKE", "lake")
    with pytest.raises(InvalidValueError, match=r"sinks\.out\.path: .* is 'lake/table', a relative path"):
        table_options(out)


@pytest.mark.parametrize("value", ["2013-99-99", "9" * 5000, "!!python/name:os.system x"])
def test_a_parameter_that_is_no_value_is_a_mistake_at_its_place(value: str) -> None:
    step = f"  - name: late\n    python: some:function\n    with: {{x: {value}}}\nunused:\n"
    text = changed("  - name: late\n", step)
    assert any("steps[0].with.x: " in line and "is no value" in line for line in problems(text))


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


def test_wrong_functions_are_reported(tmp_path: Path) -> None:
    (tmp_path / "cleaning_steps.py").write_text("def clean(df, least=0):\n    return df\n")
    (tmp_path / "broken_steps.py").write_text("1 / 0\n")
    assert python_step("python: cleaning_steps:clean", tmp_path, "    with: {least: 5}\n") == []
    (problem,) = python_step("python: cleaning_steps:cleam", tmp_path)
    assert "steps.late.python" in problem and "did you mean 'clean'?" in problem
    assert "no module cleaning" in python_step("python: cleaning:clean", tmp_path)[0]
    assert "ZeroDivisionError" in python_step("python: broken_steps:x", tmp_path)[0]
    (problem,) = python_step(
        "python: cleaning_steps:clean", tmp_path, "    from: [flights, airports]\n    with: {last: 5}\n"
    )
    assert "cannot be called with 2 DataFrames and last" in problem


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


def test_the_command_reports_all_mistakes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
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


STREAM = "    topic: flights\n"
OUT = "    topic: late\n"
FIELDS = "origin STRING, delay BIGINT"
SQL = "    sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60\n"


@pytest.mark.parametrize(
    ("old", "new", "where", "problem"),
    [
        # In a circle, or into one place.
        (OUT, "    topic: flights\n", "f.yaml:22:12: sinks.out.topic", "source flights reads this topic"),
        (OUT, "    topic: persistent://public/default/flights-partition-3\n", "sinks.out.topic",
         "feed itself for ever"),
        (STREAM, "    topicsPattern: la.*\n", "sinks.out.topic", "source flights reads this topic"),
        (STREAM, "    topics: a, late\n", "sinks.out.topic", "source flights reads this topic"),
        (STREAM, "    assign: '{\"late\": [0]}'\n", "sinks.out.topic", "source flights reads this topic"),
        ("dead-letter: dead\n", "dead-letter: flights\n", "f.yaml:5:14: dead-letter", "come back for ever"),
        ("dead-letter: dead\n", "dead-letter: late\n", "f.yaml:5:14: dead-letter", "sink out writes this topic, too"),
        (OUT, "    format: delta\n    path: airports.csv\n", "f.yaml:23:11: sinks.out.path",
         "source airports reads this"),
        (OUT, "    format: delta\n    path: WORK\n", "sinks.out.path", "the checkpoint"),
        (
            OUT,
            "    format: delta\n    path: /x/t\n  two:\n    format: iceberg\n    path: /x/y/../t/\n",
            "f.yaml:26:11: sinks.two.path",
            "sink out keeps a table of format delta there",
        ),
        (OUT, "    topic: late\n    from: airports\n", "f.yaml:23:11: sinks.out.from", "'airports' is a table"),
        # Two things, or nothing that could be.
        (OUT, "    topic: late\n    format: delta\n    path: x\n", "f.yaml:22:5: sinks.out", "is two things"),
        (OUT, "    topic: late\n    format: parquet\n", "f.yaml:22:5: sinks.out", "'format' makes it a table"),
        (OUT, "    topic: late\n    path: x\n", "f.yaml:22:5: sinks.out", "'path' makes it a table"),
        (OUT, "    format: delta\n    path: 7\n", "f.yaml:23:11: sinks.out.path", "7 is a number; write it in quotes"),
        (OUT, "    format: delta\n    path: yes\n", "sinks.out.path", "yes is yes or no"),
        (OUT, "    topic: 2013-01-01\n", "sinks.out.topic", "is a date"),
        (STREAM, "    topic: 3.5\n", "f.yaml:8:12: sources.flights.topic", "3.5 is a number"),
        ("name: small", "name: 12", "f.yaml:1:7: name", "12 is a number"),
        ("checkpoint: work", "checkpoint: 1", "f.yaml:4:13: checkpoint", "1 is a number"),
        (SQL, "    sql: 5\n", "steps[0].sql", "5 is a number"),
        (SQL, "    sql: DROP TABLE flights\n", "f.yaml:19:10: steps[0].sql", "a step's SQL is a query"),
        (SQL, "    sql: \"INSERT INTO x SELECT * FROM flights\"\n", "steps[0].sql", "begins with SELECT"),
        # Columns and times.
        (FIELDS, "origin STRING, delay BIGNT", "f.yaml:11:13: sources.flights.fields", "did you mean 'bigint'?"),
        (FIELDS, "origin STRING delay BIGINT", "sources.flights.fields", "a comma separates columns"),
        (FIELDS, "origin STRING, __key BINARY", "sources.flights.fields", "a column of the message itself"),
        (FIELDS, "origin STRING, Origin INT", "sources.flights.fields", "twice"),
        ("    path: airports.csv\n", "    path: airports.csv\n    fields: faa STRNG\n", "sources.airports.fields",
         "'string'?"),
        (STREAM, STREAM + "    watermark: {column: tme, delay: 1 hour}\n",
         "f.yaml:9:25: sources.flights.watermark.column",
         "there is no column 'tme'"),
        (STREAM, STREAM + "    watermark: {column: dely, delay: 1 hour}\n", "watermark.column",
         "did you mean 'delay'?"),
        (STREAM, STREAM + "    watermark: {column: delay, delay: 1 hour}\n", "watermark.column", "needs a TIMESTAMP"),
        (STREAM, STREAM + "    watermark: {column: __publishTime, delay: 1 fortnight}\n",
         "f.yaml:9:47: sources.flights.watermark.delay", "'fortnight' in '1 fortnight' is no unit of time"),
        (STREAM, STREAM + "    watermark: {column: __publishTime, delay: -1 hour}\n", "watermark.delay", "from 0 on"),
        (STREAM, STREAM + "    watermark: __publishTime\n", "sources.flights.watermark", "must be a mapping"),
        (STREAM, STREAM + "    metadata: __key, __tpic\n", "sources.flights", "__tpic"),
        ("dead-letter: dead\n", "dead-letter: dead\ntrigger: {interval: 5 mn}\n", "trigger.interval",
         "did you mean 'min'?"),
        ("dead-letter: dead\n", "dead-letter: dead\nspark: {master: local}\n", "f.yaml:6:17: spark.master",
         "begin with 'spark.'"),
        # Shapes.
        ("sources:\n", "sources:\n  - flights\nsurces:\n", "surces", "did you mean 'sources'?"),
        ("steps:\n  - name: late\n", "steps:\n  late:\n    name: late\n", "steps", "must be a list"),
        ("    topic: late\n", "    topic: [late]\n", "sinks.out.topic", "must be a single value"),
    ],
)  # fmt: skip
def test_absurd_documents_are_refused_at_their_place(
    old: str, new: str, where: str, problem: str, tmp_path: Path
) -> None:
    found = problems(changed(old, new.replace("WORK", str(Path("work").absolute()))))
    assert any(where in line and problem in line for line in found), found


def test_a_small_file_that_means_a_huge_one_is_refused() -> None:
    layers = "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    text = changed(SQL, "    python: m:f\n    with:\n      x: *a11\n")
    (found,) = [one for one in problems(f"spark:\n  a0: &a0 [1]\n{layers}\n{text}") if ".with" in one]
    assert "steps[0].with.x: there are more than 10,000 values" in found
    (found,) = problems(changed(SQL, "    python: m:f\n    with: {x: &x [*x]}\n"))
    assert "nested too deeply" in found


def test_what_only_looks_absurd_is_valid() -> None:
    for old, new in (
        (OUT, "    format: delta\n    path: '7'\n"),
        (STREAM, STREAM + "    watermark: {column: __publishTime, delay: 1 hour 30 minutes}\n"),
        (FIELDS, "origin STRING, delay BIGINT, t TIMESTAMP_NTZ, s STRUCT<t:TIMESTAMP>"),
        (SQL, '    sql: "/* a */ (WITH x AS (SELECT 1) SELECT * FROM flights)"\n'),
        (STREAM, "    topicsPattern: public/other/la.*\n"),
    ):
        parse(changed(old, new), "f.yaml")
