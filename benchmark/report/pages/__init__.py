"""The sections and pages of the report."""
