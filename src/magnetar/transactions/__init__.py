"""Transactions: who is in one, which entries and acknowledgements belong to it, and how it ends.

Decisions and state, without a clock or a loop; the broker and the jobs that read a topic's files use it. Reading order:
``coordinator`` (which transactions there are), ``operations`` (how a state changes and is written), ``buffer`` (which
entries of a topic are hidden), ``pending_acks`` (acknowledgements of open transactions), ``topic_state`` (both, for one
topic), ``operation_log`` and ``feature_state`` (the same beside the topic's log), ``markers`` (the entry that ends
one).
"""
