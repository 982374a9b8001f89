"""The REST interface, on Pulsar's v2 paths.

May import broker, metadata, security, runtime and model; of the broker it needs only what ``ports`` names. Reading
order: ports, http (the application), origins (who may ask), parameters, documents, coercion, bodies, failures, then one
file per group of routes: clusters, tenants, namespaces, topics, partitions, subscriptions, statistics, lookups,
brokers, metrics; aggregation; description (``/docs``); unbuilt (what Pulsar has and we do not); server.
"""
