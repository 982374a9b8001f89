"""What the REST interface reads and shows, as plain values: no HTTP, no broker.

Reading order: ``json_document`` (one document, read strictly), ``coercion`` (from JSON to the wanted type),
``policy_values`` and ``offload_policies`` (bodies of policies), ``isolation`` and ``resource_quota`` (bodies about
where things shall lie), ``grants`` (permissions as the metadata keeps them), ``partitioned_stats`` (one set of
statistics from those of the partitions), ``counters`` (numbers for /metrics), ``stored_message`` (one entry with its
headers); ``rest_messages`` (what is published) with ``payloads`` and ``avro_json`` (from text to bytes);
``inner_peer`` (for whom a request speaks to the broker), ``client_refusals`` (what the broker says then).
"""
