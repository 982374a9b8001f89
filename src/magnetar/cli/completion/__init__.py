"""Completion for bash, zsh and fish, from the tables of commands and without a network.

Read ``candidates`` (what may follow some words), then ``command`` (the scripts that shells load).
"""
