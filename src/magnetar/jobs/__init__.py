"""Maintenance of topics as Spark batch jobs: ``magnetar jobs``.

May import everything below it; reads the storage of a running broker and changes nothing there. In reading order:

* ``reader``        the entries and rows of a topic, straight from the broker's directory or over the protocol
* ``verification``  ``audit`` and ``compare``: is every message there, and are two topics the same
* ``compaction``    ``compact``: of a large topic, with the broker's own result
* ``rest``          a broker's REST interface
* ``offload``       ``offload``: many sealed ledgers at once
* ``replay``        ``replay``: a backlog or a dead-letter topic published once more
* ``report``        ``report``: retention and cost
* ``results``       tables and files of what a job found
* ``session``       local Spark or spark-submit; errors
* ``command``       ``magnetar jobs``
"""
