"""One module for each group of routes; all of them reach the broker through :mod:`magnetar.admin.ports`.

Reading order: ``clusters`` (a package: clusters, and rules of placement), ``tenants``, ``namespaces`` (a package:
namespaces and their policies), ``resource_groups`` (rates that namespaces share), ``topics`` (a package: topics,
partitions, their subscriptions and messages), ``schemas``, ``produce`` (publishing), ``lookups``,
``permission_explanations``, ``transactions``, ``brokers``, ``broker_operations`` (what one of them can be asked to do),
``half_done`` (what a refusal by the disk says of requests with several steps),
``metrics`` (a package: what Prometheus reads), ``broker_stats`` (a package: the same as JSON), ``not_implemented``
(what Pulsar has and magnetar has not).
"""
