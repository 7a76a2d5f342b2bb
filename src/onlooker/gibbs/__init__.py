"""What every prior's kernels stand on: arrays and a generator, never a problem."""
