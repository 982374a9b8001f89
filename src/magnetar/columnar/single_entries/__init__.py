"""Entries that cannot be columns at once and are handled one at a time: encrypted ones, and messages in chunks.

Reading order: ``wrapped_key`` (how a data key travels), ``encryption`` (data keys, decryption), ``chunk_joiner``
(chunks to one message), ``opener`` (both, before entries become columns), ``chunk_splitter`` (a message that is too
large, on its way out).
"""
