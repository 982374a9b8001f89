"""Publishing: producers of one topic and what happens to a SEND before it is in the log.

Reading order: ``producer``, ``producers`` (who may publish at the same time), ``topic_epoch`` (generations of exclusive
producers), ``publish_results`` (receipts) with ``write_stats`` (how the disk took the entries), ``publish_checks``
(what policies ask of every message), ``publish_rate``, ``deduplication`` with ``sequence_ids`` and ``receipt_order``,
and ``chunk_record`` (whether the topic has chunked messages).
"""
