"""Effects on a database and messages that happen together, once: an inbox and an outbox for SQL databases.

In reading order:

* ``sql_dialect``     what SQLite and PostgreSQL say differently
* ``table_arguments`` what the calls take
* ``inbox``           which messages have had their effect
* ``outbox``          messages that a transaction of the database leaves to be sent
* ``outbox_relay``    sends what lies in an outbox

They work on connections of the application (DB-API 2.0) and within its transactions; none opens or commits one.
"""
