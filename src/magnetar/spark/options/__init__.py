"""The options of ``format("pulsar")``: one list, checked once, with errors that say what to write instead.

In reading order:

* ``option_list``     every option, and which side has it
* ``option_table``    the options that were given, with look-ups that check what they find
* ``offsets``         offsets as users write them
* ``login_options``   who reads and writes, and over what
* ``json_members``    options that are one JSON object
* ``topic_selection`` which topics are read
* ``limits``          what a micro-batch and a task may have at most
* ``value_options``   how values are read and written
* ``encryption_keys`` the keys of end-to-end encryption
* ``source_options``  all of a source
* ``sink_options``    all of a sink
"""

from __future__ import annotations

from magnetar.spark.options.source_options import for_batch

__all__ = ["for_batch"]
