"""Connections as the operating system gives them.

Reading order: ``descriptors`` (how many there may be), ``acceptor`` (who gets in), ``shared_reads`` (reads of a chosen
size), ``lingering_close`` (an end that leaves the peer its answer), ``failure_words`` (why there is none).
"""
