"""Bytes on disk: append, sync, read, trim. Entries are opaque here; docs/disk.md is the format.

Reading order, from the disk upwards: ``backends`` (files, and the way a write becomes durable), ``log`` (the one
journal of all topics, its records and segments), ``ledgers`` (a topic's log made of ledgers, its cursors and the
cache), ``recovery`` (what a start reads), ``space`` (what is removed and when), ``metadata_log`` (the small facts),
``store`` (one directory with everything in it) and ``verify`` (the offline check).
"""
