"""Records, segments and the journal."""
