"""Stage report: records to Markdown pages with figures."""

from pathlib import Path

ROOT = Path("reports")  # a folder for each season, and the pages over all of them
