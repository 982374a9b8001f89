"""JSON values to columns and columns to JSON values, by a schema in Avro's words.

Reading order: ``reader``, ``line_scan`` (whether a text is one JSON value), ``writer``.
"""
