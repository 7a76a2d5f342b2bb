"""Something to look at: a report in one file, and a page that answers questions."""
