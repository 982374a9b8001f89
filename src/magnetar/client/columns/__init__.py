"""Tables of Arrow instead of messages: what they become on the way out, and what entries become on the way in. No I/O.

In reading order:

* ``given_tables``  what an application hands in, as record batches
* ``table_writer``  record batches to entries of a producer's partitions
* ``table_reader``  entries that were received to a table
* ``table_ids``     which messages the rows of a table are
* ``given_rows``    which of them were given, so that no other is acknowledged
"""
