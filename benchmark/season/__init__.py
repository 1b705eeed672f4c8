"""What is played: season files, presets, and the cells that they resolve to."""
