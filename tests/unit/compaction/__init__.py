"""Which messages compaction keeps, and what it leaves of a batch."""
