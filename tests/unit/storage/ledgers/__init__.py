"""Ledgers, cursors, the state of features, reading."""
