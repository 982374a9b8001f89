"""``magnetar sql``: a SELECT over topics, read from their beginning to their end as it was when the query started.

In reading order:

* ``statement``    what is a query, and what its words say about topics and columns
* ``read_bounds``  how much a query reads at most, and how far it is
* ``engine_thread`` the thread that runs it, and whether it still does
* ``private_key``  the private key, and what happens without it
* ``topic_table``  a topic as a table: its columns, and its rows in batches
* ``topic_query``  tables and statement put together, and run
* ``result_forms`` how rows are printed
* ``command``      the flags
"""
