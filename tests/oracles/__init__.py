"""Slow transcriptions of the papers' equations: what the fast code is held against."""
