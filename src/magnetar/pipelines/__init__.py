"""Pipelines that a file declares: checked, run, watched, verified."""
