"""`magnetar sql` over topics of a broker: tables, columns, ends, forms, and that nothing is left behind."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import Server
from typer.testing import CliRunner

import magnetar
from magnetar.cli.messages.produce import command as produce
from magnetar.cli.sql import command
from magnetar.client.rest import Rest
from tests.support.encrypted_entries import pair
from tests.support.snippets import commands, snippets


class Sale(pulsar.schema.Record):  # type: ignore[misc]  # the same
    shop = pulsar.schema.String()
    amount = pulsar.schema.Integer()


@pytest.fixture
def query(server: Server) -> Any:
    def called(text: str, *arguments: str) -> Any:
        return CliRunner().invoke(command.app, [text, "--url", server.broker_url, *arguments])

    return called


def rows(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_fields_of_a_schema(server: Server, client: Any, query: Any, topic: str, tmp_path: Path) -> None:
    """Grouped, filtered, joined with a partitioned topic, limited, in every form; the topic is as it was."""
    sales = client.create_producer(topic, schema=pulsar.schema.AvroSchema(Sale))
    for number in range(30):
        sales.send(Sale(shop="north" if number % 3 else "south", amount=number), partition_key=f"k{number}")
    rest = Rest(f"http://127.0.0.1:{server.http_port}")
    rest.ask("PUT", f"/admin/v2/persistent/public/default/{topic}-names/partitions", 2)
    names = client.create_producer(f"{topic}-names")
    for line in (b"north", b"south", b"west"):
        names.send(line, properties={"seen": line.decode()})
    table = f'"{topic}"'
    grouped = f"SELECT shop, sum(amount) AS total FROM {table} WHERE amount > 3 GROUP BY shop ORDER BY shop"
    expected = [{"shop": "north", "total": 297}, {"shop": "south", "total": 132}]
    assert rows(query(grouped, "--json")) == expected
    assert query(grouped).stdout == "shop\ttotal\nnorth\t297\nsouth\t132\n"
    assert query(grouped, "--csv").stdout == "shop,total\nnorth,297\nsouth,132\n"
    made = query(grouped, "--parquet", str(tmp_path / "sales.parquet"))
    assert made.exit_code == 0 and pl.read_parquet(tmp_path / "sales.parquet").to_dicts() == expected
    assert query(grouped, "--parquet", str(tmp_path / "sales.parquet")).exit_code == 2
    joined = (
        f'SELECT n.value AS name, count(s.amount) AS sold FROM "persistent://public/default/{topic}-names" n '
        f"LEFT JOIN {table} s ON s.shop = CAST(n.value AS VARCHAR) GROUP BY n.value ORDER BY name"
    )
    assert rows(query(joined, "--json")) == [
        {"name": "north", "sold": 20}, {"name": "south", "sold": 10}, {"name": "west", "sold": 0},
    ]  # fmt: skip
    assert rows(query(f"SELECT count(*) AS n FROM {table}", "--json")) == [{"n": 30}]
    (first,) = rows(query(f"SELECT * FROM {table} LIMIT 1", "--json"))
    assert (first["shop"], first["__key"]) == ("south", "k0") and "__ledgerId" not in first
    like = (
        f'SELECT value FROM "{topic}-names" WHERE value LIKE \'w%\' AND __messageProperties LIKE \'%"seen": "west"%\''
    )
    assert rows(query(like, "--json", "--value", "string")) == [{"value": "west"}]
    stats = rest.ask("GET", f"/admin/v2/persistent/public/default/{topic}/stats")
    assert stats["subscriptions"] == {}


def test_ends_and_bounds(client: Any, query: Any, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(b"%d" % number) for number in range(10)]
    table = f'"{topic}"'
    third, last = (f"{ids[number].ledger_id()}:{ids[number].entry_id()}" for number in (3, 8))
    inside = query(f"SELECT value FROM {table}", "--from", third, "--until", last, "--json")
    assert [row["value"] for row in rows(inside)] == ["3", "4", "5", "6", "7"]
    assert rows(query(f"SELECT value FROM {table}", "--from", "latest", "--json")) == []
    assert rows(query(f"SELECT value FROM {table}", "--until", "2013-01-01T00:00:00Z", "--json")) == []
    for flags, said in ((("--max-rows", "5"), "more than 5 rows"), (("--max-bytes", "3"), "more than 3 B")):
        result = query(f"SELECT value FROM {table}", *flags)
        assert result.exit_code == 255 and said in result.stderr and flags[0] in result.stderr, result.stderr
        assert result.stdout == "" and "Traceback" not in result.stderr
    assert rows(query(f"SELECT value FROM {table} LIMIT 5", "--max-rows", "10", "--json"))[4] == {"value": "4"}
    (shown,) = rows(query(f"SELECT __messageId AS id FROM {table} LIMIT 1", "--json"))
    assert base64.b64decode(shown["id"], validate=True) == ids[0].serialize(), "control characters are not text"


def test_encrypted_topics_are_read_with_the_private_key(server: Server, query: Any, topic: str, tmp_path: Path) -> None:
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    for path, pem in zip((private, public), pair(), strict=True):
        path.write_text(pem)
    with magnetar.Client(server.broker_url) as native:
        reader = magnetar.CryptoKeyReader(str(public), None)
        native.create_producer(topic, encryption_key="k", crypto_key_reader=reader).send(b"secret")
        native.create_producer(topic).send(b"plain")
    text = f'SELECT value FROM "{topic}"'
    key = "--encryption-key-value", f"file://{private}"
    assert rows(query(text, *key, "--json")) == [{"value": "secret"}, {"value": "plain"}]
    assert rows(query(text, "-ca", "discard", "--json")) == [{"value": "plain"}]
    assert len(rows(query(text, "-ca", "CONSUME", "--json"))) == 2
    for flags, code, said in (
        ((), 255, "give --encryption-key-value file:///private.pem, or let --crypto-failure-action be DISCARD or"),
        (("-ca", "never"), 2, "'never' is none of FAIL, DISCARD, CONSUME"),
        (("-ekv", f"file://{tmp_path}/not-there.pem"), 2, "not-there.pem' cannot be read: No such file"),
        (("-ekv", f"file://{public}"), 2, "private key"),
        (("-ekv", str(private)), 2, "--encryption-key-value is file:///path"),
    ):
        result = query(text, *flags)
        assert result.exit_code == code and said in result.stderr, (flags, result.stderr, result.exception)
        assert result.stdout == "" and "PRIVATE KEY" not in result.stderr


def test_what_is_refused(query: Any, server: Server, client: Any, topic: str) -> None:
    """Each error says what and the next step; a topic that is not there is not made."""
    client.create_producer(topic).send(b"x")
    for text, code, said in (
        (f'DELETE FROM "{topic}"', 2, "DELETE is refused"),
        ('SELECT * FROM "not-there"', 255, "persistent://public/default/not-there: TopicNotFound"),
        ("SELECT * FROM public/default/orders", 2, "double quotes"),
        (f'SELECT nix FROM "{topic}"', 2, 'unable to find column "nix"'),
        (f'SELECT 1 FROM "{topic}"; DROP TABLE x', 2, "(and only one) statement"),
        (f'SELECT value, value FROM "{topic}"', 2, "duplicate"),
        ('SELECT * FROM "a/b"', 2, "no topic"),
        ("SELECT * FROM read_csv('/etc/passwd')", 2, "read_csv is refused"),
    ):
        result = query(text)
        assert result.exit_code == code and said in result.stderr, (text, result.stderr, result.exception)
        assert "Traceback" not in result.stderr and result.stdout == ""
    there = Rest(f"http://127.0.0.1:{server.http_port}").ask("GET", "/admin/v2/persistent/public/default")
    assert not any("not-there" in name for name in there)


def test_a_join_that_is_far_larger_than_what_it_reads_is_bounded(server: Server, client: Any, topic: str) -> None:
    """In time and in memory; a process of its own, which ends with the engine at work."""
    producer = client.create_producer(topic, batching_enabled=True)
    for number in range(2000):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    crossed = " CROSS JOIN ".join(f'"{topic}" {name}' for name in "abcd")
    for flag, value in (("--timeout", "0.5"), ("--max-memory", "400000000")):
        command = [sys.executable, "-m", "magnetar.app.main", "sql"]
        counted = "count(DISTINCT concat(b.value, c.value, d.value))"
        command += [f"SELECT a.value, {counted} FROM {crossed} GROUP BY a.value",
                    "--url", server.broker_url, "--value", "string", flag, value]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 255 and flag in done.stderr, done
        assert done.stdout == "" and "Traceback" not in done.stderr


def test_the_page(server: Server) -> None:
    """docs/sql.md as it stands, and what it says is printed."""
    (shown,) = [one for one in snippets() if one.file == "docs/sql.md"]
    printed = []
    for _, name, *arguments in commands(shown):
        app = {"produce": produce.app, "sql": command.app}[name]
        result = CliRunner().invoke(app, [*arguments, "--url", server.broker_url])
        assert result.exit_code == 0, result.stderr
        printed.append(result.stdout)
    assert printed[-2:] == ["__key\tsales\nnorth\t2\nsouth\t1\n", '{"value": "3 apples"}\n{"value": "2 apples"}\n']
