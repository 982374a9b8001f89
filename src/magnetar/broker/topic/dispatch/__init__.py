"""Dispatch: entries are read for one subscription and sent to its consumers, as its dispatcher decides.

The decisions are in :mod:`magnetar.broker.delivery`, pure. Reading order: ``consumer``, ``dispatch_settings``,
``dispatcher_choice`` (which dispatcher a subscription type gets), ``members`` (consumers and their dispatcher),
``pump`` (asks, sends), ``entry_sender`` (what goes out, whole or one by one), ``entry_reads`` (memory and disk),
``dispatch_throttle`` (limits of rates), ``dispatch_filter`` (which entries may be sent now) with ``late_queue``,
``delays`` (delayed delivery), ``batch_sizes`` (how many messages an entry holds), ``unreadable_ranges`` (what was
skipped) and ``suspect_entries`` (messages that ended their reader's connection).
"""
