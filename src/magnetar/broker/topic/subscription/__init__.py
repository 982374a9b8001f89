"""A subscription: its consumers, its cursor, and what both show.

Reading order: ``subscription``, ``acknowledgements``, ``transactional_acks``, ``subscription_stats``, ``progress``
(whether it delivers as it should), ``explanation`` (why nothing arrives) and ``backlog`` (how many bytes lie after a
position).
"""
