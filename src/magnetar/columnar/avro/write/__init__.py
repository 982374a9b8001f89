"""Columns to Avro values.

Reading order: ``writer`` (a schema to instructions, and columns to values), ``kernel`` (the compiled loop).
"""
