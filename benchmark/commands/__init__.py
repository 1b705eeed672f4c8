"""Every verb that is not a stage, one file each."""
