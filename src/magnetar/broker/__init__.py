"""The broker as a whole: topics, lookup, permissions, upkeep."""
