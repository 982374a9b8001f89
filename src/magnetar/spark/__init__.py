"""The data pipeline on Spark: source and sink for format 'pulsar'."""
