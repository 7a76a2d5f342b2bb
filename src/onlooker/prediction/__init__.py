"""The policy at any state, from the draws."""
