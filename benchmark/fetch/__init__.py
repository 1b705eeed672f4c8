"""Stage fetch: the raw files of a dataset."""
