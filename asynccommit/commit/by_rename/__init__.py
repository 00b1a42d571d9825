"""The steps of a commit: each is a function, with its decisions in pure functions beside it."""
