"""Which messages have had their effect on a database: each has it once, however often it comes.

The row of a message is written in the transaction that holds its effect, so both are there or neither is. The message
is acknowledged after the commit; if it comes again before the broker has heard of that, its row is there.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from magnetar.client.databases.sql_dialect import SqlConnection, SqlDialect, table_name
from magnetar.client.databases.table_arguments import checked
from magnetar.client.machines.message import Message


class Inbox:
    """The messages that one database has had, of all subscriptions."""

    def __init__(self, dialect: SqlDialect, table: str = "magnetar_inbox") -> None:
        """Raises ArgumentError, also if ``table`` is no plain name."""
        checked("Inbox", dialect=dialect, table=table)
        self._table = table_name(table)
        self._insert = dialect.sql(
            f"INSERT INTO {self._table} (subscription, topic, ledger, entry, batch_index, publish_time) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        self._delete = dialect.sql(f"DELETE FROM {self._table} WHERE subscription = ? AND publish_time < ?")

    def create(self, connection: SqlConnection) -> None:
        """Make the table unless it is there. Raises ArgumentError."""
        checked("create", connection=connection)
        with closing(connection.cursor()) as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (subscription TEXT NOT NULL, topic TEXT NOT NULL, "
                "ledger BIGINT NOT NULL, entry BIGINT NOT NULL, batch_index INTEGER NOT NULL, "
                "publish_time BIGINT NOT NULL, PRIMARY KEY (subscription, topic, ledger, entry, batch_index))"
            )

    def first_time(self, connection: SqlConnection, subscription: str, message: Message[Any]) -> bool:
        """Note a message in the connection's transaction; returns whether it had not been noted before.

        If it had, another transaction holds its effect: acknowledge it, and do nothing else. Who notes the same message
        in two transactions at a time waits in one of them for the end of the other. Raises ArgumentError.
        """
        checked("first_time", connection=connection, subscription=subscription, message=message)
        message_id = message.message_id()
        row = (
            subscription, message.topic_name(), message_id.ledger_id(), message_id.entry_id(),
            message_id.batch_index(), message.publish_timestamp(),
        )  # fmt: skip
        with closing(connection.cursor()) as cursor:
            cursor.execute(self._insert, row)
            return bool(cursor.rowcount == 1)

    def forget(self, connection: SqlConnection, subscription: str, published_before_ms: int) -> int:
        """Delete the rows of messages that were published before that time; returns how many.

        Only of what cannot come any more: acknowledged long ago, or deleted by retention. A seek may bring it again.
        Raises ArgumentError.
        """
        checked(
            "forget", connection=connection, subscription=subscription, published_before_ms=published_before_ms
        )  # fmt: skip
        with closing(connection.cursor()) as cursor:
            cursor.execute(self._delete, (subscription, published_before_ms))
            return int(cursor.rowcount)
