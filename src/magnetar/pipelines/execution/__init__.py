"""A pipeline as a streaming query of Spark.

In reading order:

* ``expressions``  decoding, expectations, fingerprints and dead letters as columns
* ``frames``       sources, steps and sinks as DataFrames
* ``plan``         which of them keep state; the graph as text
* ``outputs``      sinks, each written once
* ``batch``        one micro-batch
* ``progress``     what is shown while it runs
* ``run``          the query: started, watched, stopped
"""
