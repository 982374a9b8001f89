"""Files, directories and the process that syncs."""
