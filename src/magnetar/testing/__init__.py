"""The simulator and its fakes, for magnetar's own tests and for users'.

It may import everything; no product code imports it.

Reading order: ``simloop`` (virtual time, processes, clock), ``executor_lane`` (disk work of threads), ``diskmodel``
and ``faultfiles`` (what a disk forgets), ``memory_journal`` and ``memory_metadata`` (stores in memory), ``transport``
and ``network`` (connections that break), ``machine`` (a computer that crashes and boots), ``rawclient`` and
``rawtransaction`` (a client that does exactly what a test says), ``broker`` (the whole broker on such a computer),
``history`` (what clients saw) and ``history_check`` (whether it is allowed).
"""
