"""A state made of what a start reads: first a checkpoint, then record after record.

Reading order: ``recovered`` (the result), ``replayed_logs`` (which logs there are), ``replayed_extents`` (where their
entries lie), ``replayed_cursors`` (what is acknowledged), ``replay`` (a checkpoint and records, applied to all of it).
"""
