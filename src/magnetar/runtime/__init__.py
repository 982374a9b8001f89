"""The few asyncio tools used everywhere: clock, tasks, settings, log."""
