"""Maintenance of topics as Spark batch jobs: ``magnetar jobs``.

May import everything below it; reads the storage of a running broker, and changes nothing there. In reading order:

* `glance`      a data directory as it was at one instant, without a lock
* `topic_logs`  which ledgers its topics have and where their entries lie
* `extents`     entries straight from segment files
* `as_stored`   chunks and ciphertexts as rows
* `units`       what a job reads, cut into parts for tasks
* `reading`     entries and rows of a unit, wherever they come from
"""
