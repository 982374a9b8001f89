"""magnetar: Apache Pulsar's messaging in Python, with its data pipelines on Spark.

Reading order for a newcomer: protocol, broker.connection, broker.topic, storage, broker.delivery;
docs/architecture.md walks one message through them.
"""

__version__ = "0.1.0"
"""The version of magnetar; pyproject.toml, REST, CONNECTED, /metrics and ``--version`` take it from here."""
