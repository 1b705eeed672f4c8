"""One figure per file; see benchmark.report.figure_listing."""
