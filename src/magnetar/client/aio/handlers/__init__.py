"""Functions of the application that a consumer runs over what it receives.

In reading order:

* ``outcome``         what a handler says about a message, and what a run reports
* ``handler_run``     some messages at a time, each key in order, acknowledged one by one
* ``transaction_run`` some messages and all that is made of them in one transaction
* ``termination``     SIGTERM, which lets runs come to their end
* ``handler_host``    what a consumer has for all this
"""
