"""Starts and stops whole brokers as child processes, for the tools that talk to one from outside.

- `process`   a child in its own process group, waited for until healthy and ended without leaving anything behind
- `magnetar`  ours: `magnetar standalone`
- `lite`      the PyPI package pulsar-lite, a Rust broker
- `apache`    Apache Pulsar from Maven, unpacked once into the cache
"""
