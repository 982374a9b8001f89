"""Maintenance of topics as Spark batch jobs: ``magnetar jobs``.

May import everything below it; reads the storage of a running broker, and changes nothing there. In reading order:

* `glance`      a data directory as it was at one instant, without a lock
* `topic_logs`  which ledgers its topics have and where their entries lie
* `extents`     entries straight from segment files
* `units`       what a job reads, cut into parts for tasks
* `as_stored`   chunks and ciphertexts as rows
* `reading`     entries and rows of a unit, wherever they come from
* `content`     what a message says, as a number
* `sequences`   sequence ids of producers as runs
* `audit`       gaps, repetitions, order
* `tallies`     digests of buckets, filled by a kernel
* `compare`     two topics or clusters by digests
* `rest`        a broker's REST interface
* `latest`      the rules of compaction in two halves; `key_table` and `survived` are their kernels
* `stretches`   a unit for these rules
* `compaction`  of a large topic, with the broker's own result
* `copies`      what was offloaded, read; `offload`: many ledgers at once
* `replay`      a backlog or a dead-letter topic once more
* `report`      retention and cost
* `findings`    tables and files
* `running`     local Spark or spark-submit; errors
* `command`     ``magnetar jobs``
"""
