"""Avro values to columns and columns to Avro values.

Reading order: ``shape`` (which column each part of a schema becomes), ``defaults`` (a schema's defaults as Arrow takes
them), the room ``read``, the room ``write``.
"""
