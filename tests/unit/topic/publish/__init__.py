"""Deduplication and sequence ids."""
