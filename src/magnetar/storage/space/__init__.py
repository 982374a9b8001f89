"""Disk space: what lives where, what is moved and removed, and what happens when the disk is full.

Reading order: ``occupancy`` (which spans keep which segment), ``victims`` (which segments are to be emptied),
``segment_cleaner`` (empties and removes them), ``reserve`` (space kept back) and ``full_disk`` (publishing stops, and
goes on).
"""
