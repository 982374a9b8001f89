"""Whether topics hold what they should: ``magnetar jobs audit`` and ``magnetar jobs compare``.

In reading order:

* ``content_hash``   what a message says, as one 64-bit number
* ``sequence_runs``  sequence ids of producers as runs
* ``audit``          gaps, repetitions, order, damage
* ``digest_table``   digests of many buckets, filled by a kernel
* ``comparison``     two topics or clusters by digests
"""
