"""The papers as data: printed tables and claims, and notes on what each paper leaves open."""
