"""Avro values to columns, each with its writer's schema, all into the reader's.

Reading order: ``reader`` (what sources use), ``program`` (a writer's and a reader's schema to instructions), ``kernel``
(the compiled loop that runs them) and ``arena`` (the memory that it fills).
"""
