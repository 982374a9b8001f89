"""Compaction's rules and formats, for the broker and for jobs that compact outside of it. Pure.

Reading order: ``messages`` (what compaction looks at in an entry), ``survivors`` (which messages stay),
``view_entries`` (the entries of a compacted view) and ``compaction_cursor`` (what the cursor ``__compaction`` says).
"""
