"""Other processes that do slices of a commit: how each kind is started."""
