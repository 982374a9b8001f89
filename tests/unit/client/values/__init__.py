"""Values by schema."""
