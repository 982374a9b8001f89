"""Stored entries to columns of messages, and columns to entries, without an object per message.

Reading order: ``block`` (entries as they lie in one buffer), ``frames`` (MESSAGE frames of a connection to a block),
``checksums``, ``metadata`` (the entries' metadata as a table of numbers), ``message_metadata`` (that of the messages in
a batch), ``rows`` (payloads to rows of columns), ``distinct_texts`` and ``message_ids`` (two more columns) and
``column_builder``, which joins these into Arrow arrays. The other way: ``packer`` makes entries from
``message_columns`` by ``batch_kernel``.
"""
