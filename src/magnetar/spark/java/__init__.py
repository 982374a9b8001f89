"""The Java that Spark runs on.

* ``installation`` whether there is one, and what to do if not
* ``options``      its options about the archive of its classes
"""
