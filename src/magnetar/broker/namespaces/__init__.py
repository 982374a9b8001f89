"""Namespaces: which topics exist, how clients find them, and how partitions come into being.

Reading order: ``topic_directory`` lists the topics that exist, ``topic_changes`` notifies of those that come and go,
and ``watched_lists`` keeps the lists of pattern subscriptions up to date. ``lookup`` answers clients' questions about
topics, ``lookup_limit`` bounds how many are under way, ``creation_rules`` says which topics may be created, and
``partition_creation`` creates the partitions of one.
"""
