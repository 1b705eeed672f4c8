"""Stage train: one cell to a checkpoint."""
