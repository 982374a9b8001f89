"""Routes of clusters, and of what administrators say about where things shall lie in them.

Reading order: ``clusters`` (clusters, their peers, migration), ``failure_domains`` (brokers that fail together),
``isolation_policies`` (which brokers serve which namespaces), ``bookies`` (none here, and said so),
``existing_cluster`` (a check that all of them share).
"""
