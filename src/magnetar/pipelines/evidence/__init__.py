"""Whether a pipeline skipped, repeated or changed anything, and exactly where: ``magnetar pipeline verify``.

The checks are pure: manifests against what `verify` and `tables` have read. In reading order:

* ``discrepancy``      what `verify` reports
* ``manifest_checks``  are the manifests whole and in one chain; do ranges and counts join
* ``source_checks``    do the sources still hold the rows that were read
* ``topic_checks``     does an output topic hold every row once
* ``table_checks``     does a table have one commit of each micro-batch, with its rows
* ``tables``           the tables of a pipeline, read
* ``verify``           collects the evidence and has it checked
"""
