"""Avro values to columns, each with its writer's schema, all into the reader's.

Reading order: ``reader`` (what sources use), ``instructions`` (what the machine understands), ``program`` (a writer's
and a reader's schema to instructions), ``machine`` (the compiled loop that runs them), ``leaves`` (how it reads numbers
and texts) and ``arena`` (the memory that it fills).
"""
