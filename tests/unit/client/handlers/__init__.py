"""Runs of handlers, in virtual time."""
