"""Disk space: what lives where, what is moved and removed, and what happens when the disk is full.

Reading order: ``occupancy`` (which spans keep which segment), ``segment_keeper`` (indexes, checkpoints and removal),
``victims`` (which segments are to be emptied), ``segment_cleaner`` (empties them) and ``full_disk`` (publishing stops,
and goes on).
"""
