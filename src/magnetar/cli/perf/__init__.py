"""``magnetar perf``: load and figures, with the flags and the report lines of ``pulsar-perf``.

In reading order: ``command`` and its commands ``produce_command``, ``consume_command``, ``read_command`` and
``transaction_command`` (with their ``flags`` only), ``latencies`` (histograms and their file), ``report`` (the lines),
``run`` (one test: clients, time, interval reports, the end), ``payloads`` (what is sent), ``openings`` (a few hundred
at a time), ``producer_load``, ``consumer_load`` and ``transaction_load`` (what is done), ``topics`` (names and
partitions).
"""
