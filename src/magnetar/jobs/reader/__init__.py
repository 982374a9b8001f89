"""Reads topics for jobs: from the files of a broker's data directory where they lie, over the protocol where not.

In reading order:

* ``snapshot``        a data directory as it was at one instant, without a lock
* ``topic_ledgers``   which ledgers its topics have and where their entries lie
* ``segment_reader``  entries straight from segment files
* ``ledger_copies``   offloaded ledgers, read and written
* ``units``           what a job reads, cut into parts for tasks
* ``opaque_entries``  chunks and ciphertexts as rows
* ``unit_reader``     entries and rows of a unit, wherever they come from
"""
