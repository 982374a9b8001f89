"""Queries before they are connected."""
