"""Maintenance jobs, the parts that need no Spark."""
