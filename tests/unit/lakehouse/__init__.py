"""Lakehouse tables without Spark: what a task and a driver do, in one process."""
