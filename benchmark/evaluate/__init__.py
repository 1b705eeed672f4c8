"""Stage evaluate: one cell to its record. The only stage that sees test."""
