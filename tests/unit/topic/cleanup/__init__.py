"""Expiry, quotas, retention and trimming of one topic."""
