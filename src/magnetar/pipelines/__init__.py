"""Pipelines that a file declares: checked, run, watched, verified (docs/pipelines.md, docs/decisions/012).

May import spark, lakehouse, client, model. In reading order:

* ``declaration``  from a YAML file to a `Pipeline`, or to all of its mistakes; without Spark
* ``state``        what a pipeline writes besides its output: checkpoint, manifests, dead letters; without Spark
* ``execution``    the pipeline as a streaming query, micro-batch by micro-batch
* ``evidence``     ``verify``: was anything skipped, repeated or changed
* ``redrive``      ``replay``: dead letters back to the topics they came from, each once; without Spark
* ``command``      ``magnetar pipeline``
"""
