"""Disk space: what lives where, what is moved and removed, and what happens when the disk is full.

Reading order: ``occupancy`` (which spans keep which segment), ``segment_keeper`` (indexes, checkpoints and removal),
``victims`` (which segments are to be emptied), ``segment_sweep`` (reads what lives in one), ``extent_mover`` (writes it
again), ``space_use`` (what is there against what is promised), ``segment_cleaner`` (the passes) and ``full_disk``
(publishing stops, and goes on).
"""
