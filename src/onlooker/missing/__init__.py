"""What was not seen: first guesses, and kernels that draw it."""
