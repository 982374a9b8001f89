"""What a start does: it reads the newest checkpoint and replays every younger record.

Reading order: ``recovery``.
"""
