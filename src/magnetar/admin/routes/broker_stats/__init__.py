"""/admin/v2/broker-stats: what Apache Pulsar's brokers tell about themselves as JSON (rule 11.2.5).

Reading order: ``broker_stats`` (the routes), ``metrics_json`` (the numbers of /metrics under their older names),
``topics_json`` (statistics of all loaded topics), ``load_report``.
"""
