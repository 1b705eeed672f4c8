"""Stage report: records to Markdown pages with figures."""
