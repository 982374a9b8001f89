"""Messages that a transaction of a database leaves to be sent: they are there with its other effects, or not at all.

    add (the application's transaction) -> number (the relay) -> sent -> receipt -> delete

A row gets its sequence id from the relay and not from its own number: transactions commit in another order than they
took numbers in, and a broker that removes duplicates would take a number that comes late for a repetition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from magnetar.client.databases.sql_dialect import SqlConnection, SqlDialect, table_name
from magnetar.client.databases.table_arguments import checked
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

_COLUMNS: Final = "id, payload, partition_key, properties, event_time, deliver_at, sequence"


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One message that waits to be sent."""

    number: int
    """Of the row."""
    payload: bytes
    partition_key: str | None
    properties: dict[str, str]
    event_timestamp: int | None
    deliver_at: int | None
    sequence_id: int


class OutboxTable:
    """The messages of one database that wait to be sent, to any topics."""

    def __init__(self, dialect: SqlDialect, table: str = "magnetar_outbox") -> None:
        """Raises ArgumentError, also if ``table`` is no plain name."""
        checked("OutboxTable", dialect=dialect, table=table)
        self._dialect = dialect
        self._table = table_name(table)

    def create(self, connection: SqlConnection) -> None:
        """Make the tables unless they are there. Raises ArgumentError."""
        checked("create", connection=connection)
        with closing(connection.cursor()) as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (id {self._dialect.number}, topic TEXT NOT NULL, "
                f"payload {self._dialect.blob} NOT NULL, partition_key TEXT, properties TEXT NOT NULL, "
                "event_time BIGINT, deliver_at BIGINT, sequence BIGINT)"
            )
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table}_sequences (topic TEXT NOT NULL PRIMARY KEY, "
                "next BIGINT NOT NULL)"
            )

    def add(
        self,
        connection: SqlConnection,
        topic: str,
        content: bytes,
        properties: Mapping[str, str] | None = None,
        partition_key: str | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
    ) -> None:
        """Leave a message in the connection's transaction. Raises ArgumentError for what cannot be sent."""
        checked(
            "add", connection=connection, topic=topic, content=content, properties=properties,
            partition_key=partition_key, event_timestamp=event_timestamp, deliver_at=deliver_at,
        )  # fmt: skip
        name = TopicName.parse(topic)
        if not name.persistent:
            raise InvalidValueError(f"{topic}: what is sent once has to be stored; use a persistent topic")
        row = (name.fqn, content, partition_key, json.dumps(dict(properties or {})), event_timestamp, deliver_at)
        with closing(connection.cursor()) as cursor:
            cursor.execute(
                self._sql(
                    "INSERT INTO {table} (topic, payload, partition_key, properties, event_time, deliver_at) "
                    "VALUES (?, ?, ?, ?, ?, ?)"
                ),
                row,
            )

    def _sql(self, text: str) -> str:
        return self._dialect.sql(text.replace("{table}", self._table))

    def topics(self, connection: SqlConnection) -> list[str]:
        """Return the topics for which messages wait. Raises ArgumentError."""
        checked("topics", connection=connection)
        with closing(connection.cursor()) as cursor:
            cursor.execute(self._sql("SELECT DISTINCT topic FROM {table} ORDER BY topic"))
            return [topic for (topic,) in cursor.fetchall()]

    def number(self, connection: SqlConnection, topic: str, above: int, limit: int) -> None:
        """Give sequence ids to as many messages of a topic as have none, in the order of their rows; commit after it.

        ``above``: the highest sequence id that the broker has; numbers begin after it.
        """
        with closing(connection.cursor()) as cursor:
            cursor.execute(
                self._sql("INSERT INTO {table}_sequences (topic, next) VALUES (?, 0) ON CONFLICT DO NOTHING"), (topic,)
            )
            lock = self._dialect.lock_row
            cursor.execute(self._sql("SELECT next FROM {table}_sequences WHERE topic = ?") + lock, (topic,))
            following = max(int(cursor.fetchone()[0]), above + 1)
            cursor.execute(
                self._sql("SELECT id FROM {table} WHERE topic = ? AND sequence IS NULL ORDER BY id LIMIT ?"),
                (topic, limit),
            )
            rows = [number for (number,) in cursor.fetchall()]
            if rows:
                cursor.executemany(
                    self._sql("UPDATE {table} SET sequence = ? WHERE id = ?"),
                    [(following + place, number) for place, number in enumerate(rows)],
                )
                cursor.execute(
                    self._sql("UPDATE {table}_sequences SET next = ? WHERE topic = ?"), (following + len(rows), topic)
                )

    def numbered(self, connection: SqlConnection, topic: str, limit: int) -> list[OutboxRow]:
        """Return messages of a topic that have sequence ids, in their order."""
        with closing(connection.cursor()) as cursor:
            cursor.execute(
                self._sql(
                    f"SELECT {_COLUMNS} FROM {{table}} WHERE topic = ? "
                    "AND sequence IS NOT NULL ORDER BY sequence LIMIT ?"
                ),
                (topic, limit),
            )
            return [
                OutboxRow(number, bytes(payload), key, json.loads(properties), event_time, deliver_at, sequence)
                for number, payload, key, properties, event_time, deliver_at, sequence in cursor.fetchall()
            ]

    def forget_numbers(self, connection: SqlConnection, rows: Sequence[OutboxRow]) -> None:
        """Take the sequence ids from messages that are stored nowhere, and get others; commit after it."""
        with closing(connection.cursor()) as cursor:
            cursor.executemany(
                self._sql("UPDATE {table} SET sequence = NULL WHERE id = ?"), [(row.number,) for row in rows]
            )

    def delete(self, connection: SqlConnection, rows: Sequence[OutboxRow]) -> None:
        """Delete messages that have their receipts; commit after it."""
        with closing(connection.cursor()) as cursor:
            cursor.executemany(self._sql("DELETE FROM {table} WHERE id = ?"), [(row.number,) for row in rows])
