"""The papers as data: printed tables and claims, and how each method differs from its
paper."""
