"""OpenTelemetry: the broker's numbers and the traces of its REST requests, sent to a collector (docs/telemetry.md).

Reading order: ``switch`` (whether it is switched on; imports nothing of OpenTelemetry, and without it nothing else
here is imported), ``instruments`` (Apache Pulsar's names, as data), ``snapshot`` (all numbers of one moment, made on
the event loop in turns), ``request_spans`` (one span for each request) and ``exports`` (sends both, in threads of
its own that block no other work).
"""
