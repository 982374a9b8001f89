"""Bytes on disk: append, sync, read, trim. Entries are opaque here; docs/disk.md is the format.

Reading order, from the disk upwards: ``backends`` (what segments and checkpoints lie in, and the files that they are
here), ``log`` (the one journal of all topics, its records and segments), ``ledgers`` (a topic's log made of ledgers,
its cursors and the cache), ``lost_blocks`` (what shows that some are gone), ``replay`` (a state made of a checkpoint
and records), ``recovery`` (what a start reads),
``space`` (what is removed and when), ``metadata_log`` (the small facts), ``directory_format`` (refuses what a newer
version wrote), ``store_settings`` and ``store_threads`` (what a store is given), ``store`` (all logs of one journal),
``local_store`` (a store on a directory), ``verify`` (the offline check) and ``backup`` (the state of one moment, copied
elsewhere and brought back).
"""
