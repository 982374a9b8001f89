"""What a pipeline writes besides its output: checkpoint, manifests and dead letters; needs no Spark.

In reading order:

* ``manifest``         what is written down of each micro-batch, chained
* ``checkpoint``       the directory of one pipeline: Spark's offset log, manifests, staged results
* ``dead_letter``      the form of a dead letter
* ``stored_messages``  messages of topics as they were sent, whatever they travelled as
* ``status``           what checkpoint and broker say of a pipeline
"""
