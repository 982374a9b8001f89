"""Who is speaking, and over what."""
