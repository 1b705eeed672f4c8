"""Stage encode: pictures and text to feature folders, one module per kind."""
