"""A loaded topic's part in transactions.

Reading order: ``topic_transactions`` (sends, acknowledgements, ends), then ``isolation`` (which entries consumers may
not see). The state itself is in :mod:`magnetar.transactions`.
"""
