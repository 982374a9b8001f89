"""Pipelines, the parts that need no Spark."""
