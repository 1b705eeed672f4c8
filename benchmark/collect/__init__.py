"""Stage: what git keeps of the cells of a dataset."""
