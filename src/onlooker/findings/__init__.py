"""What a run found: one reader of a run, and the words in which results are said."""
