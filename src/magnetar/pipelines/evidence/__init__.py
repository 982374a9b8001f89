"""Whether a pipeline skipped, repeated or changed anything, and exactly where: ``magnetar pipeline verify``.

In reading order:

* ``judgement``  manifests against topics and tables; pure
* ``tables``     the tables of a pipeline, read
* ``verify``     collects the evidence and has it judged
"""
