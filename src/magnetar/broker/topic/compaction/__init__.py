"""Compaction of a topic: the last message of every key, under its own message id (decision 008).

The rules and formats are in :mod:`magnetar.compaction`. Reading order: ``compactor`` (starts runs, holds the view),
``compaction_run`` (makes a view), ``compaction_stats`` (what is counted of it), ``view_writer``, ``compacted_view``
(where it lies), ``compacted_source`` (how consumers read it) and ``view_adoption`` (a view that a job computed).
"""
