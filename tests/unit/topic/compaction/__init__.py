"""Compacted views: how they are read, and how a job's result is adopted."""
