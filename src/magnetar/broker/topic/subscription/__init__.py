"""A subscription: its consumers, its cursor, and what both show.

Reading order: ``subscriptions`` (all of a topic), ``subscription``, ``active_consumer``, ``acknowledgements``,
``mark_delete_watch`` (notices that the cursor moved), ``transactional_acks``, ``dispatch_rates`` (how fast a
topic's subscriptions may send), ``subscription_stats``, ``progress`` (whether it delivers as it should),
``explanation`` (why nothing arrives) and ``backlog`` (how many bytes lie after a position).
"""
