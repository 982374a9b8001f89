"""The Java that Spark runs on.

* ``installation`` whether there is one, and what to do if not
* ``options``      its options about the archive of its classes
* ``launch``       its start, and its end where the start is interrupted
"""
