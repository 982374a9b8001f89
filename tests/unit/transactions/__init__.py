"""Transactions, pure parts."""
