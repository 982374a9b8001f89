"""Streaming analytics on topics, each example in a file of its own; README.md lists them.

Run from the repository's root: ``python -m examples.pipelines.late_data``.
"""
