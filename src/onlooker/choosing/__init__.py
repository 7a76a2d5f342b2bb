"""What the tracks themselves decide: by the score of trajectories that were left out."""
