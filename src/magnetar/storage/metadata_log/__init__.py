"""Tenants, policies, schemas and other small facts: two copies of one log of changes, as text.

Reading order: ``metadata_scan`` (the lines, and what a damaged copy still says), ``metadata_copy`` (one of the two
files) and ``metadata_log`` (the metadata store made of both).
"""
