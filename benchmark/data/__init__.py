"""Data as it lies on disk: prepared tables, feature folders, word vectors, boxes."""
