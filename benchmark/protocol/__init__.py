"""What counts: ranks, metrics, the overlap S and fusion of scores. Knows no torch."""
