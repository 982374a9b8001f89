"""Files that users name.

Reading order: ``pipe`` (a name that may be one, which is not waited for).
"""
