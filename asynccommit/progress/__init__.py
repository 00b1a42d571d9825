"""Show the progress of commits: in a terminal, a notebook or a log."""
