"""``magnetar tokens``: keys and tokens with the flags of ``bin/pulsar tokens`` of Apache Pulsar.

Reading order: ``command`` (the commands and their options), ``key_files`` (written keys), ``input`` (where a token or a
key is read from).
"""
