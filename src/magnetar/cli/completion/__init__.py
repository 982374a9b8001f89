"""Completion for bash, zsh and fish: commands and options from tables, names from contexts and from a broker.

Read ``candidates`` (what may follow some words), ``program_words`` (options and places of commands that are not in the
tables), ``broker_names`` (topics, namespaces, tenants, subscriptions), then ``command`` (the scripts that shells load).
"""
