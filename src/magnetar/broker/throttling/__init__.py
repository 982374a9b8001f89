"""Limits of topics: how fast messages may be published and dispatched (rule 14.6, docs/decisions/036).

Reading order: ``token_bucket`` (pure arithmetic on a given clock), ``rate_limit`` (one limit with the line of those who
wait for it), ``passes`` (how much of one turn of the event loop goes to subscriptions, docs/decisions/079) and
``shared_limits`` (what many topics share: the limits of the broker and of resource groups, and the passes). What is
limited joins them at :mod:`magnetar.broker.topic.publish.publish_rate` and
:mod:`magnetar.broker.topic.dispatch.dispatch_throttle`.
"""
