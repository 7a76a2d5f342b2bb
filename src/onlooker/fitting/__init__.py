"""From a file of tracks to a stored posterior, and back from the store: what commands do."""
