"""Stage prepare: raw files to validated tables."""
