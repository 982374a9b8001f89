"""Bytes on disk: append, sync, read, trim. Entries are opaque here."""
