"""What removes messages from a topic, or ends it.

Reading order: ``expiry`` (time to live), ``retention`` (which acknowledged messages are kept), ``backlog_quotas`` (what
happens when the backlog is too large or too old) and ``termination`` (nothing more is published).
"""
