"""Chooses the consumer for every entry of a subscription; pure: events in, instructions out.

Reading order: ``instructions`` and ``consumer_state`` are the vocabulary, ``permits`` and ``dispatch_limits`` say how
much a consumer may get, ``redelivery`` keeps what has to go out again, ``entry_holders`` who has what; ``dispatchers``
holds the subscription types and ``sticky_keys`` how Key_Shared divides its keys. ``ordinal_set`` and ``delay_index``
are what a topic keeps its delayed entries in.

Entries are named by their ordinal: one int, counted from 0 for the first entry ever written to the topic.
"""
