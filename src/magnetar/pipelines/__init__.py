"""Pipelines that a file declares: checked, run, watched, verified (docs/pipelines.md, docs/decisions/012).

May import spark, lakehouse, client, model. In reading order, what needs no Spark first:

* `document`   YAML with places, and problems that name them
* `secrets`    references to what must not stand in a file
* `model`      what a pipeline is
* `declared`   from the document to the model
* `elements`   the same for its sources, steps and sinks
* `functions`  ``module:function`` of steps
* `manifest`   what is written down of each micro-batch, chained
* `checkpoint` the directory of one pipeline: Spark's offset log, manifests, staged results
* `evidence`   manifests against topics: pure
* `letters`    the form of a dead letter
* `stored`     messages of topics as they were sent, whatever they travelled as
* `replay`     dead letters back to where they came from, once
* `status`     what checkpoint and broker say

and with Spark:

* `rows`       expressions: decoding, expectations, fingerprints, dead letters
* `frames`     sources, steps and sinks as DataFrames
* `plan`       which of them keep state; the graph as text
* `outputs`    sinks, each written once
* `batch`      one micro-batch
* `run`        the query
* `watch`      what is shown meanwhile
* `verify`     collects what `evidence` judges
* `command`    ``magnetar pipeline``
"""
