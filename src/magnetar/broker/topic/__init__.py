"""One topic's life: producers publish, the log fixes the order, subscriptions deliver, old messages go.

The path of a message is publish, the topic's log in storage, dispatch, subscription; the other packages hold features
that a topic composes. Reading order: ``ports`` (what a topic needs from storage and connections), ``topic_feature``
(what a topic calls in its features), ``topic_api`` (what connections need of a topic), ``topic``, then the packages
``publish``, ``dispatch``, ``subscription``, ``transactions``, ``compaction``, ``cleanup``, ``nonpersistent``;
``limits`` says who may subscribe, and ``position_search`` finds an entry by its publish time.
``throughput`` is what each of them passed on, and how fast at the last look of statistics.
"""
