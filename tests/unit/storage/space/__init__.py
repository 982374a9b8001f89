"""Disk space: what is moved and removed."""
