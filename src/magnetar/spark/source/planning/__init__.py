"""How much is read next, and where it is cut into tasks; all of it in the driver.

In reading order:

* ``offset_resolution`` offsets as users write them, resolved to read positions by a broker
* ``topic_tracker``     what the driver knows of the topics of a stream: where they end, how far the query is
* ``admission``         how far the next micro-batch goes; pure
* ``rate_estimator``    how many messages take as long as is wanted; pure
* ``backlog``           what a stream without limits takes of a large backlog
* ``slices``            where ranges are cut so that tasks have a size
* ``planner``           from two offsets to tasks; pure
* ``pushed_filters``    filters that Spark pushes down, applied to Arrow and to ranges
* ``range_filter``      ranges of a batch read made smaller by what pushed filters want
"""
