"""Where a method meets data: inputs, tiles of scores, checkpoints."""
