"""Rematch: the stages of the pipeline, the commands, and the rooms that they share."""
