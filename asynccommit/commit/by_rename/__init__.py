"""The steps of a commit: each is a function, and a decision in it is a pure one beside it."""
