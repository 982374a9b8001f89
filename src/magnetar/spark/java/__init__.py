"""The Java that Spark runs on.

* ``installation`` whether there is one, and what to do if not
* ``options``      what it is told of the archive of its classes
"""
