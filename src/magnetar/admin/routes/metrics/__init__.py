"""/metrics in the Prometheus text format, under Apache Pulsar's names (rule 14.11, decision 037).

Reading order: ``scrape`` (the route), ``family`` (what a family is), ``topic_families`` and ``broker_families`` (all of
them, with what they say), ``topic_series`` (the numbers of all topics, in pieces), ``namespace_sums`` (sums of
namespaces and of the broker), ``text_format``, and ``compressed`` (gzip, and an answer that is kept for a while).
"""
