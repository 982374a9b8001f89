"""Compaction of a large topic by many Spark tasks, with the result that the broker's own compaction has.

In reading order:

* ``rules``              which entries stay, divided so that many tasks can apply it
* ``key_table``          the last event of every key, by kernels
* ``compacted_entries``  what of an entry stays, and how the compacted ledger has it, by kernels
* ``entry_columns``      a unit's entries as columns, for both passes
* ``job``                plan, first pass, second pass, and the hand-over to the broker
"""
