"""Clients in Python at the same broker: the official one (C++ inside), ours for asyncio, for threads, and in columns.

* ``clock``    wall, CPU, percentiles
* ``workload`` one measurement of throughput, in a process of its own
* ``latency``  a client that takes turns with others
* ``bars``     what ours has to reach, and the table
* ``run``      all of them in alternation: ``python -m benchmarks.client.run``
"""
