"""Limits of rates: how fast messages may be published and dispatched (rule 14.6, docs/decisions/036).

Reading order: ``token_bucket`` (pure arithmetic on a given clock), ``rate_limit`` (one limit with the line of those who
wait for it) and ``shared_limits`` (the limits that many topics share: of the broker and of resource groups). What is
limited joins them at :mod:`magnetar.broker.topic.publish.publish_rate` and
:mod:`magnetar.broker.topic.dispatch.dispatch_throttle`.
"""
