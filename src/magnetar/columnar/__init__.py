"""Between the bytes of messages and Arrow: entries to columns and back, values to fields and back.

Reading order: the packages ``kernels`` (how loops over bytes become machine code), ``entries`` (stored entries to
columns of messages, and back) and ``single_entries`` (entries that are handled one at a time), ``values``
(the seam: bytes of values in, typed columns out) and ``versions`` (which schema the writers of values had). Then one
way to read values after the other: ``primitives``, the packages ``avro`` and ``json``, ``protobuf``, and ``key_value``,
which puts two of them together. What they share: ``byte_columns``, ``bisection`` (which values spoil a batch),
``offset_width`` and ``sql_types``. On top of them: ``value_readers`` and ``value_writers`` (the way that belongs to a
schema), ``arrow_decoder`` (entries to record batches) and ``row_router`` (record batches to rows for partitions).
``compilation`` has all kernels compiled ahead.
"""
