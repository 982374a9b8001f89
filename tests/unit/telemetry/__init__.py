"""Telemetry: when it is sent, and what its numbers are."""
