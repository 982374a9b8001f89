"""What the documents say is true: snippets run as they stand, rules that are cited exist, pages are up to date."""
