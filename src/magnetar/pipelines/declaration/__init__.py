"""Makes a `Pipeline` of a YAML file, or names all of its mistakes at once; needs no Spark.

In reading order:

* ``document``    YAML with places, and problems that name them
* ``place``       directories that a file names
* ``secrets``     references to what must not stand in a file
* ``model``       what a pipeline is
* ``broker_block``  where the broker is and who logs in there
* ``ddl``         columns and intervals in Spark's words
* ``source_columns``  columns of a topic source that are known before Spark
* ``functions``   ``module:function`` of Python steps
* ``elements``    sources, steps, sinks and expectations
* ``collisions``  what goes in a circle, or into one place
* ``parser``      the whole file
"""
