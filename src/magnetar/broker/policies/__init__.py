"""The policies that topics follow: which are in effect, and who learns of a change.

Reading order: ``policy_rules`` says which level decides each policy, ``broker_policies`` what the broker's settings
give, and ``effective_policies`` remembers the result for each topic and namespace. ``policy_notification`` brings
changes to loaded topics, ``policy_events`` publishes them on ``__change_events``, and ``subscribe_rate_limiter``
carries out the one policy that belongs to no topic. ``topic_settings`` are the settings that no policy changes.
"""
