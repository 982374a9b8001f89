"""Spark's Python processes as forks of one that has imported what they need, so that the first query need not wait.

In reading order:

* ``preload``      what is imported, and which kernels are loaded, before a process is forked
* ``fork_request`` what a process says of itself to be replaced by a fork, and how that travels
* ``fork_server``  the process that is forked
* ``server_start`` how a session starts and ends it
"""
