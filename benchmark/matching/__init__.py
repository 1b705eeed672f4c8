"""Where a method meets data: inputs, scores, checkpoints."""
