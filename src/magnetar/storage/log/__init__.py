"""One journal for all topics: its records, its segments, and the group commit that writes them.

Reading order: ``records`` (the codec of blocks and records), ``cursor_records`` (those of cursors), ``segment`` (where
extents lie in a segment, and its index), ``segment_scan`` (walks through a segment, telling torn from corrupt),
``checkpoint_head`` (whether a checkpoint may be read), ``judged_records`` (whether a record is one of ours),
``log_image`` (one log in a checkpoint), ``checkpoint`` (the state as of a segment's end), ``write_group`` (what one
write makes durable), ``write_latency`` (how long it took) and ``journal`` (the one writer).
"""
