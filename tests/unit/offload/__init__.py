"""Copies of ledgers: digest, format, places."""
