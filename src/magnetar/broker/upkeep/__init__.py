"""Upkeep: what the broker does on a timer, without a request.

Reading order: ``periodic_passes`` starts the passes over all topics (trimming, retention, offloading, expiry, backlog
quotas). ``inactive_topics`` deletes topics and subscriptions that are not used any more, ``unloaded_topics`` trims
topics that were not used since the start. ``compaction_monitor`` starts compaction, ``liveness`` looks for
subscriptions that stand still, ``unacked_limit`` holds back those with many messages out. ``rates`` computes rates for
statistics, and ``health_check`` sends a message to itself.
"""
