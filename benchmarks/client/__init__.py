"""Clients in Python at the same broker: the official one (C++ inside), ours for asyncio, for threads, and in columns.

* ``workload`` one measurement, in a process of its own
* ``run``      all of them in alternation, and the table: ``python -m benchmarks.client.run``
"""
