"""Compaction: the last message of every key, under its own id (SEMANTICS 4.7.4, decision 008).

survivors   what stays, pure                 view     where it lies
run         the job that makes it            source   how it is read
compactor   a topic's part in all this
"""
