"""A topic's endless log: ledgers, cursors, the state of features, and how entries are read.

Reading order: ``ledger`` (ledgers, and the two names of an entry), ``ranges`` (sets of acknowledged ordinals),
``cursor`` (a subscription's acknowledgements), ``cursor_deletions`` (what is on its way to the disk),
``feature_state`` (what a feature keeps beside a log), ``archive`` (copies of ledgers outside the directory),
``span_table`` (where a log's extents lie), ``stored_run`` (consecutive entries in memory), ``entry_cache``,
``offloadable_ledgers`` (what a log knows of copies), ``trimmable_ledgers`` (what it lets go), ``managed_ledger`` (the
log itself), ``large_reads`` (the disk reads on while entries are copied) and ``entry_reader`` (entries from segments
and copies).
"""
